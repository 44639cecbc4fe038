/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls a stream's batches one by one: each call of next has its callback
 * called once, later, with a batch or with the outcome.
 *
 * Happy path:  next -> (loop) requested -> batch -> callback; after the end
 *              each call gets the outcome.
 *
 * Failures: the stream; every later call gets the error.
 *
 * On cancel:   a call in flight gets the outcome; on drop its callback is not
 *              called. When its last reference is released, the stream is
 *              cancelled. */
#include <errno.h>

#include "sink/consumer.h"
#include "uvarrow/arrow.h"

/* The state of a call. */
enum { CALL_NONE, CALL_MAKING, CALL_WAITING };

struct next {
    struct uva__consumer consumer; /* first */
    struct uva__atomic64 call;     /* some value above */
    uva_next_fn *fn;               /* of the call, until it is called */
    void *ctx;                     /* borrows; of the call, until then */
    bool entered;                  /* the call keeps the runtime open */
    bool keeps_loop;               /* the call keeps the loop alive */
    bool known;                    /* the schema is known: batches may be
                                      requested */
    bool requested;                /* the batch of the call was requested */
};

static struct next *next_of(struct uva__consumer *consumer)
{
    return uva__container_of(consumer, struct next, consumer);
}

static struct next *next_at(struct uva_stream *stream)
{
    return uva__container_of(stream->sink, struct next, consumer.sink);
}

/* ---- results, on the loop ----------------------------------------------- */

static bool next_is_waiting(const struct next *n)
{
    return uva__atomic64_load(&n->call) == CALL_WAITING;
}

/* Clears the call first, as its callback may call next again. */
static void next_report(struct next *n, struct uva_batch *batch,
                        const struct uva_outcome *outcome)
{
    struct uva_stream *stream = n->consumer.stream;
    struct uva__rt *rt = stream->rt;
    uva_next_fn *fn = n->fn;
    void *ctx = n->ctx;
    bool entered = n->entered, keeps_loop = n->keeps_loop;

    n->requested = n->entered = n->keeps_loop = false;
    uva__atomic64_store(&n->call, CALL_NONE);
    if (!stream->loop.silent)
        fn(ctx, batch, outcome); /* which may release the stream */
    if (keeps_loop)
        uva__loop_unref(rt);
    if (entered)
        uva__rt_leave(rt);
}

static void next_request(struct next *n)
{
    if (!n->known || n->requested || !uva__consumer_is_open(&n->consumer) ||
        !next_is_waiting(n))
        return;
    n->requested = true;
    uva__consumer_request(&n->consumer);
}

static int next_schema(struct uva__consumer *consumer)
{
    struct next *n = next_of(consumer);

    n->known = true;
    next_request(n);
    return 0;
}

/* The callback may release the stream, which still counts itself. */
static void next_batch(struct uva__consumer *consumer)
{
    const struct uva__point *point = uva__consumer_point(consumer);
    const int64_t ordinal = consumer->batch.ordinal;
    const uint64_t since_ns = uva__span_begin(consumer->stream->rt);

    consumer->delivered++;
    next_report(next_of(consumer), &consumer->batch, NULL);
    uva__point_span_end(point, "on_batch", ordinal, since_ns);
    uva_array_release(&consumer->batch.data);
}

static void next_done(struct uva__consumer *consumer,
                      const struct uva_outcome *outcome)
{
    struct next *n = next_of(consumer);

    if (next_is_waiting(n))
        next_report(n, NULL, outcome);
}

/* After the end: gives the outcome again. */
static void next_report_again(struct next *n)
{
    struct uva_outcome outcome;

    if (!next_is_waiting(n))
        return;
    uva__consumer_outcome(&n->consumer, &outcome);
    next_report(n, NULL, &outcome);
}

static void next_on_wakeup(struct uva_stream *stream)
{
    struct next *n = next_at(stream);

    uva__consumer_handle_cancel(&n->consumer);
    if (uva__consumer_is_over(&n->consumer))
        next_report_again(n);
    else
        next_request(n);
}

static const struct uva__consumer_ops next_ops = {
    .sink = {.name = "next",
             .size = sizeof(struct next),
             .begin = uva__consumer_begin,
             .on_wakeup = next_on_wakeup,
             .free = uva__consumer_free,
             .cancel_without_holder = true},
    .schema = next_schema,
    .batch = next_batch,
    .done = next_done,
};

/* ---- calls, on any thread ----------------------------------------------- */

static int next_start(struct uva_stream *stream, uva_next_fn *fn, void *ctx,
                      struct uva_error *error)
{
    int code = uva__consumer_make(stream, &next_ops, NULL, error);
    struct next *n;

    if (code != 0)
        return code;
    n = next_at(stream);
    n->fn = fn;
    n->ctx = ctx;
    uva__atomic64_store(&n->call, CALL_WAITING);
    return uva__stream_start(stream, error);
}

/* Every call but the first keeps the runtime open, as the stream may be over.
 * While a close waits for it, callbacks on its own loop still run. */
static int next_enter(struct next *n)
{
    struct uva_stream *stream = n->consumer.stream;
    bool on_loop = uva__rt_on_loop(stream->rt);

    n->entered = uva__rt_enter(stream->rt);
    if (!n->entered && !(on_loop && !uva__consumer_is_over(&n->consumer)))
        return ESHUTDOWN;
    n->keeps_loop = n->entered && on_loop;
    if (n->keeps_loop)
        uva__loop_ref(stream->rt);
    return 0;
}

static int next_again(struct uva_stream *stream, uva_next_fn *fn, void *ctx,
                      struct uva_error *error)
{
    struct next *n = next_at(stream);
    uint64_t none = CALL_NONE;

    if (!uva__atomic64_cas(&n->call, &none, CALL_MAKING))
        return uva_error_set(error, EBUSY, "the last call is unanswered");
    if (next_enter(n) != 0) {
        uva__atomic64_store(&n->call, CALL_NONE);
        return uva_error_set(error, ESHUTDOWN, "the runtime is closing");
    }
    n->fn = fn;
    n->ctx = ctx;
    uva__wakeup_acquire(&stream->wakeup); /* fn may release it from now on */
    uva__atomic64_exchange(&n->call, CALL_WAITING);
    uva__rt_wake(stream->rt, &stream->wakeup);
    uva__wakeup_release(&stream->wakeup);
    return 0;
}

int uva_stream_next(struct uva_stream *stream, uva_next_fn *fn, void *ctx,
                    struct uva_error *error)
{
    if (stream == NULL || fn == NULL)
        return uva_error_set(error, EINVAL, "the stream or fn is NULL");
    if (stream->rt == NULL || stream->sticky.code != 0 ||
        uva__atomic64_load(&stream->state) < UVA__STREAM_STARTED)
        return next_start(stream, fn, ctx, error);
    if (!uva__rt_is_alive(stream->rt) || stream->sink->ops != &next_ops.sink)
        return uva__stream_may_start(stream, error);
    return next_again(stream, fn, ctx, error);
}
