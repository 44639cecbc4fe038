/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that wait for events, passed on in order.
 *
 * Happy path:  a task is extracted at once -> the stage begins a wait, or finds
 *              that none is needed -> the wait posts the stage when it is over
 *              -> the stage completes the batch -> the producer below takes it,
 *              the oldest batch first.
 *
 * What can fail: a wait: the batches before it are passed on, then the error;
 *              those behind it are released.
 *
 * On stop:     waits are abandoned, each with its batch. If a call to a driver
 *              is in flight, which uses the consumer's device stream, the stop
 *              ends when that has returned. A close of the runtime waits for
 *              that only for a limited time.
 *
 * Clauses: EV-01, ER-12. */
#include "stage/ordered_waits.h"

#include <assert.h>
#include <errno.h>

#include "arrow/metadata.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/time_limits.h"
#include "device/wait_error.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { RING_FIRST = 4 };

static struct uva__ordered_waits *ordered_waits_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct uva__ordered_waits, stage);
}

static struct uva__ordered_waits *ordered_waits_at(struct uva__source *source)
{
    return ordered_waits_of(uva__stage_of(source));
}

static struct uva__pending_batch *wait_at(struct uva__ordered_waits *w,
                                          uint64_t index)
{
    return &w->loop.ring[index & (w->loop.size - 1)];
}

/* Returns the index of the oldest batch that cannot be passed on. */
static uint64_t ordered_waits_head(const struct uva__ordered_waits *w)
{
    return w->loop.first + (uint64_t)w->stage.source.ready;
}

/* ---- one batch ---------------------------------------------------------- */

static void pending_batch_note(struct uva__ordered_waits *w,
                               struct uva__pending_batch *wait, int code,
                               const struct uva_error *error)
{
    wait->batch.code = code;
    if (w->loop.fault.code == 0)
        uva__failure_set(&w->loop.fault, &w->stage.source.rt->allocator, code,
                         error, NULL);
}

void uva__pending_batch_fail(struct uva__ordered_waits *w,
                             struct uva__pending_batch *wait, int code,
                             const struct uva_error *error)
{
    uva_array_release(&wait->batch.array);
    pending_batch_note(w, wait, code, error);
}

/* Ends the job of a wait, or of work: no callback follows. A close waits for
 * this. */
static void waits_end_job(struct uva__ordered_waits *w)
{
    struct uva__rt *rt = w->stage.source.rt;

    uva__stage_release(&w->stage);
    uva__rt_job_end(rt);
}

/* The callback of a wait; on any thread, also a vendor's. Waits behind the
 * oldest one post nothing: they are polled when that one is over. */
static void wait_over(struct uva_watch *watch)
{
    struct uva__ordered_waits *w = watch->client;

    if (uva__atomic64_or(&w->awaited, 0) == (uintptr_t)watch)
        uva__meter_wake(w->stage.source.meter, &w->stage.wakeup);
    waits_end_job(w);
}

/* Makes the wait of a batch. False: the batch has failed, as there is no memory
 * or the runtime is closing. */
static bool wait_prepare(struct uva__ordered_waits *w,
                         struct uva__pending_batch *wait,
                         const struct uva_device_event *event)
{
    const uint64_t limit_ns = (uint64_t)w->timeout_ms * 1000000;

    if (!uva__rt_job_begin(w->stage.source.rt)) {
        uva__pending_batch_fail(w, wait, ESHUTDOWN, NULL);
        return false;
    }
    if (uva__event_wait_new(w->devices, event, wait_over, w, &wait->watch) !=
        0) {
        uva__rt_job_end(w->stage.source.rt);
        uva__pending_batch_fail(w, wait, ENOMEM, NULL);
        return false;
    }
    wait->since_ns = uva__span_begin(w->stage.source.rt);
    if (limit_ns > 0)
        wait->due_ns = uva__clock_ns() + limit_ns;
    uva__stage_acquire(&w->stage);
    return true;
}

void uva__pending_batch_watch(struct uva__ordered_waits *w,
                              struct uva__pending_batch *wait,
                              const struct uva_device_event *event)
{
    if (wait_prepare(w, wait, event))
        uva__event_wait_begin(wait->watch);
}

void uva__pending_batch_chain(struct uva__ordered_waits *w,
                              struct uva__pending_batch *wait,
                              const struct uva_device_event *event,
                              void *device_stream)
{
    if (wait_prepare(w, wait, event)) {
        wait->watch->chains = true;
        wait->watch->device_stream = device_stream;
        uva__event_wait_begin(wait->watch);
    }
}

