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

/* The state of a call, first of the start. */
enum { CALL_WAITING, CALL_NONE, CALL_MAKING };

struct next_call {
    uva_next_fn *fn; /* until it is called */
    void *ctx;       /* borrows, until then */
};

struct next {
    struct uva__consumer consumer; /* first */
    struct uva__atomic64 call;     /* some value above */
    struct next_call to;           /* the callback of the call */
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
    const struct next_call to = n->to;
    bool entered = n->entered, keeps_loop = n->keeps_loop;

    n->requested = n->entered = n->keeps_loop = false;
    uva__atomic64_store(&n->call, CALL_NONE);
    if (!stream->loop.silent)
        to.fn(to.ctx, batch, outcome); /* which may release the stream */
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

    uva__consumer_accept(consumer, consumer->batch.data.array.length);
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

static void next_posted(struct uva__consumer *consumer)
{
    struct next *n = next_of(consumer);

    if (uva__consumer_is_over(consumer))
        next_report_again(n);
    else
        next_request(n);
}

static const struct uva__consumer_kind next_kind = {
    .sink = {UVA__CONSUMER_SINK("next", next, true),
             .options = {.name = "next", .size = sizeof(struct next_call)},
             .copy = offsetof(struct next, to)},
    .schema = next_schema,
    .batch = next_batch,
    .done = next_done,
    .posted = next_posted,
};

/* ---- calls, on any thread ----------------------------------------------- */

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

static int next_again(struct uva_stream *stream, const struct next_call *to,
                      struct uva_error *error)
{
    struct next *n =
        uva__container_of(stream->sink, struct next, consumer.sink);
    uint64_t none = CALL_NONE;

    if (!uva__atomic64_cas(&n->call, &none, CALL_MAKING))
        return uva_error_set(error, EBUSY, "the last call is unanswered");
    if (next_enter(n) != 0) {
        uva__atomic64_store(&n->call, CALL_NONE);
        return uva_error_set(error, ESHUTDOWN, "the runtime is closing");
    }
    n->to = *to;
    uva__wakeup_acquire(&stream->wakeup); /* it may release it from now on */
    uva__atomic64_exchange(&n->call, CALL_WAITING);
    uva__rt_wake(stream->rt, &stream->wakeup);
    uva__wakeup_release(&stream->wakeup);
    return 0;
}

int uva_stream_next(struct uva_stream *stream, uva_next_fn *fn, void *ctx,
                    struct uva_error *error)
{
    const struct next_call to = {.fn = fn, .ctx = ctx};

    if (stream == NULL || fn == NULL)
        return uva_error_set(error, EINVAL, "the stream or fn is NULL");
    if (stream->rt == NULL || stream->sticky.code != 0 ||
        uva__atomic64_load(&stream->state) < UVA__STREAM_STARTED)
        return uva__sink_start(stream, &next_kind.sink, &to, error);
    if (!uva__rt_is_alive(stream->rt) ||
        stream->sink->ops != &next_kind.sink.ops)
        return uva__stream_may_start(stream, error);
    return next_again(stream, &to, error);
}
