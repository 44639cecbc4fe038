/* SPDX-License-Identifier: Apache-2.0 */
/* A stream as the producer for a foreign handler, which is called on the loop
 * thread or, if it may block, on an extra thread by a proxy
 * (sink/handler_proxy).
 *
 * Happy path:  on_schema -> (request -> on_next_task)* -> on_next_task(NULL) ->
 *              release -> on_done.
 *
 * What can fail: the stream: reported by on_error; the handler: it is only
 * released.
 *
 * On cancel:   by the owner: reported by on_error. On drop: reported too, and
 * tasks that the handler has not extracted are revoked. When the runtime
 *              closes, a callback that does not return is abandoned. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sink/handler_proxy.h"
#include "sink/driven_handlers.h"
#include "base/memory.h"
#include "arrow/metadata.h"
#include "arrow/structs.h"
#include "base/time_limits.h"
#include "stream/stream_impl.h"
#include "loop/loop.h"
#include "uvarrow/arrow.h"

struct drive {
    struct uva__terminal terminal;  /* first */
    struct uva__driven driven;      /* among the handlers in use, but for a
                                       courier's */
    struct uva__producer *producer; /* counts, once begun */
    struct uva_drive how;           /* the callbacks */
    struct uva_stream *stream;      /* borrows: it owns us */
    struct uva__courier *courier;   /* counts; NULL: the handler is called on
                                       the loop */
    struct uva__timer patience;     /* with `courier`, when closing */
    bool aborted;                   /* the owner has cancelled */
    bool reclaimed;                 /* after a drop */
    bool released;                  /* by the producer */
    bool done;                      /* on_done was called */
    struct uva_outcome outcome;     /* once released */
    char *metadata;                 /* owns: of the outcome */
    size_t metadata_size;           /* of `metadata`, in bytes */
};

static struct drive *drive_at(struct uva_stream *stream)
{
    return uva__container_of(stream->terminal, struct drive, terminal);
}

/* ---- the end ------------------------------------------------------------ */

static enum uva_end refused_with(int code, struct uva_error *error)
{
    (void)uva_error_set(error, code, "the handler refused");
    return UVA_END_REJECTED;
}

/* The producer had ended when the outcome was read; but the handler may have
 * refused a call that was still queued at the proxy. */
static void drive_dismiss(struct drive *d)
{
    int refusal;

    d->outcome.batches = uva__courier_forget(d->courier, &refusal);
    if (refusal == 0)
        return;
    d->outcome.end = refused_with(refusal, &d->outcome.error);
    d->outcome.metadata = NULL; /* of an error that was not reported */
}

static void drive_finish(struct drive *d)
{
    struct uva_stream *stream = d->stream;

    assert(!d->done);
    d->done = true;
    uva__timer_stop(stream->hub, &d->patience);
    if (d->courier != NULL)
        drive_dismiss(d);
    if (d->how.on_done != NULL && !stream->loop.silent)
        d->how.on_done(d->how.ctx, &d->outcome);
    uva__flow_done(stream, d->outcome.error.code, &d->outcome.error);
}

static enum uva_end end_of(const struct uva__producer *p,
                           struct uva_error *error, const char **metadata)
{
    const struct uva__producer_state *state = &p->loop.state;
    const struct uva__failure *failure = uva__producer_failure(p);

    if (state->refused)
        return refused_with(p->loop.refusal, error);
    if (state->cancelled) {
        (void)uva_error_set(error, ECANCELED, "the handler cancelled");
        return UVA_END_CANCELLED;
    }
    if (!state->error_told)
        return UVA_END_COMPLETE;
    (void)uva__failure_get(failure, error);
    *metadata = uva__failure_metadata(failure);
    return UVA_END_FAILED;
}

/* The outcome is read before the handler is released, since the handler may be
 * used again from inside its release. */
static void drive_releasing(void *ctx)
{
    struct drive *d = ctx;
    struct uva_stream *stream = d->stream;
    const char *metadata = NULL;

    d->outcome.stream = stream;
    d->outcome.end = end_of(stream->tail, &d->outcome.error, &metadata);
    if (d->aborted && d->outcome.end == UVA_END_FAILED)
        d->outcome.end = UVA_END_CANCELLED;
    d->outcome.batches = stream->tail->loop.told;
    if (uva__metadata_copy(&stream->hub->allocator, metadata, &d->metadata,
                           &d->metadata_size) == 0)
        d->outcome.metadata = d->metadata;
    if (d->courier == NULL)
        uva__driven_handlers_remove(stream->hub, &d->driven);
}

static void drive_released(void *ctx)
{
    struct drive *d = ctx;

    d->released = true;
    if (d->courier == NULL)
        drive_finish(d);
}

/* If only extraction is awaited, the loop is not kept alive, unless calls are
 * still queued at the proxy. */
static void drive_ended(void *ctx)
{
    struct drive *d = ctx;

    if (d->courier == NULL)
        uva__flow_unhold(d->stream);
}

/* ---- as a terminal ------------------------------------------------------ */

static void drive_begin(struct uva_stream *stream)
{
    struct drive *d = drive_at(stream);
    const struct uva__producer_hooks hooks = {.ended = drive_ended,
                                              .releasing = drive_releasing,
                                              .released = drive_released,
                                              .relayed = d->courier != NULL,
                                              .ctx = d};
    struct ArrowAsyncDeviceStreamHandler *handler = d->driven.handler;

    uva__producer_acquire(stream->tail);
    d->producer = stream->tail;
    if (d->courier != NULL)
        handler = uva__courier_begin(d->courier, stream->tail, &stream->node);
    uva__producer_begin_driving(stream->tail, handler, &hooks);
}

