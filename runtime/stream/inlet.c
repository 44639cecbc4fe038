/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream end of a stage, a merge, a tee or a consumer.
 *
 * Happy path:  IDLE -> begun: RUNNING -> on_schema -> (request -> task)* -> the
 *              end: ENDED -> the producer above releases the handler.
 *
 * Failures:    the owner refuses the schema, or the producer above reports an
 *              error: the first failure is kept.
 *
 * On cancel:   QUIT, and the producer above is cancelled, or aborted before its
 *              schema. A cancel of the stream that was given to the inlet
 *              aborts its producer, so that the inlet fails.
 *
 * Clauses: AH-06, ER-13. */
#include "stream/inlet.h"

#include <assert.h>
#include <errno.h>

#include "base/error.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

static struct uva__inlet *
inlet_of(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return uva__container_of(handler, struct uva__inlet, handler);
}

static const struct uva_allocator *allocator_of(const struct uva__inlet *inlet)
{
    return &inlet->rt->allocator;
}

/* ---- calls from the producer above -------------------------------------- */

static int inlet_on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                           struct ArrowSchema *schema)
{
    struct uva__inlet *inlet = inlet_of(handler);
    struct uva_error error;
    int code;

    assert(inlet->state == UVA__INLET_RUNNING); /* or it was aborted */
    uva__error_begin(&error);
    code = inlet->ops->schema(inlet, schema, &error);
    inlet->known = code == 0;
    uva_schema_release(schema); /* if it was not moved. Clauses: AH-06. */
    if (code != 0)
        uva__failure_set(&inlet->failure, allocator_of(inlet), code, &error,
                         NULL);
    inlet->ops->news(inlet);
    return code;
}

static int inlet_on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                         struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__inlet *inlet = inlet_of(handler);

    assert(inlet->state == UVA__INLET_RUNNING);
    if (task == NULL)
        inlet->state = UVA__INLET_ENDED;
    else
        inlet->ops->task(inlet, task, metadata);
    inlet->ops->news(inlet);
    return 0;
}

static void inlet_on_error(struct ArrowAsyncDeviceStreamHandler *handler,
                           int code, const char *message, const char *metadata)
{
    struct uva__inlet *inlet = inlet_of(handler);
    struct uva_error error;

    (void)uva_error_set(&error, code, "%s", message);
    uva__failure_add_vendor(uva__producer_failure(inlet->above), &error);
    uva__failure_set(&inlet->failure, allocator_of(inlet), code, &error,
                     metadata);
    inlet->ops->news(inlet);
}

/* Gives the stream of the inlet its result. */
static void inlet_settle(struct uva__inlet *inlet)
{
    struct uva_stream *stream = inlet->stream;

    inlet->stream = NULL;
    if (stream == NULL)
        return;
    stream->tail = NULL;
    uva__stream_settle(stream, inlet->failure.code,
                       uva__failure_error(&inlet->failure));
    uva_stream_release(stream);
}

/* Our producers report an end or an error first, unless the handler has
 * cancelled, or has refused the schema. */
static void inlet_decide(struct uva__inlet *inlet)
{
    const bool quit = inlet->state == UVA__INLET_QUIT;
    struct uva_error error;
    int code = ECANCELED;

    if (inlet->state == UVA__INLET_ENDED)
        return;
    inlet->state = UVA__INLET_RELEASED;
    if (!quit)
        code = uva__failure_end_silently(&error);
    uva__failure_set(&inlet->failure, allocator_of(inlet), code,
                     quit ? NULL : &error, NULL);
}

static void inlet_on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__inlet *inlet = inlet_of(handler);
    struct uva__source *stopping = inlet->stopping;

    handler->release = NULL;
    handler->producer = NULL;
    inlet->above = NULL;
    inlet_decide(inlet);
    inlet_settle(inlet);
    inlet->ops->news(inlet);
    if (stopping != NULL)
        uva__producer_end_stop(stopping->producer);
    inlet->ops->released(inlet);
}

/* ---- calls from the owner ----------------------------------------------- */