void uva__pending_batch_work(struct uva__ordered_waits *w,
                             struct uva__pending_batch *wait,
                             const struct uva_device_event *event,
                             struct uva__work *work)
{
    if (!wait_prepare(w, wait, event)) {
        work->free(work);
        return;
    }
    wait->watch->work = work;
    uva__event_wait_begin(wait->watch);
}

bool uva__ordered_waits_begin_work(struct uva__ordered_waits *w,
                                   const struct uva__pending_batch *wait)
{
    if (!uva__rt_job_begin(w->stage.source.rt))
        return false;
    uva__stage_acquire(&w->stage);
    uva__atomic64_add(&w->working, 1);
    uva__atomic64_add(&w->working_bytes, (uint64_t)wait->batch.info.bytes);
    return true;
}

void uva__ordered_waits_end_work(void *ctx, int64_t bytes)
{
    struct uva__ordered_waits *w = ctx;

    uva__atomic64_sub(&w->working_bytes, (uint64_t)bytes);
    uva__atomic64_sub(&w->working, 1);
    if (uva__atomic64_exchange(&w->full, 0) != 0)
        uva__rt_wake(w->stage.source.rt, &w->stage.wakeup);
    waits_end_job(w);
}

void uva__pending_batch_retype(struct uva__pending_batch *wait,
                               ArrowDeviceType device_type, int64_t device_id)
{
    wait->batch.array.device_type = device_type;
    wait->batch.array.device_id = device_id;
    wait->batch.array.sync_event = NULL;
}

void uva__pending_batch_grow(struct uva__ordered_waits *w,
                             struct uva__pending_batch *wait, int64_t bytes)
{
    bytes = uva__window_size(bytes);
    if (bytes <= wait->batch.info.bytes)
        return;
    w->loop.bytes += bytes - wait->batch.info.bytes;
    wait->batch.info.bytes = bytes;
    if (bytes > w->loop.largest)
        w->loop.largest = bytes;
}

static void ordered_waits_account(struct uva__ordered_waits *w)
{
    uva__source_hold(&w->stage.source, (int64_t)(w->loop.last - w->loop.first),
                     w->loop.bytes);
}

/* Doubles the ring. */
static bool ordered_waits_grow(struct uva__ordered_waits *w)
{
    const struct uva_allocator *allocator = &w->stage.source.rt->allocator;
    const uint64_t size = w->loop.size == 0 ? RING_FIRST : 2 * w->loop.size;
    struct uva__pending_batch *ring =
        uva__memory_new(allocator, sizeof(*ring) * size);

    if (ring == NULL)
        return false;
    for (uint64_t i = w->loop.first; i != w->loop.last; i++)
        ring[i & (size - 1)] = *wait_at(w, i);
    uva__memory_free(allocator, w->loop.ring,
                     sizeof(*w->loop.ring) * w->loop.size);
    w->loop.ring = ring;
    w->loop.size = size;
    return true;
}

/* Gives the next place in the ring; NULL without memory. */
static struct uva__pending_batch *
ordered_waits_put(struct uva__ordered_waits *w,
                  const struct ArrowAsyncTask *task)
{
    struct uva__pending_batch *wait;

    if (w->loop.last - w->loop.first == w->loop.size && !ordered_waits_grow(w))
        return NULL;
    wait = wait_at(w, w->loop.last++);
    *wait = (struct uva__pending_batch){
        .batch.info = {.ordinal = uva__task_ordinal(task),
                       .bytes = uva__task_bytes(task)}};
    w->loop.bytes += wait->batch.info.bytes;
    if (wait->batch.info.bytes > w->loop.largest)
        w->loop.largest = wait->batch.info.bytes;
    return wait;
}

void uva__ordered_waits_task(struct uva__stage *stage,
                             struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__ordered_waits *w = ordered_waits_of(stage);
    struct uva__pending_batch *wait = NULL;

    w->loop.requested--;
    if (!w->loop.lost)
        wait = ordered_waits_put(w, task);
    ordered_waits_account(w);
    if (wait == NULL) {
        w->loop.lost = true;
        uva__failure_set(&stage->inlet.failure, &stage->source.rt->allocator,
                         ENOMEM, NULL, NULL);
        uva__task_drop(task);
        return;
    }
    wait->batch.code = task->extract_data(task, &wait->batch.array);
    if (wait->batch.code != 0)
        return; /* the producer above reports why */
    if (uva__metadata_copy(&stage->source.rt->allocator, metadata,
                           &wait->batch.info.metadata) == ENOMEM)
        uva__pending_batch_fail(w, wait, ENOMEM, NULL);
    else
        w->ops->begin(w, wait);
}

