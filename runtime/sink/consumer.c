/* SPDX-License-Identifier: Apache-2.0 */
/* The handler behind for_each, next, take and collect.
 *
 * Happy path:  on_schema -> (request -> on_next_task -> extracted -> batch)* ->
 *              on_next_task(NULL) -> release -> done.
 *
 * What can fail:
 * - extraction: the code now, the text with the on_error that follows;
 * - data that the host cannot read: ENOTSUP;
 * - the user's callbacks: the stream is rejected.
 *
 * On cancel:   decided at once; the producer is cancelled, and releases the
 *              handler. Batches in between are discarded. on_next_task never
 *              returns an error: the task is taken, and the error is stored.
 *
 * Clauses: ER-14, G-18. */
#include "sink/consumer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/device_traits.h"
#include "base/error.h"
#include "base/memory.h"
#include "stream/handler_base.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct uva__consumer *
consumer_of(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__consumer, handler);
}

static struct uva__consumer *consumer_at(struct uva_stream *stream)
{
    return uva__container_of(stream->sink, struct uva__consumer, sink);
}

static const struct uva_allocator *
allocator_of(const struct uva__consumer *consumer)
{
    return &consumer->stream->rt->allocator;
}

/* ---- requests and cancels ----------------------------------------------- */

void uva__consumer_request(struct uva__consumer *c)
{
    struct ArrowAsyncProducer *producer = c->handler.producer;
    struct uva__producer *tail = c->stream->tail;

    if (producer == &tail->abi && tail->loop->running)
        uva__producer_request_in_run(tail);
    else
        producer->request(producer, 1);
}

void uva__consumer_stop(struct uva__consumer *c, enum uva_end end, int code,
                        const char *text)
{
    assert(!c->decided);
    c->decided = true;
    c->end = end;
    uva__failure_format(&c->failure, allocator_of(c), code, "%s",
                        text != NULL ? text : strerror(code));
    uva__producer_quit(c->stream->tail, c->handler.producer);
}

__attribute__((cold)) static void
consumer_cancel(struct uva__consumer *c, const struct uva__failure *why)
{
    if (c->decided)
        return;
    uva__consumer_stop(c, UVA_END_CANCELLED, why->code,
                       uva__failure_message(why));
    uva_array_release(&c->batch.data);
}

void uva__consumer_handle_cancel(struct uva__consumer *c)
{
    const struct uva__failure *why = uva__stream_cancelled(c->stream);

    if (why != NULL)
        consumer_cancel(c, why);
}

/* ---- callbacks ---------------------------------------------------------- */

static int consumer_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                              struct ArrowSchema *schema)
{
    struct uva__consumer *c = consumer_of(handler);
    int code = uva__stream_take_schema(c->stream, handler->producer, schema);

    if (code != 0) {
        uva__consumer_stop(c, UVA_END_FAILED, code, NULL);
        return code;
    }
    c->batch.schema = c->stream->loop.info.schema;
    c->batch.stream = c->stream;
    assert(!c->decided); /* or the producer was cancelled */
    if (c->stream->loop.silent)
        return ECANCELED;
    code = c->ops->schema(c);
    if (code != 0)
        uva__consumer_stop(
            c, code == ECANCELED ? UVA_END_CANCELLED : UVA_END_REJECTED, code,
            "the consumer refused the schema");
    return code;
}

/* Whether the consumer can read the batch, which was extracted; if not, decides
 * that the stream fails. */
static bool consumer_may_read(struct uva__consumer *c)
{
    if (c->stream->device_data || uva__buffer_is_readable(&c->batch.data))
        return true;
    uva__consumer_stop(c, UVA_END_FAILED, ENOTSUP,
                       "a batch is on a device, or behind an event of one, "
                       "and the host cannot read it: add uva_stream_transfer() "
                       "to copy it to the host, or uva_stream_ready() to take "
                       "it as it is once its event is complete");
    uva_array_release(&c->batch.data);
    return false;
}

/* Leaves the batch in c->batch, or decides why there is none. */
static bool consumer_extract(struct uva__consumer *c,
                             struct ArrowAsyncTask *task, const char *metadata)
{
    uva__consumer_describe(c, uva__task_info(task));
    c->batch.metadata = metadata;
    c->extraction = uva__task_extract_first(task, &c->batch.data);
    return c->extraction == 0 && consumer_may_read(c);
}

/* What consumer_on_task() does with most tasks: a hook of the producer. */
static bool consumer_take(void *ctx, struct uva__task *task)
{
    struct uva__consumer *c = ctx;

    if (!uva__consumer_take(c, task))
        return false;
    c->ops->batch(c);
    return true;
}

