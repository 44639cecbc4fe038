/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of for_each, take and collect.
 *
 * Happy path:  schema -> (request -> task -> extracted -> batch)* -> the end ->
 *              released -> done.
 *
 * Failures:
 * - extraction: the on_error that follows has the reason;
 * - data that the host cannot read: ENOTSUP;
 * - the user's callbacks: the stream is rejected.
 *
 * On cancel:   decided at once; the producer is cancelled, and releases the
 *              inlet.
 *
 * Clauses: ER-14, G-18. */
#include "sink/consumer.h"

#include <errno.h>
#include <string.h>

#include "arrow/device_traits.h"
#include "base/error.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct uva__consumer *consumer_of(struct uva__inlet *inlet)
{
    return uva__container_of(inlet, struct uva__consumer, inlet);
}

static struct uva__consumer *consumer_at(struct uva_stream *stream)
{
    return uva__container_of(stream->sink, struct uva__consumer, sink);
}

/* ---- cancels ------------------------------------------------------------ */

void uva__consumer_stop(struct uva__consumer *c, enum uva_end end, int code,
                        const char *text)
{
    assert(c->inlet.failure.code == 0);
    c->end = end;
    uva__failure_format(&c->inlet.failure, &c->stream->rt->allocator, code,
                        "%s", text != NULL ? text : strerror(code));
    uva__inlet_quit(&c->inlet);
}

static void consumer_cancel(struct uva__consumer *c)
{
    const struct uva__failure *why = uva__stream_cancelled(c->stream);

    if (why == NULL || c->inlet.failure.code != 0)
        return;
    uva__consumer_stop(c, UVA_END_CANCELLED, why->code,
                       uva__failure_message(why));
    uva_array_release(&c->batch.data);
}

static void consumer_handle_cancel(struct uva__consumer *c)
{
    if (c->inlet.state == UVA__INLET_RUNNING)
        consumer_cancel(c);
}

void uva__consumer_on_wakeup(struct uva_stream *stream)
{
    struct uva__consumer *c = consumer_at(stream);

    consumer_handle_cancel(c);
    if (c->kind->posted != NULL)
        c->kind->posted(c);
}

/* ---- calls of the inlet ------------------------------------------------- */

static int consumer_schema(struct uva__inlet *inlet, struct ArrowSchema *schema,
                           struct uva_error *error)
{
    struct uva__consumer *c = consumer_of(inlet);
    int code =
        uva__stream_take_schema(c->stream, inlet->handler.producer, schema);

