/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a foreign handler with a stream: the handler is called on the loop
 * thread or, if it may block, on an extra thread by a proxy
 * (sink/handler_proxy).
 *
 * Happy path:  on_schema -> (request -> on_next_task)* -> on_next_task(NULL) ->
 *              release -> on_done -> the last extraction -> on_extracted.
 *
 * Failures:    the stream: reported by on_error; the handler: it is only
 *              released.
 *
 * On cancel:   by the owner: reported by on_error. On drop: reported too, and
 *              tasks that the handler has not extracted are revoked. When the
 *              runtime closes, a callback that does not return is abandoned. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/metadata.h"
#include "arrow/structs.h"
#include "base/memory.h"
#include "loop/loop.h"
#include "sink/handler_proxy.h"
#include "sink/sink.h"
#include "uvarrow/arrow.h"

struct drive_start {
    struct uva_drive user; /* first; its callbacks */
    struct ArrowAsyncDeviceStreamHandler *handler;
};

enum drive_phase {
    DRIVE_RUNS,
    DRIVE_RELEASED, /* the producer has released the handler, or its proxy */
    DRIVE_DONE      /* on_done was called */
};

struct drive {
    struct uva__sink sink;          /* first */
    struct drive *next;             /* borrows: with a handler in use; under
                                       its lock */
    struct uva__producer *producer; /* counts, once begun */
    struct drive_start options;
    struct uva_stream *stream;        /* borrows: it owns us */
    struct uva__handler_proxy *proxy; /* owns; NULL: the handler is called on
                                         the loop */
    struct uva__timer close_timer;    /* with `proxy`, when closing */
    enum drive_phase phase;
    bool aborted;                  /* the owner has cancelled */
    bool revoked;                  /* after a drop */
    bool emptied;                  /* the handler has no task any more */
    int64_t lost;                  /* tasks that a close has revoked */
    struct uva_outcome outcome;    /* once released */
    struct uva__metadata metadata; /* owns: of the outcome */
};

static struct drive *drive_at(struct uva_stream *stream)
{
    return uva__container_of(stream->sink, struct drive, sink);
}

/* ---- the handlers in use ------------------------------------------------ */

/* A handler belongs to one stream of a runtime until it is released. */
struct handlers_in_use {
    struct uva__rt_data data; /* first: with the function that frees it */
    struct uva__lock lock;
    struct {
        struct drive *first; /* borrows */
    } locked;
};

static void handlers_free(struct uva__rt *rt, struct uva__rt_data *data)
{
    uva__memory_free(&rt->allocator, data, sizeof(struct handlers_in_use));
}

static struct uva__rt_data *handlers_new(struct uva__rt *rt)
{
    struct handlers_in_use *handlers =
        uva__memory_new(&rt->allocator, sizeof(*handlers));

    if (handlers == NULL)
        return NULL;
    handlers->data.free = handlers_free;
    return &handlers->data;
}

/* NULL without memory, unless they were there before. */
static struct handlers_in_use *handlers_of(struct uva__rt *rt)
{
    return (void *)uva__rt_get_data(rt, UVA__RT_DATA_DRIVEN, handlers_new);
}

/* Where the drive of `handler` is linked, or the end of the list. */
static struct drive **handlers_find_locked(struct handlers_in_use *handlers,
                                           const void *handler)
{
    struct drive **at = &handlers->locked.first;

    while (*at != NULL && (*at)->options.handler != handler)
        at = &(*at)->next;
    return at;
}

/* 0; ENOMEM; EBUSY if a stream drives the handler already. Clauses: AH-29. */
static int drive_claim(struct drive *d)
{
    struct handlers_in_use *handlers = handlers_of(d->stream->rt);
    struct drive **at;
    bool in_use;

    if (handlers == NULL)
        return ENOMEM;
    uva__lock_take(&handlers->lock);
    at = handlers_find_locked(handlers, d->options.handler);
    in_use = *at != NULL;
    if (!in_use)
        *at = d;
    uva__lock_drop(&handlers->lock);
    return in_use ? EBUSY : 0;
}

/* The handler is about to be released, and may be used again inside its
 * release. */
static void drive_disclaim(void *ctx)
{
    struct drive *d = ctx;
    struct handlers_in_use *handlers =
        (void *)uva__atomic_ptr_load(&d->stream->rt->data[UVA__RT_DATA_DRIVEN]);
    struct drive **at;

    if (handlers == NULL)
        return;
    uva__lock_take(&handlers->lock);
    at = handlers_find_locked(handlers, d->options.handler);
    if (*at == d)
        *at = d->next;
    uva__lock_drop(&handlers->lock);
}

/* ---- the end ------------------------------------------------------------ */

static enum uva_end refused_with(int code, struct uva_error *error)
{
    (void)uva_error_set(error, code, "the handler refused");
    return UVA_END_REJECTED;
}

/* The producer had ended when the outcome was read; but the handler may have
 * refused a call that was still queued at the proxy, or may not get its end. */
