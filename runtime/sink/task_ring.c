/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of tasks between the loop thread, which puts tasks in, and one thread
 * that takes them out, extracts them, and blocks while it is empty. The lock
 * guards two counts: the loop publishes how many tasks it has put in, once for
 * each run of its wake-up; the reader reports how many it has taken when it has
 * taken every task that it saw, and when more are to be requested.
 *
 * Happy path:  started -> on_schema: a window is requested -> (tasks go into
 *              the ring -> they are published, and the reader is woken -> the
 *              reader extracts each, and has more requested when few are
 *              left)* -> end -> the reader is woken -> the stream is done.
 *
 * Failures:
 * - the stream: reported after the tasks in the ring, and by every later call;
 * - an extraction: the reader waits for the report of the stream, as each of
 *   our extractions that fails is followed by an on_error or, late, by a
 *   release.
 *
 * On cancel and close: reported before the tasks in the ring, which the loop
 *              drops. A task of ours that is extracted meanwhile goes to the
 *              side that claims it; a task that a checker has wrapped is given
 *              to the reader singly, so the loop drops none that it has. A
 *              release by the reader cancels the stream. So that a cancel has
 *              an effect until then, the stream is done only when the reader
 *              knows how it ended.
 *
 * Calls of the inlet only note facts; the wake-up acts on them. A reader
 * does not spin before it sleeps: it cannot know whether the loop is on another
 * CPU, and if it is not, spinning costs ten times as much as it can save.
 *
 * Clauses: G-66, G-67. */
#include "sink/task_ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { DELAYS_MAX = 3 };

static struct uva__task_ring *task_ring_of(struct uva_stream *stream)
{
    return uva__container_of(stream->sink, struct uva__task_ring, sink);
}

static struct uva__task_ring *task_ring_at(struct uva__inlet *inlet)
{
    return uva__container_of(inlet, struct uva__task_ring, inlet);
}

/* ---- reports to the reader ----------------------------------------------- */

/* Has the wake-up publish all facts noted until it runs. */
static void task_ring_schedule(struct uva__task_ring *r)
{
    if (!r->stream->wakeup.queued)
        uva__rt_wake(r->stream->rt, &r->stream->wakeup);
}

static void task_ring_notify(struct uva__task_ring *r,
                             enum uva__task_ring_event events)
{
    r->loop.events |= events;
    task_ring_schedule(r);
}

/* Counts as many batches as requested as the reader has taken, once few are
 * left. */
static int64_t task_ring_refill_locked(struct uva__task_ring *r)
{
    const struct uva_window *window = &r->options.window;
    const int64_t left = (int64_t)(r->loop.requested - r->locked.taken.tasks);

    if (left > window->batches / 2)
        return 0;
    r->loop.requested += (uint64_t)(window->batches - left);
    r->locked.refill_at = r->loop.requested - (uint64_t)(window->batches / 2);
    return window->batches - left;
}

/* Publishes tasks and events, and reads how far the reader is. */
static void task_ring_publish(struct uva__task_ring *r)
{
    int64_t room;
    bool news;

    uva__lock_take(&r->lock);
    news = uva__atomic64_peek(&r->events) != r->loop.events;
    if (news)
        uva__atomic64_store(&r->events, r->loop.events);
    news = news || r->locked.put != r->loop.put;
    r->locked.put = r->loop.put;
    r->loop.taken = r->locked.taken;
    r->loop.kept = r->locked.kept;
    r->loop.ended = r->locked.ended;
    room = task_ring_refill_locked(r);
    r->locked.awaited = r->loop.paused || (r->loop.share.account != NULL &&
                                           r->loop.taken.tasks != r->loop.put);
    uva__lock_drop(&r->lock);
    if (news)
        uva__parker_unpark(&r->parker);
    if (room > 0)
        uva__inlet_request(&r->inlet, room);
}

/* The device type in the reader's struct cannot be changed any more. */
static void task_ring_check_device(const struct uva__task_ring *r)
{
    const ArrowDeviceType type = r->inlet.handler.producer->device_type;

    if (type != r->device_type)
        uva__rt_log(r->stream->rt, UVA_LOG_WARN, uva__stream_name(r->stream),
                    "DS-05",
                    "to_blocking: data of device type %d comes from a source "
                    "announced as %d; set the device_type of its options",
                    (int)type, (int)r->device_type);
}

