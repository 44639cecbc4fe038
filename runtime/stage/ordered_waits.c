/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  task -> extracted here, begun by the stage: nothing to wait for,
 *              or a watch, which posts the stage when it is over -> seen ->
 *              taken by the one below, the oldest first.
 *
 * What can fail: a wait: what stands before it is passed on, then the error;
 *              what stands behind it is released.
 *
 * On stop:     watches are abandoned, each with its batch. */
#include "stage/ordered_waits.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/memory.h"
#include "arrow/metadata.h"
#include "device/wait_error.h"
#include "stream/slots.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

static struct uva__waits *waits_of(struct uva__operator *op)
{
    return uva__container_of(op, struct uva__waits, op);
}

static struct uva__waits *waits_at(struct uva__feed *feed)
{
    return waits_of(uva__operator_of(feed));
}

static struct uva__wait *wait_at(struct uva__waits *w, uint64_t index)
{
    return &w->loop.ring[index & (w->loop.size - 1)];
}

/* The oldest that cannot be passed on. */
static uint64_t waits_head(const struct uva__waits *w)
{
    return w->loop.first + (uint64_t)w->op.feed.ready;
}

/* ---- one batch ---------------------------------------------------------- */

void uva__wait_fail(struct uva__waits *w, struct uva__wait *wait, int code,
                    const struct uva_error *error)
{
    uva_array_release(&wait->array);
    wait->code = code;
    if (w->loop.fault.code == 0)
        uva__failure_set(&w->loop.fault, &w->op.feed.hub->allocator, code,
                         error, NULL);
}

/* It will not be told any more. A close waits for this, as it does for jobs. */
static void wait_forget(struct uva__waits *w)
{
    struct uva__hub *hub = w->op.feed.hub;

    uva__operator_release(&w->op);
    uva__hub_job_end(hub);
}

/* Any thread, a vendor's too. Those behind the oldest are looked at when that
 * one is over. */
static void wait_over(struct uva_watch *watch)
{
    struct uva__waits *w = watch->client;

    if (uva__word_or(&w->awaited, 0) == (uintptr_t)watch)
        uva__hub_post(w->op.feed.hub, &w->op.node);
    wait_forget(w);
}

/* False: there was no memory, and the batch is lost. */
static bool wait_prepare(struct uva__waits *w, struct uva__wait *wait,
                         const struct uva_device_event *event)
{
    const uint64_t patience_ns = (uint64_t)w->timeout_ms * 1000000;

    if (!uva__hub_job_begin(w->op.feed.hub)) {
        uva__wait_fail(w, wait, ESHUTDOWN, NULL);
        return false;
    }
    if (uva__watch_new(w->devices, event, wait_over, w, &wait->watch) != 0) {
        uva__hub_job_end(w->op.feed.hub);
        uva__wait_fail(w, wait, ENOMEM, NULL);
        return false;
    }
    if (patience_ns > 0)
        wait->due_ns = uva__clock_ns() + patience_ns;
    uva__operator_acquire(&w->op);
    return true;
}

void uva__wait_watch(struct uva__waits *w, struct uva__wait *wait,
                     const struct uva_device_event *event, void *device_stream)
{
    if (!wait_prepare(w, wait, event))
        return;
    wait->watch->device_stream = device_stream;
    uva__watch_begin(wait->watch);
}

void uva__wait_work(struct uva__waits *w, struct uva__wait *wait,
                    const struct uva_device_event *event,
                    struct uva__work *work)
{
    if (!wait_prepare(w, wait, event)) {
        work->free(work);
        return;
    }
    wait->watch->work = work;
    uva__watch_begin(wait->watch);
}

bool uva__waits_depart(struct uva__waits *w, const struct uva__wait *wait)
{
    if (!uva__hub_job_begin(w->op.feed.hub))
        return false;
    uva__operator_acquire(&w->op);
    uva__word_add(&w->away, 1);
    uva__word_add(&w->away_bytes, (uint64_t)wait->bytes);
    return true;
}

void uva__waits_land(void *ctx, int64_t bytes)
{
    struct uva__waits *w = ctx;

    uva__word_sub(&w->away_bytes, (uint64_t)bytes);
    uva__word_sub(&w->away, 1);
    if (uva__word_exchange(&w->full, 0) != 0)
        uva__hub_post(w->op.feed.hub, &w->op.node);
    wait_forget(w);
}

void uva__wait_retype(struct uva__wait *wait, ArrowDeviceType device_type,
                      int64_t device_id)
{
    wait->array.device_type = device_type;
    wait->array.device_id = device_id;
    wait->array.sync_event = NULL; /* EV-01 */
}