static void drive_abandon(struct drive *d)
{
    int refusal, replaced;

    d->outcome.batches =
        uva__handler_proxy_abandon(d->proxy, &refusal, &replaced);
    if (refusal != 0) {
        d->outcome.end = refused_with(refusal, &d->outcome.error);
        d->outcome.metadata = NULL; /* of an error that was not reported */
    } else if (replaced != 0) {
        d->outcome.end =
            replaced == ECANCELED ? UVA_END_CANCELLED : UVA_END_FAILED;
        (void)uva_error_set(&d->outcome.error, replaced,
                            "the handler has not got all batches");
    }
}

/* The last callback. Releases the reference of drive_begin(). */
static void drive_report_extracted(struct drive *d)
{
    struct uva_stream *stream = d->stream;

    if (d->phase != DRIVE_DONE || !d->emptied)
        return;
    uva__point_instant(&stream->label->consumer, UVA_TRACE_EXTRACTED, d->lost);
    if (d->options.user.on_extracted != NULL && !stream->loop.silent)
        d->options.user.on_extracted(d->options.user.ctx, d->lost);
    uva__wakeup_release(&stream->wakeup);
}

static void drive_finish(struct drive *d)
{
    struct uva_stream *stream = d->stream;
    struct uva_error unnamed;

    assert(d->phase == DRIVE_RELEASED);
    d->phase = DRIVE_DONE;
    uva__timer_stop(stream->rt, &d->close_timer);
    if (d->proxy != NULL)
        drive_abandon(d);
    unnamed = d->outcome.error;
    if (unnamed.code != 0)
        uva__stream_name_error(stream, &d->outcome.error);
    if (d->options.user.on_done != NULL && !stream->loop.silent)
        d->options.user.on_done(d->options.user.ctx, &d->outcome);
    uva__stream_done(stream, unnamed.code, &unnamed);
    drive_report_extracted(d);
}

static enum uva_end end_of(const struct uva__producer *p,
                           struct uva_error *error, const char **metadata)
{
    const struct uva__producer_state *state = &p->loop->state;
    const struct uva__failure *failure = uva__producer_failure(p);

    if (state->phase == UVA__PHASE_REFUSED)
        return refused_with(p->loop->refusal, error);
    if (state->phase == UVA__PHASE_CANCELLED) {
        (void)uva_error_set(error, ECANCELED, "the handler cancelled");
        return UVA_END_CANCELLED;
    }
    if (state->phase != UVA__PHASE_FAILED)
        return UVA_END_COMPLETE;
    (void)uva__failure_get(failure, error);
    *metadata = uva__failure_metadata(failure);
    return UVA_END_FAILED;
}

/* The rows that were passed on, as far as extracted, behind all maps. */
static int64_t rows_of(const struct uva__producer *p)
{
    const struct uva__meter *meter = p->meter;
    struct uva_stage_stats stats;

    for (const struct uva__mapping *m = p->maps; m != NULL; m = m->next)
        meter = m->meter;
    uva__meter_read(meter, &stats);
    return stats.rows;
}

/* The outcome is read before the release. */
static void drive_releasing(void *ctx)
{
    struct drive *d = ctx;
    struct uva_stream *stream = d->stream;
    const char *metadata = NULL;

    d->outcome.stream = stream;
    d->outcome.end = end_of(stream->tail, &d->outcome.error, &metadata);
    if (d->aborted && d->outcome.end == UVA_END_FAILED)
        d->outcome.end = UVA_END_CANCELLED;
    d->outcome.batches = uva__producer_offered(stream->tail);
    d->outcome.rows = rows_of(stream->tail);
    if (uva__metadata_copy(&stream->rt->allocator, metadata, &d->metadata) == 0)
        d->outcome.metadata = d->metadata.block;
    if (d->proxy == NULL)
        drive_disclaim(d);
}

static void drive_released(void *ctx)
{
    struct drive *d = ctx;

    d->phase = DRIVE_RELEASED;
    if (d->proxy == NULL)
        drive_finish(d);
}

static void drive_emptied(void *ctx, int64_t revoked)
{
    struct drive *d = ctx;

    d->emptied = true;
    d->lost = revoked;
    drive_report_extracted(d);
}

/* ---- as a sink ---------------------------------------------------------- */

static void drive_begin(struct uva_stream *stream)
{
    static const struct uva__producer_hooks direct = {
        .releasing = drive_releasing,
        .released = drive_released,
        .emptied = drive_emptied,
        .foreign = true,
    };
    static const struct uva__producer_hooks relayed = {
        .releasing = drive_releasing,
        .released = drive_released,
        .emptied = drive_emptied,
        .relayed = true,
        .foreign = true,
    };
    struct drive *d = drive_at(stream);

    uva__wakeup_acquire(&stream->wakeup); /* keeps `d` */
    uva__producer_acquire(stream->tail);
    d->producer = stream->tail;
    if (d->proxy != NULL)
        uva__handler_proxy_begin(d->proxy, &relayed);
    else
        uva__producer_begin_driving(stream->tail, d->options.handler, &direct,
                                    d);
}