static int task_ring_schema(struct uva__inlet *inlet,
                            struct ArrowSchema *schema, struct uva_error *error)
{
    struct uva__task_ring *r = task_ring_at(inlet);
    const int code =
        uva__stream_take_schema(r->stream, inlet->handler.producer, schema);

    if (code != 0)
        return uva_error_set(error, code,
                             "no memory for the facts of the stream");
    task_ring_check_device(r);
    if (inlet->handler.producer == &inlet->above->abi)
        r->loop.events |= UVA__TASK_RING_DIRECT;
    task_ring_notify(r, UVA__TASK_RING_SCHEMA);
    uva__inlet_request(inlet, r->options.window.batches);
    return 0;
}

static bool task_ring_is_full(const struct uva__task_ring *r)
{
    return r->loop.bytes - r->loop.taken.bytes >=
           (uint64_t)r->options.window.bytes;
}

/* States the contents of the ring, as far as the reader has reported. */
static void task_ring_account(struct uva__task_ring *r)
{
    const bool over =
        r->loop.done || (r->loop.events & UVA__TASK_RING_CANCELLED);

    if (r->loop.share.account == NULL)
        return;
    uva__share_hold(&r->loop.share,
                    over ? 0 : (int64_t)(r->loop.put - r->loop.taken.tasks),
                    over ? 0 : (int64_t)(r->loop.bytes - r->loop.taken.bytes));
}

/* Offering stops while the ring is full of bytes. */
static void task_ring_pause(struct uva__task_ring *r)
{
    const bool paused = task_ring_is_full(r);

    if (paused == r->loop.paused || r->inlet.above == NULL)
        return;
    r->loop.paused = paused;
    uva__producer_pause(r->inlet.above, paused);
}

/* Puts a task in. A blocking stream cannot carry its metadata. */
static void task_ring_task(struct uva__inlet *inlet,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__task_ring *r = task_ring_at(inlet);
    struct uva__task_ring_slot *slot = &r->ring[r->loop.put & r->ring_mask];

    (void)metadata;
    assert(r->loop.put - r->loop.taken.tasks <= r->ring_mask);
    assert(!(r->loop.events & UVA__TASK_RING_DIRECT) ||
           uva__task_is_ours(task));
    /* member by member, as the task was just written so: a wider load would
     * have to wait for both stores */
    slot->task.extract_data = task->extract_data;
    slot->task.private_data = task->private_data;
    slot->bytes = uva__task_bytes(task);
    r->loop.bytes += (uint64_t)slot->bytes;
    r->loop.put++;
    task_ring_account(r);
    task_ring_pause(r);
    if (r->loop.put == r->loop.requested)
        task_ring_publish(r); /* no other event can come */
    else
        task_ring_schedule(r);
}

static void task_ring_news(struct uva__inlet *inlet)
{
    struct uva__task_ring *r = task_ring_at(inlet);

    if (inlet->failure.code != 0)
        task_ring_notify(r, UVA__TASK_RING_FAILED);
    else if (inlet->state == UVA__INLET_ENDED)
        task_ring_notify(r, UVA__TASK_RING_END);
}

static void task_ring_released(struct uva__inlet *inlet)
{
    task_ring_notify(task_ring_at(inlet), UVA__TASK_RING_RELEASED);
}

/* ---- the loop: the wake-up ----------------------------------------------- */

/* Slots are used again at once: the token of a task that the reader has
 * extracted is not used any more, but for a cancel that drops the task once
 * more, to which the state of the slot gives no effect. A task that a cancel
 * drops before that is revoked, and its slot goes into quarantine. */
static void task_ring_begin(struct uva_stream *stream)
{
    static const struct uva__producer_hooks hooks = {.reuses_slots = true};

    struct uva__task_ring *r = task_ring_of(stream);

    uva__share_join(&r->loop.share, &stream->tail->source->share);
    stream->tail->loop->asks = true;
    uva__inlet_begin_last(&r->inlet, &hooks, NULL);
}

