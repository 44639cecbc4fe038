/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of tasks between the loop thread, which puts tasks in, and one thread
 * that takes them out, extracts them, and blocks while it is empty.
 *
 * Happy path:  started -> on_schema: a window is requested -> (a task goes into
 *              the ring; the reader is woken, once for each run of the wake-up
 *              -> the reader takes it, has more requested when few are left,
 *              and extracts it)* -> end -> the reader is woken -> the stream is
 *              done.
 *
 * Failures:
 * - the stream: reported after the tasks in the ring, and by every later call;
 * - an extraction: the reader waits for the report of the stream, as each of
 *   our extractions that fails is followed by an on_error or, late, by a
 *   release.
 *
 * On cancel and close: reported before the tasks in the ring. The loop drops
 *              these one by one, while the reader may take them: each task goes
 *              to one side. A release by the reader cancels the stream. So that
 *              a cancel has an effect until then, the stream is done only when
 *              the reader knows how it ended.
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

/* Whether a cancel was handled. The loop alone writes `events`. */
static bool task_ring_is_cancelled(const struct uva__task_ring *r)
{
    return (uva__atomic64_peek(&r->events) & UVA__TASK_RING_CANCELLED) != 0;
}

/* ---- reports to the reader ----------------------------------------------- */

static void task_ring_wake(struct uva__task_ring *r)
{
    r->loop.wake_due = false;
    r->loop.delays = 0;
    uva__parker_unpark(&r->parker);
}

/* Has the wake-up run wake the reader, once for all facts noted until then. */
static void task_ring_schedule_wake(struct uva__task_ring *r)
{
    if (r->loop.wake_due)
        return;
    r->loop.wake_due = true;
    uva__rt_wake(r->stream->rt, &r->stream->wakeup);
}

static void task_ring_notify(struct uva__task_ring *r,
                             enum uva__task_ring_event events)
{
    uva__atomic64_or(&r->events, events);
    task_ring_schedule_wake(r);
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
    r->direct = inlet->handler.producer == &inlet->above->abi;
    task_ring_notify(r, UVA__TASK_RING_SCHEMA);
    r->loop.requested = (uint64_t)r->options.window.batches;
    uva__inlet_request(inlet, r->options.window.batches);
    return 0;
}

static bool task_ring_is_full(struct uva__task_ring *r)
{
    r->loop.taken = uva__atomic64_load(&r->consumed);
    return r->loop.bytes - r->loop.taken >= (uint64_t)r->options.window.bytes;
}

/* Sets `resume_wanted` for the reader, then checks the ring again: so either
 * the reader or the loop sees the other one's change. */
static bool task_ring_stays_full(struct uva__task_ring *r)
{
    if (!task_ring_is_full(r))
        return false;
    uva__atomic64_exchange(&r->resume_wanted, 1);
    return task_ring_is_full(r);
}

/* The ring is full of bytes: no task is offered until some are taken. */
static void task_ring_pause(struct uva__task_ring *r)
{
    r->loop.paused = task_ring_stays_full(r);
    if (r->loop.paused)
        uva__producer_pause(r->inlet.above, true);
}

/* States the contents of the ring. The reader wakes the loop for the next time
 * when it has taken all. It may have used up `resume_wanted` before it saw a
 * task, so that is set again as long as there is one, before the last look at
 * `head`.
 */
static void task_ring_account(struct uva__task_ring *r)
{
    const uint64_t tail = uva__atomic64_peek(&r->tail);
    int64_t batches;

    if (r->loop.share.account == NULL)
        return;
    if (task_ring_is_cancelled(r) || r->loop.done) {
        uva__share_hold(&r->loop.share, 0, 0);
        return;
    }
    if (uva__atomic64_load(&r->head) != tail)
        uva__atomic64_exchange(&r->resume_wanted, 1);
    batches = (int64_t)(tail - uva__atomic64_load(&r->head));
    r->loop.taken = uva__atomic64_load(&r->consumed);
    uva__share_hold(&r->loop.share, batches,
                    batches == 0 ? 0
                                 : (int64_t)(r->loop.bytes - r->loop.taken));
}

