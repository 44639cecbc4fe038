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

static struct uva__outlet *outlet_of(struct uva_stream *stream)
{
    return uva__container_of(stream->terminal, struct uva__outlet, terminal);
}

static struct uva__outlet *
outlet_at(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__outlet, handler);
}

/* ---- reports to the reader ----------------------------------------------- */

static void outlet_wake(struct uva__outlet *o)
{
    o->loop.rung = false;
    o->loop.waits = 0;
    uva__sleeper_wake(&o->sleeper);
}

/* Has the visit wake the reader, once for all that was noted until then. */
static void outlet_ring(struct uva__outlet *o)
{
    if (o->loop.rung)
        return;
    o->loop.rung = true;
    uva__hub_post(o->stream->hub, &o->stream->node);
}

static void outlet_tell(struct uva__outlet *o, enum uva__outlet_news news)
{
    uva__word_or(&o->news, news);
    outlet_ring(o);
}

static void outlet_fail(struct uva__outlet *o, int code, const char *text)
{
    uva__failure_say(&o->failure, &o->stream->hub->allocator, code, "%s", text);
    outlet_tell(o, UVA__NEWS_FAILED);
}

/* The device type in the reader's struct cannot be changed any more. */
static void outlet_check_device(const struct uva__outlet *o)
{
    const ArrowDeviceType type = o->handler.producer->device_type;

    if (type != o->device_type)
        uva__hub_log(o->stream->hub, UVA_LOG_WARN, o->stream->name, "DS-05",
                     "to_blocking: data of device type %d comes from a source "
                     "announced as %d; set the device_type of its options",
                     (int)type, (int)o->device_type);
}

static int outlet_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                            struct ArrowSchema *schema)
{
    struct uva__outlet *o = outlet_at(handler);
    struct ArrowAsyncProducer *producer = handler->producer;
    int code = uva__flow_take_schema(o->stream, producer, schema);

    if (code != 0) {
        outlet_fail(o, code, "no memory for what is known of the stream");
        return code;
    }
    outlet_check_device(o);
    outlet_tell(o, UVA__NEWS_SCHEMA);
    o->loop.requested = (uint64_t)o->window.batches;
    producer->request(producer, o->window.batches);
    return 0;
}

static bool outlet_is_full(struct uva__outlet *o)
{
    o->loop.taken = (int64_t)uva__word_load(&o->eaten);
    return o->loop.bytes - o->loop.taken >= o->window.bytes;
}

/* Sets `held` for the reader, then checks the ring again: so either the reader
 * or the loop sees the other one's change. */
static bool outlet_stays_full(struct uva__outlet *o)
{
    if (!outlet_is_full(o))
        return false;
    uva__word_exchange(&o->held, 1);
    return outlet_is_full(o);
}

/* The ring is full of bytes: no task is offered until some are taken. */
static void outlet_hold(struct uva__outlet *o)
{
    o->loop.holding = outlet_stays_full(o);
    if (o->loop.holding)
        uva__producer_hold(o->stream->tail, true);
}

static void outlet_put(struct uva__outlet *o, const struct ArrowAsyncTask *task)
{
    const uint64_t tail = uva__word_peek(&o->tail);
    struct uva__outlet_place *place = &o->ring[tail & o->ring_mask];

    assert(tail - uva__word_load(&o->head) <= o->ring_mask);
    place->task.extract_data = task->extract_data; /* member by member: just */
    place->task.private_data = task->private_data; /* written so, too */
    place->bytes = uva__task_bytes(task);
    o->loop.bytes += place->bytes;
    uva__word_store(&o->tail, tail + 1);
    if (tail + 1 == o->loop.requested)
        outlet_wake(o); /* no other event can come */
    else
        outlet_ring(o);
    if (o->loop.bytes - o->loop.taken >= o->window.bytes)
        outlet_hold(o);
}

static int outlet_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                          struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__outlet *o = outlet_at(handler);

    (void)metadata; /* a blocking stream has no place for it */
    assert(!o->loop.cancelled);
    if (task == NULL)
        outlet_tell(o, UVA__NEWS_END);
    else
        outlet_put(o, task);
    return 0;
}

static void outlet_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                            int code, const char *message, const char *metadata)
{
    (void)metadata;
    outlet_fail(outlet_at(handler), code, message);
}

static void outlet_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__outlet *o = outlet_at(handler);

    handler->release = NULL;
    handler->producer = NULL;
    o->loop.released = true;
    assert(uva__word_peek(&o->news) & (UVA__NEWS_END | UVA__NEWS_BAD));
    outlet_tell(o, UVA__NEWS_RELEASED);
}

/* ---- the loop: visits --------------------------------------------------- */

static void outlet_begin(struct uva_stream *stream)
{
    const struct uva__producer_hooks hooks = {0};

    uva__producer_begin_driving(stream->tail, &outlet_of(stream)->handler,
                                &hooks);
}

/* The reader may be taking the same tasks: the thread that advances `head` owns
 * the task. */
static void outlet_discard(struct uva__outlet *o)
{
    const uint64_t tail = uva__word_peek(&o->tail);
    uint64_t head = uva__word_load(&o->head);

    while (head < tail)
        if (uva__word_cas(&o->head, &head, head + 1))
            uva__task_drop(&o->ring[head++ & o->ring_mask].task);
}