static void task_ring_handle_cancel(struct uva__task_ring *r)
{
    const struct uva__failure *why = uva__stream_cancelled(r->stream);

    if (why == NULL || r->loop.ended ||
        (r->loop.events & UVA__TASK_RING_CANCELLED))
        return;
    uva__failure_format(&r->inlet.failure, &r->stream->rt->allocator, why->code,
                        "%s", uva__failure_message(why));
    r->loop.events |= UVA__TASK_RING_CANCELLED;
    task_ring_publish(r);
    for (uint64_t i = r->loop.kept; i < r->loop.put; i++)
        uva__task_drop(&r->ring[i & r->ring_mask].task);
    uva__inlet_quit(&r->inlet);
}

static void task_ring_settle(struct uva__task_ring *r)
{
    if (r->loop.done || r->inlet.above != NULL ||
        !(r->loop.ended || (r->loop.events & UVA__TASK_RING_CANCELLED)))
        return;
    r->loop.done = true;
    task_ring_account(r);
    uva__stream_done(r->stream, r->inlet.failure.code,
                     uva__failure_error(&r->inlet.failure));
}

/* Whether the producer is about to bring more tasks, so that one wake-up of the
 * reader serves for all. Only for a few runs, since other objects may be slow
 * in between. */
static bool task_ring_can_delay(const struct uva__task_ring *r)
{
    return r->loop.delays < DELAYS_MAX && r->inlet.above != NULL &&
           r->inlet.above->wakeup.queued &&
           !uva__stream_is_cancelling(r->stream);
}

static void task_ring_on_wakeup(struct uva_stream *stream)
{
    struct uva__task_ring *r = task_ring_of(stream);

    if (task_ring_can_delay(r)) {
        r->loop.delays++;
        uva__rt_wake(stream->rt, &stream->wakeup);
        return;
    }
    r->loop.delays = 0;
    task_ring_publish(r);
    task_ring_handle_cancel(r);
    task_ring_account(r);
    task_ring_pause(r);
    task_ring_settle(r);
}

/* ---- the reader: waiting ------------------------------------------------- */

static int reader_report(struct uva__task_ring *r, int code, const char *text)
{
    r->reader.text = text;
    return code;
}

/* Whether the thread may read, and may wait, if it has to. Once the runtime has
 * closed, no wake-up can come, and it does not wait. */
static int reader_check(struct uva__task_ring *r, bool waits)
{
    const struct uva__rt *rt = r->stream->rt;

    if (!uva__rt_is_alive(rt))
        return reader_report(r, EPERM,
                             "a forked child cannot read its parent's streams");
    if (waits && uva__rt_must_not_wait(rt) && !uva__rt_is_closed(rt))
        return reader_report(
            r, EDEADLK,
            "to_blocking: this would wait on a thread that others wait for: "
            "that of a loop, or a compute worker; read the stream on another "
            "one");
    return 0;
}

/* Reports to the loop how far the reader is. Returns whether to wake it: it is
 * to request more, or waits until all is taken. */
static bool reader_publish_locked(struct uva__task_ring *r, uint64_t events)
{
    const uint64_t taken = r->reader.taken.tasks;
    const bool drained = taken == r->locked.put && r->locked.awaited;

    r->locked.taken = r->reader.taken;
    r->locked.kept = events & UVA__TASK_RING_DIRECT ? taken : r->reader.put;
    if (drained)
        r->locked.awaited = false;
    return drained || taken >= r->locked.refill_at;
}

/* Reports, and returns the events. With TASK in `wanted`, takes all tasks that
 * are published; a task that a checker has wrapped is taken singly, and
 * extracted at once. After a cancel no task is given any more. */
static uint64_t reader_sync(struct uva__task_ring *r, uint64_t wanted)
{
    uint64_t events;
    bool wakes;

    uva__lock_take(&r->lock);
    events = uva__atomic64_peek(&r->events);
    if ((wanted & UVA__TASK_RING_TASK) && r->reader.put != r->locked.put &&
        !(events & UVA__TASK_RING_CANCELLED))
        r->reader.put =
            events & UVA__TASK_RING_DIRECT ? r->locked.put : r->reader.put + 1;
    wakes = reader_publish_locked(r, events);
    /* the loop is woken once for each burst */
    r->reader.refill_at = wakes ? UINT64_MAX : r->locked.refill_at;
    uva__lock_drop(&r->lock);
    if (wakes)
        uva__rt_wake(r->stream->rt, &r->stream->wakeup);
    return r->reader.taken.tasks < r->reader.put ? events | UVA__TASK_RING_TASK
                                                 : events;
}