void uva__waits_task(struct uva__operator *op, struct ArrowAsyncTask *task,
                     const char *metadata)
{
    struct uva__waits *w = waits_of(op);
    struct uva__wait *wait = wait_at(w, w->loop.last++);

    w->loop.asked--;
    *wait = (struct uva__wait){.ordinal = uva__task_ordinal(task),
                               .bytes = uva__task_bytes(task)};
    w->loop.bytes += wait->bytes;
    wait->code = task->extract_data(task, &wait->array);
    if (wait->code != 0)
        return; /* the one above says why */
    if (uva__metadata_copy(&op->feed.hub->allocator, metadata, &wait->metadata,
                           &wait->metadata_size) == ENOMEM)
        uva__wait_fail(w, wait, ENOMEM, NULL);
    else
        w->ops->begin(w, wait);
}

/* ---- as a feed ---------------------------------------------------------- */

/* Gives the watch up: it is over. */
static void wait_see(struct uva__waits *w, struct uva__wait *wait)
{
    struct uva_watch *watch = wait->watch;
    struct uva_error error;

    (void)uva__watch_outcome(watch, &error);
    w->ops->seen(w, wait, &error);
    wait->watch = NULL;
    uva__watch_release(watch);
}

/* False: wait_over() comes behind this, and posts. */
static bool wait_is_over(struct uva__waits *w, const struct uva__wait *wait)
{
    if (!uva__watch_is_over(wait->watch))
        uva__word_exchange(&w->awaited, (uintptr_t)wait->watch);
    return uva__watch_is_over(wait->watch);
}

/* Counts how many more can be passed on. True: behind them stands one that
 * failed.
 */
static bool waits_look(struct uva__waits *w)
{
    int64_t ready = w->op.feed.ready;
    bool failed = false;
    struct uva__wait *wait;

    for (uint64_t i = waits_head(w); i != w->loop.last && !failed; i++) {
        wait = wait_at(w, i);
        if (wait->watch != NULL && wait_is_over(w, wait))
            wait_see(w, wait);
        if (wait->watch != NULL)
            break;
        failed = wait->code != 0;
        ready += !failed;
    }
    w->op.feed.ready = ready;
    return failed;
}

/* What the one above said last comes when all before it has been passed on; a
 * fault of an event comes in the place of its batch. */