/* Puts a task in. A blocking stream cannot carry its metadata. */
static void task_ring_task(struct uva__inlet *inlet,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__task_ring *r = task_ring_at(inlet);
    const uint64_t tail = uva__atomic64_peek(&r->tail);
    struct uva__task_ring_slot *slot = &r->ring[tail & r->ring_mask];

    (void)metadata;
    assert(tail - uva__atomic64_load(&r->head) <= r->ring_mask);
    assert(!r->direct || uva__task_is_ours(task));
    /* member by member, as the task was just written so: a wider load would
     * have to wait for both stores */
    slot->task.extract_data = task->extract_data;
    slot->task.private_data = task->private_data;
    slot->bytes = uva__task_bytes(task);
    r->loop.bytes += (uint64_t)slot->bytes;
    uva__atomic64_store(&r->tail, tail + 1);
    if (tail + 1 == r->loop.requested)
        task_ring_wake(r); /* no other event can come */
    else
        task_ring_schedule_wake(r);
    task_ring_account(r);
    if (r->loop.bytes - r->loop.taken >= (uint64_t)r->options.window.bytes)
        task_ring_pause(r);
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

    r->lazy = stream->tail->lazy;
    uva__share_join(&r->loop.share, &stream->tail->source->share);
    uva__inlet_begin_last(&r->inlet, &hooks, NULL);
}

/* The reader may be taking the same tasks. In a direct ring a task goes to the
 * thread that claims it, and the reader alone advances `head`. A task that a
 * checker has wrapped must not be used twice: it goes to the thread that
 * advances `head`. */
static void task_ring_discard(struct uva__task_ring *r)
{
    const uint64_t tail = uva__atomic64_peek(&r->tail);
    uint64_t head = uva__atomic64_load(&r->head);
    struct ArrowAsyncTask *task;

    while (head < tail) {
        task = &r->ring[head & r->ring_mask].task;
        if (!r->direct && !uva__atomic64_cas(&r->head, &head, head + 1))
            continue;
        uva__task_drop(task);
        head++;
    }
}

static void task_ring_handle_cancel(struct uva__task_ring *r)
{
    const struct uva__failure *why = uva__stream_cancelled(r->stream);

    if (why == NULL || task_ring_is_cancelled(r) ||
        uva__atomic64_load(&r->finished) != 0)
        return;
    uva__failure_format(&r->inlet.failure, &r->stream->rt->allocator, why->code,
                        "%s", uva__failure_message(why));
    uva__atomic64_or(&r->events, UVA__TASK_RING_CANCELLED);
    r->loop.wake_due = true;
    task_ring_discard(r);
    uva__inlet_quit(&r->inlet);
}

/* Requests the batches that the reader wants. The reader may have reported room
 * that it saw before the ring was full: then it has to report it again. */
static void task_ring_request(struct uva__task_ring *r)
{
    uint64_t n = 0;

    if (r->inlet.above == NULL)
        return;
    if (uva__atomic64_peek(&r->wanted) != 0)
        n = uva__atomic64_exchange(&r->wanted, 0);
    r->loop.requested += n;
    if (n > 0)
        uva__inlet_request(&r->inlet, (int64_t)n);
    if (!r->loop.paused || task_ring_stays_full(r))
        return;
    r->loop.paused = false;
    uva__atomic64_exchange(&r->resume_wanted, r->loop.share.account != NULL);
    uva__producer_pause(r->inlet.above, false);
}

/* Whether the producer is about to bring more tasks, so that one wake-up serves
 * for all. Only for a few runs, since other objects may be slow in between. */
static bool task_ring_can_delay(const struct uva__task_ring *r)
{
    return r->loop.delays < DELAYS_MAX && !task_ring_is_cancelled(r) &&
           r->inlet.above != NULL && r->inlet.above->wakeup.queued;
}

static void task_ring_wake_soon(struct uva__task_ring *r)
{
    if (!task_ring_can_delay(r)) {
        task_ring_wake(r);
        return;
    }
    r->loop.delays++;
    uva__rt_wake(r->stream->rt, &r->stream->wakeup);
}

