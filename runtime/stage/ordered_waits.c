/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that wait for events, passed on in order.
 *
 * Happy path:  a task is extracted at once -> the stage begins a wait, or finds
 *              that it is not needed -> the wait is over, and posts the stage
 *              -> once all batches before it can be passed on, the stage
 *              completes the batch -> the producer below takes it.
 *
 * Failures:    a wait: the batches before it are passed on, then the error; the
 *              batches after it are released. The stages above are cancelled
 *              once the failure is known: when the batch comes, or in its turn.
 *
 * On stop:     waits are abandoned, each with its batch. If a driver call is in
 *              flight, which uses the consumer's device stream, the stop ends
 *              when that has returned. A close of the runtime waits for that
 *              only for a limited time.
 *
 * Clauses: EV-01, ER-12. */
#include "stage/ordered_waits.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "device/wait_error.h"
#include "uvarrow/arrow.h"

static struct uva__ordered_waits *ordered_waits_at(struct uva__source *source)
{
    return uva__ordered_waits_of(uva__stage_of(source));
}

static struct uva__pending_batch *wait_of(struct uva__flight_batch *batch)
{
    return uva__container_of(batch, struct uva__pending_batch, batch);
}

/* Gives the oldest batch that cannot be passed on, or NULL. */
static struct uva__pending_batch *
ordered_waits_head(const struct uva__ordered_waits *w)
{
    struct uva__link *link = w->flight.loop.order.head;

    return link == NULL
               ? NULL
               : uva__container_of(link, struct uva__pending_batch, batch.link);
}

/* ---- one batch ---------------------------------------------------------- */

void uva__pending_batch_fail(struct uva__ordered_waits *w,
                             struct uva__pending_batch *wait, int code,
                             const struct uva_error *error)
{
    uva_array_release(uva__pending_batch_array(wait));
    w->flight.loop.failed = true;
    uva__failure_set(&wait->batch.failure,
                     &w->flight.stage.source.rt->allocator, code, error, NULL);
}

/* Ends the job of a wait, or of work: no callback follows. A close waits for
 * this. */
static void waits_end_job(struct uva__ordered_waits *w)
{
    struct uva__rt *rt = w->flight.stage.source.rt;

    uva__stage_release(&w->flight.stage);
    uva__rt_job_end(rt);
}

/* The callback of a wait; on any thread, also a vendor's. */
static void wait_over(struct uva_watch *watch)
{
    struct uva__pending_batch *wait = watch->client;
    struct uva__ordered_waits *w = wait->waits;

    uva__flight_finish(&w->flight, &wait->batch);
    waits_end_job(w);
}

bool uva__pending_batch_prepare(struct uva__ordered_waits *w,
                                struct uva__pending_batch *wait,
                                const struct uva_device_event *event)
{
    struct uva__rt *rt = w->flight.stage.source.rt;
    const uint64_t limit_ns = (uint64_t)w->timeout_ms * 1000000;

    if (!uva__rt_job_begin(rt)) {
        uva__pending_batch_fail(w, wait, ESHUTDOWN, NULL);
        return false;
    }
    if (uva__event_wait_new(w->devices, event, wait_over, wait, &wait->watch) !=
        0) {
        uva__rt_job_end(rt);
        uva__pending_batch_fail(w, wait, ENOMEM, NULL);
        return false;
    }
    wait->since_ns = uva__span_begin(rt);
    if (limit_ns > 0)
        wait->due_ns = uva__clock_ns() + limit_ns;
    wait->waits = w;
    wait->batch.over = false;
    uva__stage_acquire(&w->flight.stage);
    return true;
}

enum uva__event_kind
uva__pending_batch_classify(struct uva__ordered_waits *w,
                            struct uva__pending_batch *wait)
{
    const struct ArrowDeviceArray *array = uva__pending_batch_array(wait);
    struct uva_error error;
    const enum uva__event_kind kind = uva__devices_classify(
        w->devices, array->device_type, array->sync_event, &error);

    if (kind == UVA__EVENT_UNKNOWN)
        uva__pending_batch_fail(w, wait, error.code, &error);
    return kind;
}