static void outlet_heed(struct uva__outlet *o)
{
    const struct uva__failure *why = uva__flow_cancelled(o->stream);

    if (why == NULL || o->loop.cancelled || uva__word_load(&o->finished) != 0)
        return;
    o->loop.cancelled = true;
    uva__failure_say(&o->failure, &o->stream->hub->allocator, why->code, "%s",
                     uva__failure_message(why));
    uva__word_or(&o->news, UVA__NEWS_CANCELLED);
    o->loop.rung = true;
    outlet_discard(o);
    if (o->handler.producer != NULL)
        uva__producer_quit(o->stream->tail, o->handler.producer);
}

/* Requests what the reader wants. The reader may have reported room that it saw
 * before the ring was full: then it has to report it again. */
static void outlet_request(struct uva__outlet *o)
{
    struct ArrowAsyncProducer *producer = o->handler.producer;
    uint64_t n = 0;

    if (producer == NULL)
        return;
    if (uva__word_peek(&o->wanted) != 0)
        n = uva__word_exchange(&o->wanted, 0);
    o->loop.requested += n;
    if (n > 0)
        producer->request(producer, (int64_t)n);
    if (!o->loop.holding || outlet_stays_full(o))
        return;
    o->loop.holding = false;
    uva__word_exchange(&o->held, 0);
    uva__producer_hold(o->stream->tail, false);
}

/* Returns whether the producer is about to call again, so that one wake-up
 * serves for all of it. Only for a few visits, since other objects may be slow
 * in between. */
static bool outlet_can_wait(const struct uva__outlet *o)
{
    return o->loop.waits < WAITS_MAX && !o->loop.cancelled &&
           o->handler.producer != NULL && o->stream->tail->node.queued;
}

static void outlet_wake_soon(struct uva__outlet *o)
{
    if (!outlet_can_wait(o)) {
        outlet_wake(o);
        return;
    }
    o->loop.waits++;
    uva__hub_post(o->stream->hub, &o->stream->node);
}

static void outlet_settle(struct uva__outlet *o)
{
    if (o->loop.done || !o->loop.released)
        return;
    if (!o->loop.cancelled && uva__word_load(&o->finished) == 0)
        return;
    o->loop.done = true;
    uva__flow_done(o->stream, o->failure.code, uva__failure_error(&o->failure));
}

static void outlet_visit(struct uva_stream *stream)
{
    struct uva__outlet *o = outlet_of(stream);

    outlet_heed(o);
    outlet_request(o);
    if (o->loop.rung)
        outlet_wake_soon(o);
    outlet_settle(o);
}

/* ---- life --------------------------------------------------------------- */

static void outlet_free(struct uva__outlet *o,
                        const struct uva_allocator *allocator)
{
    uva__failure_fini(&o->failure, allocator);
    uva__memory_free(allocator, o->ring, (o->ring_mask + 1) * sizeof(*o->ring));
    uva__memory_free(allocator, o, sizeof(*o));
}

static void outlet_free_terminal(struct uva_stream *stream)
{
    outlet_free(outlet_of(stream), &stream->hub->allocator);
}

static const struct uva__terminal_ops outlet_ops = {
    .name = "to_blocking",
    .begin = outlet_begin,
    .visit = outlet_visit,
    .free = outlet_free_terminal,
};

static struct uva__outlet *outlet_new(struct uva_stream *stream,
                                      const struct uva_window *window)
{
    const struct uva_allocator *allocator = &stream->hub->allocator;
    const uint64_t size = uva__window_ring(window->batches);
    struct uva__outlet *o = uva__memory_new_aligned(allocator, sizeof(*o), 64);

    if (o == NULL)
        return NULL;
    o->ring = uva__memory_new(allocator, size * sizeof(*o->ring));
    if (o->ring == NULL) {
        uva__memory_free(allocator, o, sizeof(*o));
        return NULL;
    }
    o->ring_mask = size - 1;
    o->terminal.ops = &outlet_ops;
    o->handler.on_schema = outlet_on_schema;
    o->handler.on_next_task = outlet_on_task;
    o->handler.on_error = outlet_on_error;
    o->handler.release = outlet_on_release;
    o->stream = stream;
    o->window = *window;
    o->reader.asked = (uint64_t)window->batches;
    o->device_type = stream->tail->abi.device_type;
    return o;
}

int uva__outlet_start(struct uva_stream *stream,
                      const struct uva_window *window, struct uva__outlet **out,
                      struct uva_error *error)
{
    const struct uva_window none = {0};
    struct uva_window whole;
    struct uva__outlet *o;
    int code = uva__flow_may_start(stream, error);

    if (code != 0)
        return code;
    if (uva__window_complete(window != NULL ? window : &none, &whole) != 0)
        return uva_error_set(error, EINVAL,
                             "uva_window: its members must not be negative, "
                             "and batches at most 1048576");
    o = outlet_new(stream, &whole);
    if (o == NULL)
        return uva_error_set(error, ENOMEM, "no memory to start the stream");
    code = uva__flow_start(stream, &o->terminal, error);
    if (code != 0) {
        outlet_free(o, &stream->hub->allocator);
        return code;
    }
    (void)uva_stream_acquire(stream); /* the reader's reference */
    *out = o;
    return 0;
}

void uva__outlet_release(struct uva__outlet *o)
{
    struct uva_stream *stream = o->stream;

    if (!uva__hub_is_alive(stream->hub))
        return; /* a forked child: it all belongs to the parent */
    if (!o->reader.told)
        uva_stream_cancel(stream, ECANCELED,
                          "the blocking stream it was read through was "
                          "released");
    uva_stream_release(stream);
}
