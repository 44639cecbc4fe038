/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  started -> on_schema: a window is requested -> tasks go into the
 * ring; the reader is woken once a visit -> more is requested as the reader
 *              wants it -> end -> the reader is woken -> the stream is done.
 *
 * What can fail: the stream: reported behind the tasks in the ring.
 *
 * On cancel and close: reported before the tasks in the ring, which are
 * discarded here. Releasing the reader's half cancels the stream. So that a
 *              cancel has an effect until then, the stream is done only when
 * the reader knows how it ended.
 *
 * Callbacks of the handler only note facts; the visit acts on them. */
#include "sink/task_ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

enum { WAITS_MAX = 3 };

static struct uva__task_ring *task_ring_of(struct uva_stream *stream)
{
    return uva__container_of(stream->sink, struct uva__task_ring, sink);
}

static struct uva__task_ring *
task_ring_at(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__task_ring, handler);
}

/* Whether a cancel was handled. The loop alone writes `events`. */
static bool task_ring_is_cancelled(const struct uva__task_ring *o)
{
    return (uva__atomic64_peek(&o->events) & UVA__TASK_RING_CANCELLED) != 0;
}

/* ---- reports to the reader ----------------------------------------------- */

static void task_ring_wake(struct uva__task_ring *o)
{
    o->loop.wake_due = false;
    o->loop.waits = 0;
    uva__parker_unpark(&o->parker);
}

/* Has the visit wake the reader, once for all that was noted until then. */
static void task_ring_ring(struct uva__task_ring *o)
{
    if (o->loop.wake_due)
        return;
    o->loop.wake_due = true;
    uva__rt_wake(o->stream->rt, &o->stream->wakeup);
}

static void task_ring_notify(struct uva__task_ring *o,
                             enum uva__task_ring_event events)
{
    uva__atomic64_or(&o->events, events);
    task_ring_ring(o);
}

static void task_ring_fail(struct uva__task_ring *o, int code, const char *text)
{
    uva__failure_format(&o->failure, &o->stream->rt->allocator, code, "%s",
                        text);
    task_ring_notify(o, UVA__TASK_RING_FAILED);
}

/* The device type in the reader's struct cannot be changed any more. */
static void task_ring_check_device(const struct uva__task_ring *o)
{
    const ArrowDeviceType type = o->handler.producer->device_type;

    if (type != o->device_type)
        uva__rt_log(o->stream->rt, UVA_LOG_WARN, o->stream->name, "DS-05",
                    "to_blocking: data of device type %d comes from a source "
                    "announced as %d; set the device_type of its options",
                    (int)type, (int)o->device_type);
}

static int task_ring_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                               struct ArrowSchema *schema)
{
    struct uva__task_ring *o = task_ring_at(handler);
    struct ArrowAsyncProducer *producer = handler->producer;
    int code = uva__stream_take_schema(o->stream, producer, schema);

    if (code != 0) {
        task_ring_fail(o, code, "no memory for what is known of the stream");
        return code;
    }
    task_ring_check_device(o);
    task_ring_notify(o, UVA__TASK_RING_SCHEMA);
    o->loop.requested = (uint64_t)o->window.batches;
    producer->request(producer, o->window.batches);
    return 0;
}

static bool task_ring_is_full(struct uva__task_ring *o)
{
    o->loop.taken = (int64_t)uva__atomic64_load(&o->consumed);
    return o->loop.bytes - o->loop.taken >= o->window.bytes;
}

/* Sets `held` for the reader, then checks the ring again: so either the reader
 * or the loop sees the other one's change. */
static bool task_ring_stays_full(struct uva__task_ring *o)
{
    if (!task_ring_is_full(o))
        return false;
    uva__atomic64_exchange(&o->held, 1);
    return task_ring_is_full(o);
}

/* The ring is full of bytes: no task is offered until some are taken. */
static void task_ring_hold(struct uva__task_ring *o)
{
    o->loop.holding = task_ring_stays_full(o);
    if (o->loop.holding)
        uva__producer_hold(o->stream->tail, true);
}