bool uva__ordered_waits_begin_work(struct uva__ordered_waits *w,
                                   const struct uva__pending_batch *wait)
{
    if (!uva__rt_job_begin(w->flight.stage.source.rt))
        return false;
    uva__stage_acquire(&w->flight.stage);
    uva__atomic64_add(&w->working, 1);
    uva__atomic64_add(&w->working_bytes,
                      (uint64_t)wait->batch.slot->info.bytes);
    return true;
}

void uva__ordered_waits_end_work(void *ctx, int64_t bytes)
{
    struct uva__ordered_waits *w = ctx;

    uva__atomic64_sub(&w->working_bytes, (uint64_t)bytes);
    uva__atomic64_sub(&w->working, 1);
    if (uva__atomic64_exchange(&w->full, 0) != 0)
        uva__rt_wake(w->flight.stage.source.rt, &w->flight.stage.source.wakeup);
    waits_end_job(w);
}

void uva__pending_batch_complete(struct uva__pending_batch *wait)
{
    struct ArrowDeviceArray *array = uva__pending_batch_array(wait);

    if (array->sync_event != NULL)
        wait->batch.slot->measured = false;
    array->sync_event = NULL;
}

void uva__pending_batch_retype(struct uva__pending_batch *wait,
                               ArrowDeviceType device_type, int64_t device_id)
{
    struct ArrowDeviceArray *array = uva__pending_batch_array(wait);

    array->device_type = device_type;
    array->device_id = device_id;
    array->sync_event = NULL;
    wait->batch.slot->measured = false;
}

void uva__pending_batch_grow(struct uva__ordered_waits *w,
                             struct uva__pending_batch *wait, int64_t bytes)
{
    struct uva__batch_info *info = &wait->batch.slot->info;

    bytes = uva__window_size(bytes);
    wait->batch.slot->measured = false;
    if (bytes <= info->bytes)
        return;
    w->flight.stage.in.bytes += bytes - info->bytes;
    info->bytes = bytes;
    uva__intake_note_size(&w->flight.stage.in, bytes);
}

void uva__ordered_waits_task(struct uva__stage *stage,
                             struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__ordered_waits *w = ordered_waits_at(&stage->source);
    struct uva__flight_batch *batch =
        uva__flight_admit(&w->flight, task, metadata, UVA__KEPT_BATCH);

    if (batch == NULL)
        return;
    wait_of(batch)->watch = NULL;
    uva__flight_put(&w->flight, batch);
    w->ops->begin(w, wait_of(batch));
}

/* ---- the loop: as a source ---------------------------------------------- */

/* The turn of a batch has come: the stage completes it, after a wait. */
static void ordered_waits_complete(struct uva__flight *flight,
                                   struct uva__flight_batch *batch)
{
    struct uva__ordered_waits *w =
        uva__container_of(flight, struct uva__ordered_waits, flight);
    struct uva__pending_batch *wait = wait_of(batch);
    struct uva_watch *watch = wait->watch;
    struct uva_error error;