    if (code != 0)
        return uva_error_set(error, code, "%s", strerror(code));
    c->batch.schema = c->stream->loop.info.schema;
    c->batch.stream = c->stream;
    if (c->stream->loop.silent)
        return ECANCELED;
    if (c->kind->schema != NULL)
        code = c->kind->schema(c);
    else
        uva__consumer_request(c);
    if (code == 0)
        return 0;
    c->end = code == ECANCELED ? UVA_END_CANCELLED : UVA_END_REJECTED;
    uva__inlet_quit(inlet);
    return uva_error_set(error, code, "the consumer refused the schema");
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

/* Notes the facts of a batch before its extraction. */
static void consumer_describe(struct uva__consumer *consumer,
                              const struct uva__batch_info *info, bool measured)
{
    consumer->batch.ordinal = info->ordinal;
    consumer->bytes = info->bytes;
    consumer->measured = measured;
}

/* A hook of the producer: the short way of most tasks. False: the task is to be
 * offered as usual, as there is more to do. So it is after a cancel or a drop;
 * whatever else ends the stream has stopped the producer. */
static bool consumer_take(void *ctx, struct uva__task *task)
{
    struct uva__consumer *c = ctx;

    assert(!task->is_lazy);
    if (uva__stream_is_cancelling(c->stream) ||
        (!c->stream->device_data && !uva__buffer_is_readable(&task->array)))
        return false;
    assert(uva__consumer_is_open(c) && !c->stream->loop.silent);
    consumer_describe(c, &task->info, task->measured);
    c->batch.metadata = task->info.metadata.block;
    c->batch.data = task->array;
    c->kind->batch(c);
    return true;
}

/* Our producers report a failed extraction before they offer another task. */
static void consumer_task(struct uva__inlet *inlet, struct ArrowAsyncTask *task,
                          const char *metadata)
{
    struct uva__consumer *c = consumer_of(inlet);

    consumer_handle_cancel(c);
    if (!uva__consumer_is_open(c) || c->stream->loop.silent) {
        uva__task_drop(task);
        return;
    }
    consumer_describe(c, uva__task_info(task), uva__task_is_measured(task));
    c->batch.metadata = metadata;
    if (uva__task_extract_first(task, &c->batch.data) == 0 &&
        consumer_may_read(c))
        c->kind->batch(c);
}

/* A cancel before the end counts, a later one has no effect. */
static void consumer_news(struct uva__inlet *inlet)
{
    if (inlet->state == UVA__INLET_ENDED && inlet->above != NULL)
        consumer_cancel(consumer_of(inlet));
}

static void consumer_released(struct uva__inlet *inlet)
{
    struct uva__consumer *c = consumer_of(inlet);
    struct uva_outcome outcome;

    uva_array_release(&c->batch.data);
    uva__share_hold(&c->share, 0, 0);
    uva__consumer_outcome(c, &outcome);
    c->kind->done(c, &outcome);
    uva__stream_done(c->stream, inlet->failure.code,
                     uva__failure_error(&inlet->failure));
}

void uva__consumer_outcome(const struct uva__consumer *c,
                           struct uva_outcome *out)
{
    const struct uva__failure *failure = &c->inlet.failure;

    uva__error_begin(&out->error);
    memset(out->reserved, 0, sizeof(out->reserved));
    out->stream = c->stream;
    out->end = failure->code != 0 ? c->end : UVA_END_COMPLETE;
    out->metadata = uva__failure_metadata(failure);
    out->batches = c->delivered;
    out->rows = c->rows;
    if (uva__failure_get(failure, &out->error) != 0)
        uva__stream_name_error(c->stream, &out->error);
}

/* ---- life --------------------------------------------------------------- */

void uva__consumer_begin(struct uva_stream *stream)
{
    static const struct uva__producer_hooks hooks = {.take = consumer_take};
    struct uva__consumer *c = consumer_at(stream);

    uva__share_join(&c->share, &stream->tail->source->share);
    stream->tail->loop->asks = c->kind->asks == NULL || c->kind->asks(c);
    uva__inlet_begin_last(&c->inlet, &hooks, c);
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
void uva__consumer_prepare(struct uva_stream *stream,
                           const struct uva_window *window)
{
    const struct uva_parallel one = {.workers = 1, .window = *window};

    consumer_add_ready(stream, window);
    if (uva__stream_building(stream) == 0 && stream->tail->expensive)
        (void)uva_stream_parallel(stream, &one);
}

static const struct uva__inlet_ops inlet_ops = {
    .schema = consumer_schema,
    .task = consumer_task,
    .news = consumer_news,
    .released = consumer_released,
};

int uva__consumer_init(struct uva_stream *stream, struct uva_error *error)
{
    struct uva__consumer *c = consumer_at(stream);

    (void)error;
    c->kind = (const void *)stream->sink->ops;
    c->stream = stream;
    c->end = UVA_END_FAILED;
    uva__inlet_init(&c->inlet, &inlet_ops, stream->tail);
    return 0;
}

void uva__consumer_free(struct uva_stream *stream)
{
    struct uva__consumer *c = consumer_at(stream);

    uva_array_release(&c->batch.data);
    if (c->kind->free != NULL)
        c->kind->free(c);
    uva__share_close(&c->share);
    uva__inlet_fini(&c->inlet);
}