static void task_ring_put(struct uva__task_ring *o,
                          const struct ArrowAsyncTask *task)
{
    const uint64_t tail = uva__atomic64_peek(&o->tail);
    struct uva__task_ring_slot *place = &o->ring[tail & o->ring_mask];

    assert(tail - uva__atomic64_load(&o->head) <= o->ring_mask);
    place->task.extract_data = task->extract_data; /* member by member: just */
    place->task.private_data = task->private_data; /* written so, too */
    place->bytes = uva__task_bytes(task);
    o->loop.bytes += place->bytes;
    uva__atomic64_store(&o->tail, tail + 1);
    if (tail + 1 == o->loop.requested)
        task_ring_wake(o); /* no other event can come */
    else
        task_ring_ring(o);
    if (o->loop.bytes - o->loop.taken >= o->window.bytes)
        task_ring_hold(o);
}

static int task_ring_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                             struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__task_ring *o = task_ring_at(handler);

    (void)metadata; /* a blocking stream has no place for it */
    assert(!task_ring_is_cancelled(o));
    if (task == NULL)
        task_ring_notify(o, UVA__TASK_RING_END);
    else
        task_ring_put(o, task);
    return 0;
}

static void task_ring_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                               int code, const char *message,
                               const char *metadata)
{
    (void)metadata;
    task_ring_fail(task_ring_at(handler), code, message);
}

static void task_ring_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__task_ring *o = task_ring_at(handler);

    handler->release = NULL;
    handler->producer = NULL;
    o->loop.released = true;
    assert(uva__atomic64_peek(&o->events) &
           (UVA__TASK_RING_END | UVA__TASK_RING_BAD));
    task_ring_notify(o, UVA__TASK_RING_RELEASED);
}

/* ---- the loop: visits --------------------------------------------------- */

static void task_ring_begin(struct uva_stream *stream)
{
    const struct uva__producer_hooks hooks = {0};

    uva__producer_begin_driving(stream->tail, &task_ring_of(stream)->handler,
                                &hooks);
}

/* The reader may be taking the same tasks: the thread that advances `head` owns
 * the task. */
static void task_ring_discard(struct uva__task_ring *o)
{
    const uint64_t tail = uva__atomic64_peek(&o->tail);
    uint64_t head = uva__atomic64_load(&o->head);

    while (head < tail)
        if (uva__atomic64_cas(&o->head, &head, head + 1))
            uva__task_drop(&o->ring[head++ & o->ring_mask].task);
}

static void task_ring_handle_cancel(struct uva__task_ring *o)
{
    const struct uva__failure *why = uva__stream_cancelled(o->stream);

    if (why == NULL || task_ring_is_cancelled(o) ||
        uva__atomic64_load(&o->finished) != 0)
        return;
    uva__failure_format(&o->failure, &o->stream->rt->allocator, why->code, "%s",
                        uva__failure_message(why));
    uva__atomic64_or(&o->events, UVA__TASK_RING_CANCELLED);
    o->loop.wake_due = true;
    task_ring_discard(o);
    if (o->handler.producer != NULL)
        uva__producer_quit(o->stream->tail, o->handler.producer);
}

/* Requests what the reader wants. The reader may have reported room that it saw
 * before the ring was full: then it has to report it again. */
static void task_ring_request(struct uva__task_ring *o)
{
    struct ArrowAsyncProducer *producer = o->handler.producer;
    uint64_t n = 0;

    if (producer == NULL)
        return;
    if (uva__atomic64_peek(&o->wanted) != 0)
        n = uva__atomic64_exchange(&o->wanted, 0);
    o->loop.requested += n;
    if (n > 0)
        producer->request(producer, (int64_t)n);
    if (!o->loop.holding || task_ring_stays_full(o))
        return;
    o->loop.holding = false;
    uva__atomic64_exchange(&o->held, 0);
    uva__producer_hold(o->stream->tail, false);
}

/* Returns whether the producer is about to call again, so that one wake-up
 * serves for all of it. Only for a few visits, since other objects may be slow
 * in between. */
static bool task_ring_can_wait(const struct uva__task_ring *o)
{
    return o->loop.waits < WAITS_MAX && !task_ring_is_cancelled(o) &&
           o->handler.producer != NULL && o->stream->tail->wakeup.queued;
}