/* Waits for a bit in `wanted`; returns the whole word. */
static uint64_t reader_await(struct uva__task_ring *r, uint64_t wanted)
{
    uint64_t events = reader_sync(r, wanted);
    uint32_t seen;

    if (events & wanted)
        return events;
    uva__lane_wait_begin();
    for (;;) {
        seen = uva__parker_prepare(&r->parker);
        events = reader_sync(r, wanted);
        if (events & wanted)
            break;
        uva__parker_park(&r->parker, seen);
    }
    uva__parker_finish(&r->parker);
    uva__lane_wait_end();
    return events;
}

/* ---- the reader: taking -------------------------------------------------- */

/* Gives the next task, which the reader has. */
static struct ArrowAsyncTask reader_take(struct uva__task_ring *r)
{
    const struct uva__task_ring_slot *slot =
        &r->ring[r->reader.taken.tasks++ & r->ring_mask];

    r->reader.taken.bytes += (uint64_t)slot->bytes;
    return slot->task;
}

/* Keeps the failure, with the stream's name in its text. */
static void reader_fail(struct uva__task_ring *r)
{
    const struct uva__failure *failure = &r->inlet.failure;
    const char *name = uva__label_whole(r->stream->label);

    uva__failure_format(&r->reader.outcome, &r->stream->rt->allocator,
                        failure->code, "%s%s%s", name != NULL ? name : "",
                        name != NULL ? ": " : "",
                        uva__failure_message(failure));
}

/* Stores how the stream ended, which all later calls return, and lets the
 * stream be done. The remaining tasks in the ring are discarded: the stream
 * failed at an earlier one. After a cancel the loop discards them. */
static int reader_conclude(struct uva__task_ring *r, uint64_t events)
{
    const struct uva__failure *outcome = &r->reader.outcome;
    struct ArrowAsyncTask task;

    if (!r->locked.ended) {
        if (events & UVA__TASK_RING_BAD)
            reader_fail(r);
        while (!(events & UVA__TASK_RING_CANCELLED) &&
               (reader_sync(r, UVA__TASK_RING_TASK) & UVA__TASK_RING_TASK)) {
            task = reader_take(r);
            uva__task_drop(&task);
        }
        uva__lock_take(&r->lock);
        r->locked.ended = true;
        uva__lock_drop(&r->lock);
        uva__rt_wake(r->stream->rt, &r->stream->wakeup);
    }
    return reader_report(r, outcome->code,
                         outcome->code != 0 ? uva__failure_message(outcome)
                                            : NULL);
}

/* Only the stream has, or will have, more of the error than its code. */
static int reader_extraction_failed(struct uva__task_ring *r, int code)
{
    const uint64_t events =
        reader_await(r, UVA__TASK_RING_BAD | UVA__TASK_RING_RELEASED);

    if (events & UVA__TASK_RING_BAD)
        return reader_conclude(r, events);
    return uva__task_ring_refuse(r, code, strerror(code));
}

/* Waits for the next task, and extracts it. */
static int reader_next(struct uva__task_ring *r, struct ArrowDeviceArray *out)
{
    uint64_t events = uva__atomic64_load(&r->events) | UVA__TASK_RING_TASK;
    struct ArrowAsyncTask task;
    int code;

    if (r->reader.taken.tasks == r->reader.put)
        events = r->locked.ended ? 0
                                 : reader_await(r, UVA__TASK_RING_TASK |
                                                       UVA__TASK_RING_END |
                                                       UVA__TASK_RING_BAD);
    if (!(events & UVA__TASK_RING_TASK) || (events & UVA__TASK_RING_CANCELLED))
        return reader_conclude(r, events);
    task = reader_take(r);
    if (r->reader.taken.tasks >= r->reader.refill_at)
        (void)reader_sync(r, 0); /* few are left */
    code = uva_task_extract(&task, out);
    return code == 0 ? reader_report(r, 0, NULL)
                     : reader_extraction_failed(r, code);
}