/* ---- the loop: as a source ---------------------------------------------- */

/* A wait is over: has the stage complete its batch, and releases the wait. */
static void wait_collect(struct uva__ordered_waits *w,
                         struct uva__pending_batch *wait)
{
    struct uva_watch *watch = wait->watch;
    struct uva_error error;

    uva__meter_wait(w->stage.source.meter, "device", wait->batch.info.ordinal,
                    wait->since_ns);
    (void)uva__event_wait_outcome(watch, &error);
    w->ops->over(w, wait, &error);
    wait->watch = NULL;
    uva__event_wait_release(watch);
}

/* False: wait_over() runs after this, and posts the stage. */
static bool wait_is_over(struct uva__ordered_waits *w,
                         const struct uva__pending_batch *wait)
{
    if (!uva__event_wait_is_over(wait->watch))
        uva__atomic64_exchange(&w->awaited, (uintptr_t)wait->watch);
    return uva__event_wait_is_over(wait->watch);
}

/* Counts the batches that can be passed on. Returns whether one that failed
 * stands behind them. */
static bool ordered_waits_poll(struct uva__ordered_waits *w)
{
    int64_t ready = w->stage.source.ready;
    bool failed = false, waits = false;
    struct uva__pending_batch *wait;

    for (uint64_t i = ordered_waits_head(w);
         i != w->loop.last && !failed && !waits; i++) {
        wait = wait_at(w, i);
        failed = wait->batch.code != 0; /* perhaps with a call in flight */
        if (!failed && wait->watch != NULL && wait_is_over(w, wait)) {
            wait_collect(w, wait);
            failed = wait->batch.code != 0;
        }
        waits = !failed && wait->watch != NULL;
        ready += !failed && !waits;
    }
    uva__meter_block(w->stage.source.meter,
                     waits ? UVA_WAITING_DEVICE : UVA_WAITING_NONE);
    w->stage.source.ready = ready;
    return failed;
}

/* The end or error of the producer above follows when all batches before it
 * have been passed on. The failure of a wait takes the place of its batch. A
 * release without an end or error is an error. */