static void drive_abort(struct drive *d, const struct uva__failure *why)
{
    const struct uva_allocator *allocator = &d->stream->rt->allocator;
    struct uva__failure copy = {0};

    d->aborted = true;
    uva__failure_set(&copy, allocator, why->code, uva__failure_error(why),
                     NULL);
    uva__producer_abort(d->stream->tail, &copy);
}

/* A close waits for the handler up to a time limit. */
static void drive_expire(struct uva__timer *timer)
{
    struct drive *d = uva__container_of(timer, struct drive, close_timer);

    if (d->phase == DRIVE_RELEASED)
        drive_finish(d);
    else
        uva__timer_start(d->stream->rt, timer, d->stream->rt->close_limit_ms);
}

static void drive_on_wakeup(struct uva_stream *stream)
{
    struct drive *d = drive_at(stream);
    const struct uva__failure *why = uva__stream_cancelled(stream);

    if (stream->loop.silent && !d->revoked) {
        d->revoked = true;
        if (d->proxy != NULL)
            uva__handler_proxy_cut(d->proxy);
        uva__producer_revoke(d->producer);
    }
    if (d->phase == DRIVE_DONE)
        return;
    if (why != NULL && !d->aborted && d->phase == DRIVE_RUNS)
        drive_abort(d, why);
    if (d->proxy == NULL)
        return;
    if (uva__handler_proxy_poll(d->proxy)) /* the producer has released it */
        drive_finish(d);
    else if (stream->loop.object.aborted && !d->close_timer.running)
        uva__timer_start(stream->rt, &d->close_timer,
                         stream->rt->close_limit_ms);
}

static void drive_free(struct uva_stream *stream)
{
    struct drive *d = drive_at(stream);

    drive_disclaim(d);
    uva__handler_proxy_free(d->proxy);
    if (d->producer != NULL)
        uva__producer_release(d->producer);
    uva__metadata_fini(&d->metadata, &stream->rt->allocator, NULL);
}

/* ---- start -------------------------------------------------------------- */

static int drive_check(const struct drive_start *options,
                       struct uva_error *error)
{
    size_t size;

    if (uva_metadata_size(options->user.metadata, &size) != 0)
        return uva_error_set(error, EINVAL,
                             "uva_drive: metadata is malformed; make it with "
                             "uva_metadata_encode()");
    return uva__structs_check_handler(options->handler, error);
}

/* Gives the producer the metadata of the options, in place of the
 * metadata of an earlier attempt. */
static int drive_set_metadata(struct uva__producer *tail, const char *metadata)
{
    const struct uva_allocator *allocator = &tail->rt->allocator;

    uva__metadata_fini(&tail->loop->metadata, allocator, NULL);
    return uva__metadata_copy(allocator, metadata, &tail->loop->metadata);
}

/* 0; ENOMEM; EAGAIN without a thread; ESHUTDOWN; EBUSY. */
static int drive_prepare(struct drive *d)
{
    struct uva_stream *stream = d->stream;
    int code = 0;

    if (d->options.user.on_worker)
        code = uva__handler_proxy_new(stream, d->options.handler,
                                      drive_disclaim, d, &d->proxy);
    if (code == 0)
        code = drive_set_metadata(stream->tail, d->options.user.metadata);
    return code == 0 ? drive_claim(d) : code;
}

static int drive_init(struct uva_stream *stream, struct uva_error *error)
{
    struct drive *d = drive_at(stream);
    int code;

    d->stream = stream;
    code = drive_check(&d->options, error);
    if (code != 0)
        return code;
    d->close_timer.fire = drive_expire;
    code = drive_prepare(d);
    if (code == EBUSY)
        (void)uva_error_set(error, code,
                            "the handler belongs to a stream that has not "
                            "released it");
    else if (code != 0)
        (void)uva_error_set(error, code, "drive: %s", strerror(code));
    return code;
}

static const struct uva__sink_kind drive_kind = {
    .ops = {.name = "drive",
            .size = sizeof(struct drive),
            .begin = drive_begin,
            .on_wakeup = drive_on_wakeup,
            .free = drive_free},
    .options = {.name = "uva_drive",
                .size = sizeof(struct drive_start),
                .reserved = offsetof(struct drive_start, user.reserved),
                .reserved_size = sizeof(((struct uva_drive *)NULL)->reserved)},
    .copy = offsetof(struct drive, options),
    .init = drive_init,
};

int uva_stream_drive(struct uva_stream *stream,
                     struct ArrowAsyncDeviceStreamHandler *handler,
                     const struct uva_drive *options, struct uva_error *error)
{
    struct drive_start start = {.handler = handler};

    if (options != NULL)
        start.user = *options;
    return uva__sink_start(stream, &drive_kind, &start, error);
}