    if (watch == NULL)
        return;
    uva__meter_wait(flight->stage.source.meter, "device",
                    batch->slot->info.ordinal, wait->since_ns);
    (void)uva__event_wait_outcome(watch, &error);
    w->ops->over(w, wait, &error);
    wait->watch = NULL;
    uva__event_wait_release(watch);
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The batches that are held take room of the window, or the batches with work
 * that goes on, whichever are more: some are both. The bit in `full` is set
 * before the counts are read, so work that ends after that wakes the loop. A
 * window accepts another batch while it holds fewer bytes than its limit. */
static int64_t ordered_waits_room(struct uva__ordered_waits *w, int64_t demand)
{
    const struct uva__intake *in = &w->flight.stage.in;
    int64_t held, bytes, room, fits;

    if (uva__atomic64_load(&w->working) != 0)
        uva__atomic64_exchange(&w->full, 1);
    held = larger_of(in->held, (int64_t)uva__atomic64_load(&w->working));
    bytes =
        larger_of(in->bytes, (int64_t)uva__atomic64_load(&w->working_bytes));
    room = uva__window_room(&in->window, demand, held + in->requested);
    if (room == 0 || in->largest < 0) /* the first batch shows a size */
        return room > 0 && in->requested == 0;
    fits =
        uva__window_fit(&in->window, room, bytes, in->requested, in->largest);
    return fits > 0 || in->requested > 0 || bytes >= in->window.bytes ? fits
                                                                      : 1;
}

static void ordered_waits_request(struct uva__ordered_waits *w, int64_t demand)
{
    struct uva__stage *stage = &w->flight.stage;

    if (uva__intake_start(&stage->in, demand) &&
        stage->source.failure.code == 0 && uva__inlet_is_open(&stage->inlet))
        uva__inlet_request_for(&stage->inlet, &stage->in,
                               ordered_waits_room(w, demand));
}

/* Starts the timer for the time limit of the oldest wait. */
static void ordered_waits_set_timer(struct uva__ordered_waits *w)
{
    const struct uva__pending_batch *head = ordered_waits_head(w);
    const bool wanted = w->timeout_ms > 0 && head != NULL &&
                        !head->batch.over &&
                        w->flight.stage.source.failure.code == 0;
    struct uva__rt *rt = w->flight.stage.source.rt;
    struct uva__timer *timer = &w->flight.stage.timer;

    if (timer->running && wanted && w->loop.timed == head)
        return;
    uva__timer_stop(rt, timer);
    w->loop.timed = head;
    if (wanted)
        uva__timer_start_at(rt, timer, head->due_ns);
}

void uva__ordered_waits_pull(struct uva__source *source, int64_t demand)
{
    struct uva__ordered_waits *w = ordered_waits_at(source);
    const struct uva__pending_batch *head;

    uva__flight_advance(&w->flight);
    head = ordered_waits_head(w);
    uva__meter_block(source->meter, head != NULL && !head->batch.over
                                        ? UVA_WAITING_DEVICE
                                        : UVA_WAITING_NONE);
    ordered_waits_set_timer(w);
    if (w->flight.loop.failed)
        uva__inlet_quit(&w->flight.stage.inlet);
    else
        ordered_waits_request(w, demand);
}

/* ---- time limits, stop --------------------------------------------------- */

/* Abandons a wait that is not known to be over. The device may still use the
 * batch, so the wait takes it. False: the wait is over, and its callback has
 * come or comes. */
static bool wait_abandon(struct uva__ordered_waits *w,
                         struct uva__pending_batch *wait)
{
    if (!uva__event_wait_abandon(wait->watch, uva__pending_batch_array(wait)))
        return false;
    wait->watch = NULL;
    uva__flight_discard(&w->flight, &wait->batch);
    waits_end_job(w);
    return true;
}

/* Whether a driver call is in flight that uses the consumer's device stream:
 * the wait is over when that returns. */
static bool wait_is_in_use(const struct uva__pending_batch *wait)
{
    return !uva__event_wait_unchain(wait->watch) &&
           !uva__event_wait_is_over(wait->watch);
}

/* After a time limit, the stream fails in the place of the batch. */
static void ordered_waits_expire(struct uva__timer *timer)
{
    struct uva__ordered_waits *w =
        uva__container_of(timer, struct uva__ordered_waits, flight.stage.timer);
    struct uva__pending_batch *wait = ordered_waits_head(w);
    struct uva__source *source = &w->flight.stage.source;
    struct uva_error error;

    assert(wait == w->loop.timed && !wait->batch.over);
    if (!uva__event_wait_is_over(wait->watch)) {
        (void)uva__wait_error_timeout(wait->watch, w->timeout_ms, &error);
        (void)uva__list_pop(&w->flight.loop.order);
        if (wait_is_in_use(wait) || !wait_abandon(w, wait))
            uva__list_push_front(&w->flight.loop.order, &wait->batch.link);
        uva__failure_set(&source->failure, &source->rt->allocator, ETIMEDOUT,
                         &error, NULL);
    }
    uva__producer_wake(source->producer);
}

/* Discards a batch after a stop. If its wait is over, the loop has the array,
 * and the callback may still have the batch. */
static void wait_drop(struct uva__ordered_waits *w,
                      struct uva__pending_batch *wait)
{
    struct uva_watch *watch = wait->watch;