int uva__task_ring_next(struct uva__task_ring *r, struct ArrowDeviceArray *out)
{
    int code = reader_check(r, true);

    out->array.release = NULL;
    if (code == 0)
        code = reader_next(r, out);
    if (out->array.release != NULL)
        return code;
    memset(out, 0, sizeof(*out)); /* there is no batch */
    out->device_type = r->device_type;
    return code;
}

int uva__task_ring_schema(struct uva__task_ring *r, struct ArrowSchema *out)
{
    const uint64_t wanted = UVA__TASK_RING_SCHEMA | UVA__TASK_RING_BAD;
    uint64_t events = uva__atomic64_load(&r->events);
    int code = reader_check(r, !(events & wanted));

    memset(out, 0, sizeof(*out));
    if (code != 0)
        return code;
    events = reader_await(r, wanted);
    if (!(events & UVA__TASK_RING_SCHEMA))
        return reader_conclude(r, events);
    code = uva_schema_copy(r->stream->loop.info.schema, out);
    return reader_report(r, code, code == 0 ? NULL : strerror(code));
}

int uva__task_ring_refuse(struct uva__task_ring *r, int code, const char *text)
{
    uva_stream_cancel(r->stream, code, text);
    return reader_conclude(r, reader_await(r, UVA__TASK_RING_BAD));
}

/* ---- life --------------------------------------------------------------- */

static void task_ring_free(struct uva_stream *stream)
{
    const struct uva_allocator *allocator = &stream->rt->allocator;
    struct uva__task_ring *r = task_ring_of(stream);

    uva__share_close(&r->loop.share);
    uva__inlet_fini(&r->inlet);
    uva__failure_fini(&r->reader.outcome, allocator);
    uva__memory_free(allocator, r->ring, (r->ring_mask + 1) * sizeof(*r->ring));
}

static const struct uva__inlet_ops inlet_ops = {
    .schema = task_ring_schema,
    .task = task_ring_task,
    .news = task_ring_news,
    .released = task_ring_released,
};

static int task_ring_init(struct uva_stream *stream, struct uva_error *error)
{
    struct uva__task_ring *r = task_ring_of(stream);
    const struct uva_window *window = &r->options.window;
    const uint64_t size = uva__window_ring(window->batches);

    r->ring = uva__memory_new(&stream->rt->allocator, size * sizeof(*r->ring));
    r->ring_mask = size - 1;
    uva__inlet_init(&r->inlet, &inlet_ops, stream->tail);
    r->stream = stream;
    r->loop.requested = (uint64_t)window->batches;
    r->locked.refill_at = (uint64_t)(window->batches - window->batches / 2);
    r->device_type = stream->tail->abi.device_type;
    return r->ring != NULL
               ? 0
               : uva_error_set(error, ENOMEM, "no memory to start the stream");
}

static const struct uva__sink_kind task_ring_kind = {
    .ops = {.name = "to_blocking",
            .size = sizeof(struct uva__task_ring),
            .shared = true,
            .begin = task_ring_begin,
            .on_wakeup = task_ring_on_wakeup,
            .free = task_ring_free},
    .options = {.name = "to_blocking",
                .size = sizeof(struct uva__task_ring_options),
                UVA__OPTIONS_WINDOW(uva__task_ring_options)},
    .copy = offsetof(struct uva__task_ring, options),
    .init = task_ring_init,
};

int uva__task_ring_start(struct uva_stream *stream,
                         const struct uva_window *window,
                         struct uva__task_ring **out, struct uva_error *error)
{
    struct uva__task_ring_options options = {.reserved = NULL};
    int code;

    if (window != NULL)
        options.window = *window;
    code = uva__sink_start(stream, &task_ring_kind, &options, error);
    if (code != 0)
        return code;
    (void)uva_stream_acquire(stream); /* the reader's reference */
    *out = task_ring_of(stream);
    return 0;
}

void uva__task_ring_release(struct uva__task_ring *r)
{
    struct uva_stream *stream = r->stream;

    if (!uva__rt_is_alive(stream->rt))
        return; /* a forked child: it all belongs to the parent */
    if (!r->locked.ended)
        uva_stream_cancel(stream, ECANCELED,
                          "the blocking stream it was read through was "
                          "released");
    uva_stream_release(stream);
}