static void task_ring_settle(struct uva__task_ring *r)
{
    if (r->loop.done || r->inlet.above != NULL)
        return;
    if (!task_ring_is_cancelled(r) && uva__atomic64_load(&r->finished) == 0)
        return;
    r->loop.done = true;
    task_ring_account(r);
    uva__stream_done(r->stream, r->inlet.failure.code,
                     uva__failure_error(&r->inlet.failure));
}

static void task_ring_on_wakeup(struct uva_stream *stream)
{
    struct uva__task_ring *r = task_ring_of(stream);

    task_ring_handle_cancel(r);
    task_ring_account(r);
    task_ring_request(r);
    if (r->loop.wake_due)
        task_ring_wake_soon(r);
    task_ring_settle(r);
}

/* ---- the reader: waiting ------------------------------------------------- */

static void reader_wake_loop(struct uva__task_ring *r)
{
    uva__rt_wake(r->stream->rt, &r->stream->wakeup);
}

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

/* Reads `events` before `tail`: so with the end, all tasks before it are seen.
 * `tail` is read only when the tasks seen before are taken: so the loop keeps
 * its cache line meanwhile. */
static uint64_t reader_poll(struct uva__task_ring *r)
{
    const uint64_t events = uva__atomic64_load(&r->events);

    if (r->reader.taken >= r->reader.tail)
        r->reader.tail = uva__atomic64_load(&r->tail);
    return r->reader.taken < r->reader.tail ? events | UVA__TASK_RING_TASK
                                            : events;
}

/* Wakes the loop when all tasks are taken, if it has asked for that: it resumes
 * a producer that it has paused, and accounts for the ring. */
static void reader_notify_drained(struct uva__task_ring *r, uint64_t events)
{
    if (!(events & UVA__TASK_RING_TASK) &&
        uva__atomic64_exchange(&r->resume_wanted, 0) != 0)
        reader_wake_loop(r);
}

/* Waits for a bit in `wanted`; returns the whole word. */
static uint64_t reader_await(struct uva__task_ring *r, uint64_t wanted)
{
    uint64_t events = reader_poll(r);
    uint32_t seen;

    if (events & wanted)
        return events;
    uva__lane_wait_begin();
    for (;;) {
        seen = uva__parker_prepare(&r->parker);
        events = reader_poll(r);
        if (events & wanted)
            break;
        reader_notify_drained(r, events);
        uva__parker_park(&r->parker, seen);
    }
    uva__parker_finish(&r->parker);
    uva__lane_wait_end();
    return events;
}

/* ---- the reader: taking -------------------------------------------------- */

/* Has more batches requested, as few are outstanding. */
static void reader_refill(struct uva__task_ring *r)
{
    const uint64_t left = r->reader.requested - r->reader.taken;
    const uint64_t room = (uint64_t)r->options.window.batches - left;

    r->reader.requested += room;
    r->reader.refill_at =
        r->reader.requested - (uint64_t)r->options.window.refill;
    uva__atomic64_add(&r->wanted, room);
    reader_wake_loop(r);
}

/* Takes the task at the head. False if the loop has taken it meanwhile, as it
 * takes all after a cancel; in a direct ring the extraction fails then. */
static inline bool reader_take(struct uva__task_ring *r,
                               struct ArrowAsyncTask *out)
{
    const struct uva__task_ring_slot *slot =
        &r->ring[r->reader.taken & r->ring_mask];
    const uint64_t bytes = (uint64_t)slot->bytes;

    *out = slot->task;
    if (r->direct)
        uva__atomic64_store(&r->head, r->reader.taken + 1);
    else if (!uva__atomic64_cas(&r->head, &r->reader.taken,
                                r->reader.taken + 1))
        return false;
    r->reader.taken++;
    uva__atomic64_store(&r->consumed, uva__atomic64_peek(&r->consumed) + bytes);
    return true;
}

/* Keeps the failure, with the stream's name in its text. */
static void reader_fail(struct uva__task_ring *r)
{
    const struct uva__failure *failure = &r->inlet.failure;
    const char *name = uva__stream_name(r->stream);

    uva__failure_format(&r->reader.outcome, &r->stream->rt->allocator,
                        failure->code, "%s%s%s", name != NULL ? name : "",
                        name != NULL ? ": " : "",
                        uva__failure_message(failure));
}