static void task_ring_wake_soon(struct uva__task_ring *o)
{
    if (!task_ring_can_wait(o)) {
        task_ring_wake(o);
        return;
    }
    o->loop.waits++;
    uva__rt_wake(o->stream->rt, &o->stream->wakeup);
}

static void task_ring_settle(struct uva__task_ring *o)
{
    if (o->loop.done || !o->loop.released)
        return;
    if (!task_ring_is_cancelled(o) && uva__atomic64_load(&o->finished) == 0)
        return;
    o->loop.done = true;
    uva__stream_done(o->stream, o->failure.code,
                     uva__failure_error(&o->failure));
}

static void task_ring_on_wakeup(struct uva_stream *stream)
{
    struct uva__task_ring *o = task_ring_of(stream);

    task_ring_handle_cancel(o);
    task_ring_request(o);
    if (o->loop.wake_due)
        task_ring_wake_soon(o);
    task_ring_settle(o);
}

/* ---- life --------------------------------------------------------------- */

static void task_ring_free(struct uva__task_ring *o,
                           const struct uva_allocator *allocator)
{
    uva__failure_fini(&o->failure, allocator);
    uva__memory_free(allocator, o->ring, (o->ring_mask + 1) * sizeof(*o->ring));
    uva__memory_free(allocator, o, sizeof(*o));
}

static void task_ring_free_terminal(struct uva_stream *stream)
{
    task_ring_free(task_ring_of(stream), &stream->rt->allocator);
}

static const struct uva__sink_ops task_ring_ops = {
    .name = "to_blocking",
    .begin = task_ring_begin,
    .on_wakeup = task_ring_on_wakeup,
    .free = task_ring_free_terminal,
};

static struct uva__task_ring *task_ring_new(struct uva_stream *stream,
                                            const struct uva_window *window)
{
    const struct uva_allocator *allocator = &stream->rt->allocator;
    const uint64_t size = uva__window_ring(window->batches);
    struct uva__task_ring *o =
        uva__memory_new_aligned(allocator, sizeof(*o), 64);

    if (o == NULL)
        return NULL;
    o->ring = uva__memory_new(allocator, size * sizeof(*o->ring));
    if (o->ring == NULL) {
        uva__memory_free(allocator, o, sizeof(*o));
        return NULL;
    }
    o->ring_mask = size - 1;
    o->sink.ops = &task_ring_ops;
    o->handler.on_schema = task_ring_on_schema;
    o->handler.on_next_task = task_ring_on_task;
    o->handler.on_error = task_ring_on_error;
    o->handler.release = task_ring_on_release;
    o->stream = stream;
    o->window = *window;
    o->reader.asked = (uint64_t)window->batches;
    o->device_type = stream->tail->abi.device_type;
    return o;
}

int uva__task_ring_start(struct uva_stream *stream,
                         const struct uva_window *window,
                         struct uva__task_ring **out, struct uva_error *error)
{
    const struct uva_window none = {0};
    struct uva_window whole;
    struct uva__task_ring *o;
    int code = uva__stream_may_start(stream, error);

    if (code != 0)
        return code;
    if (uva__window_complete(window != NULL ? window : &none, &whole) != 0)
        return uva_error_set(error, EINVAL,
                             "uva_window: its members must not be negative, "
                             "batches at most 1048576, and the reserved "
                             "ones NULL");
    o = task_ring_new(stream, &whole);
    if (o == NULL)
        return uva_error_set(error, ENOMEM, "no memory to start the stream");
    code = uva__stream_start(stream, &o->sink, error);
    if (code != 0) {
        task_ring_free(o, &stream->rt->allocator);
        return code;
    }
    (void)uva_stream_acquire(stream); /* the reader's reference */
    *out = o;
    return 0;
}

void uva__task_ring_release(struct uva__task_ring *o)
{
    struct uva_stream *stream = o->stream;

    if (!uva__rt_is_alive(stream->rt))
        return; /* a forked child: it all belongs to the parent */
    if (!o->reader.ended)
        uva_stream_cancel(stream, ECANCELED,
                          "the blocking stream it was read through was "
                          "released");
    uva_stream_release(stream);
}