void uva__inlet_init(struct uva__inlet *inlet, const struct uva__inlet_ops *ops,
                     struct uva__producer *above)
{
    inlet->ops = ops;
    inlet->state = UVA__INLET_IDLE;
    inlet->known = false;
    inlet->rt = above->rt;
    inlet->above = above;
    inlet->handler.on_schema = inlet_on_schema;
    inlet->handler.on_next_task = inlet_on_task;
    inlet->handler.on_error = inlet_on_error;
    inlet->handler.release = inlet_on_release;
}

void uva__inlet_fini(struct uva__inlet *inlet)
{
    uva__failure_fini(&inlet->failure, allocator_of(inlet));
}

static void inlet_run(struct uva__inlet *inlet)
{
    assert(inlet->state == UVA__INLET_IDLE);
    inlet->state = UVA__INLET_RUNNING;
    if (inlet->stream != NULL)
        uva__stream_open_given(inlet->stream);
}

void uva__inlet_begin(struct uva__inlet *inlet,
                      const struct uva__producer *below, bool ahead)
{
    inlet_run(inlet);
    uva__producer_begin_above(inlet->above, &inlet->handler, below, ahead);
}

void uva__inlet_begin_last(struct uva__inlet *inlet,
                           const struct uva__producer_hooks *hooks, void *ctx)
{
    inlet_run(inlet);
    uva__producer_begin_driving(inlet->above, &inlet->handler, hooks, ctx);
}

void uva__inlet_close(struct uva__inlet *inlet)
{
    if (inlet->state != UVA__INLET_IDLE)
        return;
    uva__producer_release(inlet->above);
    inlet->above = NULL;
    inlet->state = UVA__INLET_RELEASED;
    if (inlet->failure.code == 0)
        inlet->failure.code = ECANCELED;
    inlet_settle(inlet);
}

bool uva__inlet_is_cancelled(struct uva__inlet *inlet)
{
    const struct uva__failure *why =
        inlet->stream != NULL ? uva__stream_cancelled(inlet->stream) : NULL;

    if (why != NULL)
        uva__failure_copy(why, &inlet->failure, allocator_of(inlet));
    return why != NULL;
}

void uva__inlet_reopen(struct uva__inlet *inlet, struct uva_stream *stream)
{
    assert(inlet->state == UVA__INLET_RELEASED);
    uva__failure_fini(&inlet->failure, allocator_of(inlet));
    uva__inlet_init(inlet, inlet->ops, stream->tail);
    inlet->stream = stream;
}

void uva__inlet_quit(struct uva__inlet *inlet)
{
    assert(inlet->state != UVA__INLET_IDLE);
    if (inlet->above == NULL || inlet->state == UVA__INLET_QUIT)
        return;
    if (inlet->state == UVA__INLET_RUNNING)
        inlet->state = UVA__INLET_QUIT;
    if (inlet->stream != NULL)
        inlet->stream->tail = NULL; /* its cancel has no effect any more */
    uva__producer_quit(inlet->above, inlet->handler.producer);
}

void uva__inlet_lose(struct uva__inlet *inlet)
{
    uva__failure_set(&inlet->failure, allocator_of(inlet), ENOMEM, NULL, NULL);
    uva__inlet_quit(inlet);
}

void uva__inlet_await(struct uva__inlet *inlet, struct uva__source *source)
{
    if (inlet->stopping != NULL || inlet->above == NULL ||
        !uva__source_uses_stream(inlet->above->source))
        return;
    inlet->stopping = source;
    source->stopping++;
}

void uva__inlet_fail_extraction(struct uva__inlet *inlet, int code,
                                struct uva__source *source)
{
    struct uva__failure *why = &inlet->failure;
    const bool cut_off = uva__failure_is_silent_end(why);

    if (why->code != 0 && !cut_off)
        uva__failure_move(why, &source->failure, allocator_of(inlet));
    else if (cut_off || inlet->above == NULL) /* it can report no more */
        uva__failure_set(&source->failure, allocator_of(inlet), code, NULL,
                         NULL);
}

void uva__inlet_conclude(struct uva__inlet *inlet, struct uva__source *source)
{
    if (source->failure.code != 0 || source->ended)
        return;
    if (inlet->failure.code != 0)
        uva__failure_move(&inlet->failure, &source->failure,
                          allocator_of(inlet));
    else
        source->ended = inlet->state == UVA__INLET_ENDED;
}