static void waits_conclude(struct uva__waits *w, bool failed)
{
    struct uva__operator *op = &w->op;
    struct uva__feed *feed = &op->feed;
    const int64_t used = (int64_t)(w->loop.last - w->loop.first);

    if (feed->failure.code != 0 || feed->ended)
        return;
    if (failed && w->loop.fault.code != 0)
        uva__failure_move(&w->loop.fault, &feed->failure,
                          &feed->hub->allocator);
    else if (op->failure.code != 0 && (failed || used == feed->ready))
        uva__failure_move(&op->failure, &feed->failure, &feed->hub->allocator);
    else if (failed && op->released) /* and never said why (ER-12) */
        uva__failure_set(&feed->failure, &feed->hub->allocator,
                         wait_at(w, waits_head(w))->code, NULL, NULL);
    else
        feed->ended = op->ended && !failed && used == feed->ready;
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The window is taken by what is here, or by what is away, some of which is
 * here too. Who lands behind the look has the loop look again. */
static int64_t waits_room(struct uva__waits *w, int64_t demand)
{
    const int64_t used = (int64_t)(w->loop.last - w->loop.first);
    int64_t away, bytes;

    if (uva__word_load(&w->away) != 0)
        uva__word_exchange(&w->full, 1);
    away = (int64_t)uva__word_load(&w->away);
    bytes = (int64_t)uva__word_load(&w->away_bytes);
    if ((used > 0 || away > 0) &&
        larger_of(w->loop.bytes, bytes) >= w->window.bytes)
        return 0;
    return uva__window_room(&w->window, demand,
                            larger_of(used, away) + w->loop.asked);
}

static void waits_ask(struct uva__waits *w, int64_t demand)
{
    int64_t room;

    w->loop.begun = w->loop.begun || demand > 0;
    room = w->loop.begun ? waits_room(w, demand) : 0;
    if (room == 0)
        return;
    w->loop.asked += room;
    uva__operator_request(&w->op, room);
}

static bool waits_prepare(struct uva__waits *w)
{
    if (w->loop.ring != NULL)
        return true;
    w->loop.size = uva__window_ring(w->window.batches);
    w->loop.ring = uva__memory_new(&w->op.feed.hub->allocator,
                                   sizeof(*w->loop.ring) * w->loop.size);
    return w->loop.ring != NULL &&
           (w->ops->prepare == NULL || w->ops->prepare(w));
}

/* Has the timer fire when the patience with the oldest one is over. */
static void waits_set_timer(struct uva__waits *w)
{
    const uint64_t head = waits_head(w);
    const bool wanted = w->timeout_ms > 0 && head != w->loop.last &&
                        wait_at(w, head)->watch != NULL;
    uint64_t now;

    if (w->loop.timer.running && wanted && w->loop.timed == head)
        return;
    uva__timer_stop(w->op.feed.hub, &w->loop.timer);
    if (!wanted)
        return;
    w->loop.timed = head;
    now = uva__clock_ns();
    uva__timer_start(
        w->op.feed.hub, &w->loop.timer,
        wait_at(w, head)->due_ns > now
            ? (int64_t)((wait_at(w, head)->due_ns - now) / 1000000) + 1
            : 0);
}

void uva__waits_pull(struct uva__feed *feed, int64_t demand)
{
    struct uva__waits *w = waits_at(feed);

    if (!feed->schema_known) {
        if (w->op.failure.code != 0)
            waits_conclude(w, false);
        return;
    }
    if (!waits_prepare(w)) {
        uva__failure_say(&feed->failure, &feed->hub->allocator, ENOMEM,
                         "no memory for a stage of devices");
        return;
    }
    waits_conclude(w, waits_look(w));
    waits_set_timer(w);
    waits_ask(w, demand);
}

static void wait_clear(struct uva__waits *w, struct uva__wait *wait)
{
    if (wait->code == 0)
        uva_array_release(&wait->array);
    uva__memory_free(&w->op.feed.hub->allocator, wait->metadata,
                     wait->metadata_size);
    wait->metadata = NULL;
    w->loop.bytes -= wait->bytes;
}

struct uva__task *uva__waits_take(struct uva__feed *feed)
{
    struct uva__waits *w = waits_at(feed);
    struct uva__task *task = uva__producer_take_task(feed->producer);
    struct uva__wait *wait;

    if (task == NULL)
        return NULL;
    wait = wait_at(w, w->loop.first++);
    feed->ready--;
    if (uva__task_fill(task, &feed->hub->allocator, &wait->array,
                       wait->metadata) != 0) {
        uva__stock_put_task(feed->hub, task);
        task = NULL;
    } else {
        task->ordinal = wait->ordinal;
        task->bytes = wait->bytes;
    }
    wait_clear(w, wait);
    return task;
}

/* ---- too late ----------------------------------------------------------- */

/* Nobody waits for it any more; its batch goes with it. */
static void wait_abandon(struct uva__waits *w, struct uva__wait *wait)
{
    struct uva_watch *watch = wait->watch;

    if (watch == NULL)
        return;
    wait->watch = NULL;
    if (uva__watch_abandon(watch, &wait->array)) {
        wait_forget(w);
        return;
    }
    uva_array_release(&wait->array);
    uva__watch_release(watch);
}

static void waits_expire(struct uva__timer *timer)
{
    struct uva__waits *w =
        uva__container_of(timer, struct uva__waits, loop.timer);
    struct uva__wait *wait = wait_at(w, w->loop.timed);
    struct uva_error error;

    assert(w->loop.timed == waits_head(w) && wait->watch != NULL);
    if (!uva__watch_is_over(wait->watch)) {
        (void)uva__notice_late(wait->watch, w->timeout_ms, &error);
        wait_abandon(w, wait);
        uva__wait_fail(w, wait, ETIMEDOUT, &error);
    }
    uva__producer_wake(w->op.feed.producer);
}

void uva__waits_stop(struct uva__feed *feed)
{
    struct uva__waits *w = waits_at(feed);
    struct uva__wait *wait;

    uva__operator_stop(feed);
    uva__timer_stop(feed->hub, &w->loop.timer);
    for (; w->loop.first != w->loop.last; w->loop.first++) {
        wait = wait_at(w, w->loop.first);
        wait_abandon(w, wait);
        wait_clear(w, wait);
    }
}

static bool waits_visit(struct uva__node *node)
{
    struct uva__waits *w = uva__container_of(node, struct uva__waits, op.node);

    if (!w->op.stopped)
        uva__producer_wake(w->op.feed.producer);
    return false;
}

/* ---- life --------------------------------------------------------------- */

void uva__waits_init(struct uva__waits *w,
                     const struct uva__operator_ops *operator_ops,
                     const struct uva__waits_ops *ops,
                     struct uva__producer *above, struct uva__devices *devices)
{
    static const struct uva__node_ops node_ops = {waits_visit,
                                                  uva__operator_free};

    w->ops = ops;
    w->devices = uva__devices_acquire(devices);
    w->loop.timer.fire = waits_expire;
    uva__operator_init(&w->op, operator_ops, &node_ops, above);
}

void uva__waits_fini(struct uva__waits *w,
                     const struct uva_allocator *allocator)
{
    assert(w->loop.first == w->loop.last);
    uva__failure_fini(&w->loop.fault, allocator);
    uva__memory_free(allocator, w->loop.ring,
                     sizeof(*w->loop.ring) * w->loop.size);
    uva__devices_release(w->devices);
}