/* Stores how the stream ended, which all later calls return, and lets the
 * stream be done. The remaining tasks in the ring are discarded: the stream
 * failed at an earlier one. */
static int reader_conclude(struct uva__task_ring *r, uint64_t events)
{
    const struct uva__failure *outcome = &r->reader.outcome;
    struct ArrowAsyncTask task;

    if (!r->reader.ended) {
        r->reader.ended = true;
        if (events & UVA__TASK_RING_BAD)
            reader_fail(r);
        while (reader_poll(r) & UVA__TASK_RING_TASK)
            if (reader_take(r, &task))
                uva_task_discard(&task);
        uva__atomic64_exchange(&r->finished, 1);
        reader_wake_loop(r);
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

static int reader_extract(struct uva__task_ring *r, struct ArrowAsyncTask *task,
                          struct ArrowDeviceArray *out)
{
    const int code = uva_task_extract(task, out);

    return code == 0 ? reader_report(r, 0, NULL)
                     : reader_extraction_failed(r, code);
}

/* Waits for the next task, and extracts it. */
static int reader_take_next(struct uva__task_ring *r,
                            struct ArrowDeviceArray *out)
{
    struct ArrowAsyncTask task;
    uint64_t events;

    do {
        events = reader_await(r, UVA__TASK_RING_TASK | UVA__TASK_RING_END |
                                     UVA__TASK_RING_BAD);
        if (!(events & UVA__TASK_RING_TASK) ||
            (events & UVA__TASK_RING_CANCELLED))
            return reader_conclude(r, events);
    } while (!reader_take(r, &task));
    if (r->reader.taken >= r->reader.refill_at &&
        !(events & UVA__TASK_RING_END))
        reader_refill(r);
    return reader_extract(r, &task, out);
}

/* Clears `out`, if there is no batch in it. */
static int reader_give(const struct uva__task_ring *r, int code,
                       struct ArrowDeviceArray *out)
{
    if (out->array.release != NULL)
        return code;
    memset(out, 0, sizeof(*out));
    out->device_type = r->device_type;
    return code;
}

/* The general way of a batch. Not inline: the way of most batches would have to
 * save registers for its calls. */
__attribute__((noinline)) static int reader_next(struct uva__task_ring *r,
                                                 struct ArrowDeviceArray *out)
{
    int code = reader_check(r, true);

    out->array.release = NULL;
    if (code == 0)
        code =
            r->reader.ended ? reader_conclude(r, 0) : reader_take_next(r, out);
    return reader_give(r, code, out);
}

/* The way of most batches: the reader has seen the next task in the ring, the
 * task has its data, and no wait, request or report is due. Takes it then. */
static inline bool reader_take_at_once(struct uva__task_ring *r,
                                       struct ArrowAsyncTask *out)
{
    const struct uva__rt *rt = r->stream->rt;
    const uint64_t taken = r->reader.taken;

    return taken < r->reader.tail && taken + 1 < r->reader.refill_at &&
           r->direct && !r->lazy && /* known with the schema, so with a task */
           uva__rt_is_alive(rt) && !uva__rt_must_not_wait(rt) &&
           uva__atomic64_load(&r->events) == UVA__TASK_RING_SCHEMA &&
           reader_take(r, out);
}

int uva__task_ring_next(struct uva__task_ring *r, struct ArrowDeviceArray *out)
{
    struct ArrowAsyncTask task;

    if (!reader_take_at_once(r, &task))
        return reader_next(r, out);
    r->reader.text = NULL;
    return uva__task_extract_plain(&task, out)
               ? 0
               : reader_give(r, reader_extract(r, &task, out), out);
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

const char *uva__task_ring_text(const struct uva__task_ring *r)
{
    return r->reader.text;
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
    r->reader.requested = (uint64_t)window->batches;
    r->reader.refill_at = (uint64_t)(window->batches - window->refill);
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
    if (!r->reader.ended)
        uva_stream_cancel(stream, ECANCELED,
                          "the blocking stream it was read through was "
                          "released");
    uva_stream_release(stream);
}