static int consumer_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                            struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__consumer *c = consumer_of(handler);

    uva__consumer_handle_cancel(c);
    if (task == NULL) {
        if (!c->decided)
            c->end = UVA_END_COMPLETE;
        c->decided = true;
    } else if (!uva__consumer_wants(c)) {
        uva__task_drop(task);
    } else if (consumer_extract(c, task, metadata)) {
        c->ops->batch(c);
    }
    return 0;
}

static void consumer_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                              int code, const char *message,
                              const char *metadata)
{
    struct uva__consumer *c = consumer_of(handler);

    if (c->decided)
        return; /* after a cancel the error changes nothing */
    uva__handler_base_keep_error(&c->failure, c->stream->tail, code, message,
                                 metadata);
    c->decided = true;
    c->end = UVA_END_FAILED;
}

/* A release before an end, an error or a cancel of ours is an error. */
static void consumer_decide(struct uva__consumer *c)
{
    struct uva_error error;
    int code = c->extraction;

    if (c->decided)
        return;
    c->decided = true;
    c->end = UVA_END_FAILED;
    if (code == 0)
        code = uva__handler_base_ended_silently(&error);
    uva__failure_set(&c->failure, allocator_of(c), code,
                     c->extraction == 0 ? &error : NULL, NULL);
}

static void consumer_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__consumer *c = consumer_of(handler);
    struct uva_stream *stream = c->stream;
    struct uva_outcome outcome;

    uva__handler_base_mark_released(handler);
    c->over = true;
    uva_array_release(&c->batch.data);
    uva__share_hold(&c->share, 0, 0);
    consumer_decide(c);
    uva__consumer_outcome(c, &outcome);
    c->ops->done(c, &outcome);
    uva__stream_done(stream, c->failure.code, uva__failure_error(&c->failure));
}

void uva__consumer_outcome(const struct uva__consumer *c,
                           struct uva_outcome *out)
{
    uva__error_begin(&out->error);
    memset(out->reserved, 0, sizeof(out->reserved));
    out->stream = c->stream;
    out->end = c->end;
    out->metadata = uva__failure_metadata(&c->failure);
    out->batches = c->delivered;
    if (uva__failure_get(&c->failure, &out->error) != 0)
        uva__stream_name_error(c->stream, &out->error);
}

/* ---- life --------------------------------------------------------------- */

void uva__consumer_begin(struct uva_stream *stream)
{
    static const struct uva__producer_hooks hooks = {.take = consumer_take};
    struct uva__consumer *c = consumer_at(stream);

    uva__share_join(&c->share, &stream->tail->source->share);
    uva__producer_begin_driving(
        stream->tail, &c->handler,
        c->ops->hooks.take != NULL ? &c->ops->hooks : &hooks, c);
}

/* Data in pinned and managed memory can be read once its event is complete. The
 * wait does not mean that the program accepts data that the host cannot read.
 */
static void consumer_add_ready(struct uva_stream *stream,
                               const struct uva_window *window)
{
    const ArrowDeviceType type = stream->tail->abi.device_type;
    const struct uva_ready ready = {.window = *window};

    if (stream->device_data || !uva__device_is_readable(type) ||
        !uva__device_has_events(type))
        return;
    (void)uva_stream_ready(stream, &ready);
    stream->device_data = false;
}

/* Expensive extraction does not run on the loop thread. The parallel stage has
 * one worker, so that a map's ctx needs no lock unless the program requests
 * more workers. A failure is kept by the stream. */
static void consumer_add_stages(struct uva_stream *stream,
                                const struct uva_window *window)
{
    const struct uva_window none = {0};
    const struct uva_window *given = window != NULL ? window : &none;
    const struct uva_parallel one = {.workers = 1, .window = *given};

    consumer_add_ready(stream, given);
    if (uva__stream_building(stream) == 0 && stream->tail->expensive)
        (void)uva_stream_parallel(stream, &one);
}

int uva__consumer_make(struct uva_stream *stream,
                       const struct uva__consumer_ops *ops,
                       const struct uva_window *window, struct uva_error *error)
{
    int code = uva__stream_may_start(stream, error);
    struct uva__consumer *c;

    if (code != 0)
        return code;
    consumer_add_stages(stream, window);
    code = uva__stream_make_sink(stream, &ops->sink, error);
    if (code != 0)
        return code;
    c = consumer_at(stream);
    c->ops = ops;
    c->stream = stream;
    c->handler.on_schema = consumer_on_schema;
    c->handler.on_next_task = consumer_on_task;
    c->handler.on_error = consumer_on_error;
    c->handler.release = consumer_on_release;
    return 0;
}

void uva__consumer_free(struct uva_stream *stream)
{
    struct uva__consumer *c = consumer_at(stream);

    uva_array_release(&c->batch.data);
    uva__share_close(&c->share);
    uva__failure_fini(&c->failure, allocator_of(c));
}