    if (!wait->batch.over && wait_abandon(w, wait))
        return;
    wait->watch = NULL;
    if (watch != NULL)
        uva__event_wait_release(watch);
    if (wait->batch.over)
        uva__flight_discard(&w->flight, &wait->batch);
    else
        uva_array_release(uva__pending_batch_array(wait));
}

static void ordered_waits_end_stop(struct uva__ordered_waits *w)
{
    uva__timer_stop(w->flight.stage.source.rt, &w->loop.stuck);
    uva__loop_untrack(w->flight.stage.source.rt, &w->loop.object);
    uva__producer_end_stop(w->flight.stage.source.producer);
}

/* A driver call does not return. It is left to itself, with the batch. */
static void ordered_waits_leave_stuck(struct uva__timer *timer)
{
    struct uva__ordered_waits *w =
        uva__container_of(timer, struct uva__ordered_waits, loop.stuck);
    struct uva__pending_batch *wait;

    while ((wait = ordered_waits_head(w)) != NULL) {
        (void)uva__list_pop(&w->flight.loop.order);
        wait_drop(w, wait);
    }
    ordered_waits_end_stop(w);
}

static void ordered_waits_abort(struct uva__open_object *object)
{
    struct uva__ordered_waits *w =
        uva__container_of(object, struct uva__ordered_waits, loop.object);

    struct uva__rt *rt = w->flight.stage.source.rt;

    uva__timer_start(rt, &w->loop.stuck, rt->close_limit_ms);
}

/* Discards a batch whose callback has come. The calls that a stop waits for are
 * of the batches in the order. */
static void wait_clear(struct uva__flight *flight,
                       struct uva__flight_batch *batch)
{
    struct uva__ordered_waits *w =
        uva__container_of(flight, struct uva__ordered_waits, flight);
    struct uva__pending_batch *wait = wait_of(batch);

    batch->over = true;
    if (wait->watch != NULL)
        uva__list_remove(&flight->loop.order, &batch->link);
    wait_drop(w, wait);
}

void uva__ordered_waits_stop(struct uva__source *source)
{
    struct uva__ordered_waits *w = ordered_waits_at(source);
    struct uva__list order = w->flight.loop.order;
    struct uva__pending_batch *wait;
    struct uva__link *link;

    w->flight.loop.order.head = NULL;
    uva__flight_stop(source);
    while ((link = uva__list_pop(&order)) != NULL) {
        wait = uva__container_of(link, struct uva__pending_batch, batch.link);
        if (!wait->batch.over && wait_is_in_use(wait))
            uva__list_push(&w->flight.loop.order, link);
        else
            wait_drop(w, wait);
    }
    uva__flight_each_done(&w->flight, wait_clear);
    if (uva__list_is_empty(&w->flight.loop.order))
        return;
    source->stopping++;
    uva__loop_track(source->rt, &w->loop.object);
}

void uva__ordered_waits_clear(struct uva__stage *stage)
{
    struct uva__ordered_waits *w = uva__ordered_waits_of(stage);
    const bool waits = !uva__list_is_empty(&w->flight.loop.order);

    uva__flight_each_done(&w->flight, wait_clear);
    if (waits && uva__list_is_empty(&w->flight.loop.order))
        ordered_waits_end_stop(w);
}

/* ---- life --------------------------------------------------------------- */

void uva__ordered_waits_init(struct uva__ordered_waits *w,
                             const struct uva__ordered_waits_ops *ops,
                             const struct uva__stage_setup *setup)
{
    static const struct uva__flight_ops flight_ops = {
        .size = sizeof(struct uva__pending_batch),
        .complete = ordered_waits_complete,
    };
    struct uva__stage *stage = &w->flight.stage;
    const struct uva__producer *above = stage->inlet.above;

    uva__flight_init(&w->flight, &flight_ops);
    w->ops = ops;
    w->devices = uva__devices_acquire(setup->devices);
    stage->timer.fire = ordered_waits_expire;
    w->loop.stuck.fire = ordered_waits_leave_stuck;
    w->loop.object.abort = ordered_waits_abort;
    stage->source.sized = above->source->sized && above->maps == NULL;
}

void uva__ordered_waits_free(struct uva__stage *stage,
                             const struct uva_allocator *allocator)
{
    struct uva__ordered_waits *w = uva__ordered_waits_of(stage);

    assert(uva__list_is_empty(&w->flight.loop.order));
    uva__flight_free(stage, allocator);
    uva__devices_release(w->devices);
}