static void drive_abort(struct drive *d, const struct uva__failure *why)
{
    const struct uva_allocator *allocator = &d->stream->hub->allocator;
    struct uva__failure copy = {0};

    d->aborted = true;
    uva__failure_set(&copy, allocator, why->code, uva__failure_error(why),
                     NULL);
    uva__producer_abort(d->stream->tail, &copy);
}

/* A close waits for the handler up to a time limit. */
static void patience_over(struct uva__timer *timer)
{
    struct drive *d = uva__container_of(timer, struct drive, patience);

    if (d->released)
        drive_finish(d);
    else
        uva__timer_start(d->stream->hub, timer, UVA__LIMIT_CALLBACK_MS);
}

static void drive_visit(struct uva_stream *stream)
{
    struct drive *d = drive_at(stream);
    const struct uva__failure *why = uva__flow_cancelled(stream);

    if (stream->loop.silent && !d->reclaimed) {
        d->reclaimed = true;
        uva__producer_reclaim(d->producer);
    }
    if (d->done)
        return;
    if (why != NULL && !d->aborted && !d->released)
        drive_abort(d, why);
    if (d->courier == NULL)
        return;
    if (uva__courier_heed(d->courier)) /* the producer has released it */
        drive_finish(d);
    else if (stream->loop.tenant.evicted && !d->patience.running)
        uva__timer_start(stream->hub, &d->patience, UVA__LIMIT_CALLBACK_MS);
}

static void drive_free(struct uva_stream *stream)
{
    const struct uva_allocator *allocator = &stream->hub->allocator;
    struct drive *d = drive_at(stream);

    if (d->courier != NULL)
        uva__courier_release(d->courier);
    uva__producer_release(d->producer);
    uva__memory_free(allocator, d->metadata, d->metadata_size);
    uva__memory_free(allocator, d, sizeof(*d));
}

static const struct uva__terminal_ops drive_ops = {
    .name = "drive",
    .begin = drive_begin,
    .visit = drive_visit,
    .free = drive_free,
};

/* ---- start -------------------------------------------------------------- */

static int drive_check(const struct ArrowAsyncDeviceStreamHandler *handler,
                       const struct uva_drive *how, struct uva_error *error)
{
    size_t size;

    if (how == NULL)
        return uva__structs_check_handler(handler, error);
    if (!uva__memory_is_clear(how->reserved, 4))
        return uva_error_set(error, EINVAL,
                             "uva_drive: reserved members must be NULL; clear "
                             "the struct before filling it in");
    if (uva_metadata_size(how->metadata, &size) != 0)
        return uva_error_set(error, EINVAL,
                             "uva_drive: metadata is malformed; make it with "
                             "uva_metadata_encode()");
    return uva__structs_check_handler(handler, error);
}

static void drive_undo(struct drive *d)
{
    struct uva__hub *hub = d->stream->hub;

    if (d->courier != NULL)
        uva__courier_release(d->courier);
    uva__memory_free(&hub->allocator, d, sizeof(*d));
}

/* Uses the producer's own error text instead of one of an earlier attempt. */
static int drive_describe(struct uva__producer *tail, const char *metadata)
{
    const struct uva_allocator *allocator = &tail->hub->allocator;

    uva__memory_free(allocator, tail->loop.metadata, tail->loop.metadata_size);
    return uva__metadata_copy(allocator, metadata, &tail->loop.metadata,
                              &tail->loop.metadata_size);
}

/* Makes the terminal. 0; ENOMEM; EAGAIN without a thread; ESHUTDOWN. */
static int drive_new(struct uva_stream *stream,
                     struct ArrowAsyncDeviceStreamHandler *handler,
                     const struct uva_drive *how, struct drive **out)
{
    struct drive *d;
    int code = uva__driven_handlers_ensure(stream->hub);

    if (code != 0)
        return code;
    d = uva__memory_new(&stream->hub->allocator, sizeof(*d));
    if (d == NULL)
        return ENOMEM;
    d->terminal.ops = &drive_ops;
    d->stream = stream;
    d->driven.handler = handler;
    d->patience.fire = patience_over;
    if (how != NULL)
        d->how = *how;
    if (d->how.on_worker)
        code = uva__courier_new(stream->hub, handler, &d->courier);
    if (code == 0)
        code = drive_describe(stream->tail, d->how.metadata);
    if (code != 0) {
        drive_undo(d);
        return code;
    }
    *out = d;
    return 0;
}

static struct uva__driven *drive_driven(struct drive *d)
{
    return d->courier != NULL ? uva__courier_driven(d->courier) : &d->driven;
}

int uva_stream_drive(struct uva_stream *stream,
                     struct ArrowAsyncDeviceStreamHandler *handler,
                     const struct uva_drive *how, struct uva_error *error)
{
    struct drive *d;
    int code = uva__flow_may_start(stream, error);

    if (code == 0)
        code = drive_check(handler, how, error);
    if (code != 0)
        return code;
    code = drive_new(stream, handler, how, &d);
    if (code != 0)
        return uva_error_set(error, code, "drive: %s", strerror(code));
    if (!uva__driven_handlers_add(stream->hub, drive_driven(d))) {
        drive_undo(d);
        return uva_error_set(error, EBUSY,
                             "the handler belongs to a stream that has not "
                             "released it");
    }
    code = uva__flow_start(stream, &d->terminal, error);
    if (code != 0) {
        uva__driven_handlers_remove(stream->hub, drive_driven(d));
        drive_undo(d);
    }
    return code;
}