static void ordered_waits_conclude(struct uva__ordered_waits *w, bool failed)
{
    struct uva__stage *stage = &w->stage;
    struct uva__source *source = &stage->source;
    const int64_t used = (int64_t)(w->loop.last - w->loop.first);

    if (source->failure.code != 0 || source->ended)
        return;
    if (failed && w->loop.fault.code != 0)
        uva__failure_move(&w->loop.fault, &source->failure,
                          &source->rt->allocator);
    else if (failed)
        uva__inlet_fail_extraction(
            &stage->inlet, wait_at(w, ordered_waits_head(w))->batch.code,
            source);
    else if (used == source->ready)
        uva__inlet_conclude(&stage->inlet, source);
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many of `room` more batches may come, with `bytes` held. A window accepts
 * another batch while it holds fewer bytes than its limit. */
static int64_t ordered_waits_fit(const struct uva__ordered_waits *w,
                                 int64_t room, int64_t bytes)
{
    int64_t fits;

    if (w->loop.largest < 0) /* the first batch has room, and shows a size */
        return w->loop.requested == 0;
    fits = uva__window_fit(&w->window, room, bytes, w->loop.requested,
                           w->loop.largest);
    return fits == 0 && w->loop.requested == 0 && bytes < w->window.bytes
               ? room > 0
               : fits;
}

/* The batches in the ring take room of the window, or those with work that goes
 * on, whichever are more: some are in both. The bit in `full` is set before the
 * counts are read, so work that ends after that wakes the loop. */
static int64_t ordered_waits_room(struct uva__ordered_waits *w, int64_t demand)
{
    const int64_t used = (int64_t)(w->loop.last - w->loop.first);
    int64_t working, bytes, room;

    if (uva__atomic64_load(&w->working) != 0)
        uva__atomic64_exchange(&w->full, 1);
    working = (int64_t)uva__atomic64_load(&w->working);
    bytes = (int64_t)uva__atomic64_load(&w->working_bytes);
    room = uva__window_room(&w->window, demand,
                            larger_of(used, working) + w->loop.requested);
    return ordered_waits_fit(w, room, larger_of(w->loop.bytes, bytes));
}

static void ordered_waits_request(struct uva__ordered_waits *w, int64_t demand)
{
    int64_t room;

    w->loop.started = w->loop.started || demand > 0;
    room = w->loop.started ? ordered_waits_room(w, demand) : 0;
    if (room == 0)
        return;
    w->loop.requested += room;
    uva__inlet_request(&w->stage.inlet, room);
}

static bool ordered_waits_prepare(struct uva__ordered_waits *w)
{
    return w->loop.ring != NULL ||
           (ordered_waits_grow(w) &&
            (w->ops->prepare == NULL || w->ops->prepare(w)));
}

/* Starts the timer for the time limit of the oldest wait. */
static void ordered_waits_set_timer(struct uva__ordered_waits *w)
{
    const uint64_t head = ordered_waits_head(w);
    const bool wanted = w->timeout_ms > 0 && head != w->loop.last &&
                        wait_at(w, head)->watch != NULL &&
                        wait_at(w, head)->batch.code == 0;
    uint64_t now;

    if (w->loop.timer.running && wanted && w->loop.timed == head)
        return;
    uva__timer_stop(w->stage.source.rt, &w->loop.timer);
    if (!wanted)
        return;
    w->loop.timed = head;
    now = uva__clock_ns();
    uva__timer_start(
        w->stage.source.rt, &w->loop.timer,
        wait_at(w, head)->due_ns > now
            ? (int64_t)((wait_at(w, head)->due_ns - now) / 1000000) + 1
            : 0);
}

void uva__ordered_waits_pull(struct uva__source *source, int64_t demand)
{
    struct uva__ordered_waits *w = ordered_waits_at(source);

    if (!source->schema_known) {
        if (w->stage.inlet.failure.code != 0)
            ordered_waits_conclude(w, false);
        return;
    }
    if (!ordered_waits_prepare(w)) {
        uva__failure_format(&source->failure, &source->rt->allocator, ENOMEM,
                            "no memory for a stage of devices");
        return;
    }
    ordered_waits_conclude(w, ordered_waits_poll(w));
    ordered_waits_set_timer(w);
    ordered_waits_account(w);
    ordered_waits_request(w, demand);
}

/* False: a call of the driver's uses the batch. */
static bool wait_clear(struct uva__ordered_waits *w,
                       struct uva__pending_batch *wait)
{
    if (wait->watch != NULL && !wait_is_over(w, wait))
        return false;
    if (wait->watch != NULL || wait->batch.code == 0)
        uva_array_release(&wait->batch.array);
    if (wait->watch != NULL)
        uva__event_wait_release(wait->watch);
    uva__metadata_fini(&wait->batch.info.metadata,
                       &w->stage.source.rt->allocator, NULL);
    w->loop.bytes -= wait->batch.info.bytes;
    return true;
}

struct uva__task *uva__ordered_waits_take(struct uva__source *source)
{
    struct uva__ordered_waits *w = ordered_waits_at(source);
    struct uva__task *task = uva__producer_take_task(source->producer);
    struct uva__pending_batch *wait;

    if (task == NULL)
        return NULL;
    wait = wait_at(w, w->loop.first++);
    source->ready--;
    w->loop.bytes -= wait->batch.info.bytes;
    uva__task_fill_entry(task, &wait->batch, NULL);
    return task;
}

/* ---- time limits, stop --------------------------------------------------- */

static void wait_give_up(struct uva__ordered_waits *w,
                         struct uva__pending_batch *wait)
{
    struct uva_watch *watch = wait->watch;

    wait->watch = NULL;
    if (uva__event_wait_abandon(watch, &wait->batch.array)) {
        waits_end_job(w);
        return;
    }
    uva_array_release(&wait->batch.array);
    uva__event_wait_release(watch);
}

/* Abandons a wait. The device may still use the batch, so the wait takes it.
 * False: a call of the driver's is in flight, and uses the consumer's device
 * stream; the wait is over when that returns. */
static bool wait_abandon(struct uva__ordered_waits *w,
                         struct uva__pending_batch *wait)
{
    struct uva_watch *watch = wait->watch;

    if (watch == NULL)
        return true;
    if (!uva__event_wait_unchain(watch) && !uva__event_wait_is_over(watch))
        return false;
    wait_give_up(w, wait);
    return true;
}

static void ordered_waits_expire(struct uva__timer *timer)
{
    struct uva__ordered_waits *w =
        uva__container_of(timer, struct uva__ordered_waits, loop.timer);
    struct uva__pending_batch *wait = wait_at(w, w->loop.timed);
    struct uva_error error;

    assert(w->loop.timed == ordered_waits_head(w) && wait->watch != NULL);
    if (!uva__event_wait_is_over(wait->watch)) {
        (void)uva__wait_error_timeout(wait->watch, w->timeout_ms, &error);
        if (wait_abandon(w, wait))
            uva__pending_batch_fail(w, wait, ETIMEDOUT, &error);
        else
            pending_batch_note(w, wait, ETIMEDOUT, &error);
    }
    uva__producer_wake(w->stage.source.producer);
}

/* Returns whether the ring is empty: no call of the driver's is in flight. */
static bool ordered_waits_clear(struct uva__ordered_waits *w)
{
    while (w->loop.first != w->loop.last &&
           wait_clear(w, wait_at(w, w->loop.first)))
        w->loop.first++;
    return w->loop.first == w->loop.last;
}

static void ordered_waits_end_stop(struct uva__ordered_waits *w)
{
    uva__timer_stop(w->stage.source.rt, &w->loop.stuck);
    uva__loop_untrack(w->stage.source.rt, &w->loop.object);
    uva__producer_end_stop(w->stage.source.producer);
}

/* A call of the driver's does not return. It is left to itself, with the
 * batch. */
static void ordered_waits_leave_stuck(struct uva__timer *timer)
{
    struct uva__ordered_waits *w =
        uva__container_of(timer, struct uva__ordered_waits, loop.stuck);

    for (uint64_t i = w->loop.first; i != w->loop.last; i++)
        if (wait_at(w, i)->watch != NULL)
            wait_give_up(w, wait_at(w, i));
    (void)ordered_waits_clear(w);
    ordered_waits_end_stop(w);
}

static void ordered_waits_abort(struct uva__open_object *object)
{
    struct uva__ordered_waits *w =
        uva__container_of(object, struct uva__ordered_waits, loop.object);

    uva__timer_start(w->stage.source.rt, &w->loop.stuck, UVA__LIMIT_DRIVER_MS);
}

void uva__ordered_waits_stop(struct uva__source *source)
{
    struct uva__ordered_waits *w = ordered_waits_at(source);

    uva__stage_stop(source);
    uva__source_hold(source, 0, 0);
    uva__timer_stop(source->rt, &w->loop.timer);
    for (uint64_t i = w->loop.first; i != w->loop.last; i++)
        (void)wait_abandon(w, wait_at(w, i));
    if (ordered_waits_clear(w))
        return;
    source->stopping++;
    uva__loop_track(source->rt, &w->loop.object);
}

static bool ordered_waits_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva__ordered_waits *w =
        uva__container_of(wakeup, struct uva__ordered_waits, stage.wakeup);

    if (!w->stage.source.stopped)
        uva__producer_run(w->stage.source.producer);
    else if (w->loop.first != w->loop.last && ordered_waits_clear(w))
        ordered_waits_end_stop(w);
    return false;
}

/* ---- life --------------------------------------------------------------- */

void uva__ordered_waits_init(struct uva__ordered_waits *w,
                             const struct uva__stage_ops *stage_ops,
                             const struct uva__ordered_waits_ops *ops,
                             struct uva__producer *above,
                             struct uva__devices *devices)
{
    static const struct uva__wakeup_ops wakeup_ops = {ordered_waits_on_wakeup,
                                                      uva__stage_free};

    w->ops = ops;
    w->devices = uva__devices_acquire(devices);
    w->loop.timer.fire = ordered_waits_expire;
    w->loop.stuck.fire = ordered_waits_leave_stuck;
    w->loop.object.abort = ordered_waits_abort;
    w->loop.largest = -1;
    uva__stage_init(&w->stage, stage_ops, &wakeup_ops, above);
    w->stage.source.sized = above->source->sized && above->maps == NULL;
}

void uva__ordered_waits_fini(struct uva__ordered_waits *w,
                             const struct uva_allocator *allocator)
{
    assert(w->loop.first == w->loop.last);
    uva__failure_fini(&w->loop.fault, allocator);
    uva__memory_free(allocator, w->loop.ring,
                     sizeof(*w->loop.ring) * w->loop.size);
    uva__devices_release(w->devices);
}
