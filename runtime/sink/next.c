/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's batches pulled one by one: each call of next has its callback
 * called once, later, with a batch or with the outcome.
 *
 * Happy path:  next -> (loop) requested -> batch -> callback; after the end
 * each call gets the outcome.
 *
 * What can fail: the stream; every later call gets the error.
 *
 * On cancel:   a call in flight gets the outcome; on drop its callback is not
 * called. When its last reference is released, the stream is cancelled. */
#include <errno.h>

#include "sink/auto_stages.h"
#include "base/memory.h"
#include "sink/consumer.h"
#include "uvarrow/arrow.h"

/* The state of a call. */
enum { CALL_NONE, CALL_MAKING, CALL_WAITING };

struct next {
    struct uva__receiver receiver; /* first */
    struct uva__word call;         /* one of the above */
    uva_next_fn *fn;               /* of the call, until it is called */
    void *ctx;                     /* borrows; of the call, until then */
    bool entered;                  /* the call keeps the runtime open */
    bool held;                     /* the call keeps the loop alive */
    bool known;                    /* the schema is known: batches may be
                                      requested */
    bool requested;                /* the batch of the call was requested */
};

static struct next *next_of(struct uva__receiver *receiver)
{
    return uva__container_of(receiver, struct next, receiver);
}

static struct next *next_at(struct uva_stream *stream)
{
    return uva__container_of(stream->terminal, struct next, receiver.terminal);
}

/* ---- answers, on the loop ----------------------------------------------- */

static bool next_is_waiting(const struct next *n)
{
    return uva__word_load(&n->call) == CALL_WAITING;
}

/* The callback may call next again. */
static void next_answer(struct next *n, struct uva_batch *batch,
                        const struct uva_outcome *outcome)
{
    struct uva_stream *stream = n->receiver.stream;
    struct uva__hub *hub = stream->hub;
    uva_next_fn *fn = n->fn;
    void *ctx = n->ctx;
    bool entered = n->entered, held = n->held;

    n->requested = n->entered = n->held = false;
    uva__word_store(&n->call, CALL_NONE);
    if (!stream->loop.silent)
        fn(ctx, batch, outcome); /* which may release the stream */
    if (held)
        uva__loop_unhold(hub);
    if (entered)
        uva__hub_leave(hub);
}

static void next_ask(struct next *n)
{
    if (!n->known || n->requested || n->receiver.decided || !next_is_waiting(n))
        return;
    n->requested = true;
    uva__receiver_request(&n->receiver);
}

static int next_schema(struct uva__receiver *receiver)
{
    struct next *n = next_of(receiver);

    n->known = true;
    next_ask(n);
    return 0;
}

static void next_batch(struct uva__receiver *receiver)
{
    receiver->delivered++;
    next_answer(next_of(receiver), &receiver->batch, NULL);
    uva_array_release(&receiver->batch.data);
}

static void next_done(struct uva__receiver *receiver,
                      const struct uva_outcome *outcome)
{
    struct next *n = next_of(receiver);

    if (next_is_waiting(n))
        next_answer(n, NULL, outcome);
}

/* After the end: gives the outcome again. */
static void next_answer_late(struct next *n)
{
    struct uva_outcome outcome;

    if (!next_is_waiting(n))
        return;
    uva__receiver_outcome(&n->receiver, &outcome);
    next_answer(n, NULL, &outcome);
}

static void next_visit(struct uva_stream *stream)
{
    struct next *n = next_at(stream);

    uva__receiver_heed(&n->receiver);
    if (n->receiver.over)
        next_answer_late(n);
    else
        next_ask(n);
}

static void next_free(struct uva_stream *stream)
{
    struct next *n = next_at(stream);

    uva__receiver_fini(&n->receiver);
    uva__memory_free(&stream->hub->allocator, n, sizeof(*n));
}

static const struct uva__receiver_ops next_ops = {
    .terminal = {.name = "next",
                 .begin = uva__receiver_begin,
                 .visit = next_visit,
                 .free = next_free,
                 .lonely = true},
    .schema = next_schema,
    .batch = next_batch,
    .done = next_done,
};

/* ---- calls, on any thread ----------------------------------------------- */

static int next_start(struct uva_stream *stream, uva_next_fn *fn, void *ctx,
                      struct uva_error *error)
{
    struct next *n;
    int code = uva__flow_may_start(stream, error);

    if (code == 0)
        code = uva__safety_ensure(stream, error);
    if (code != 0)
        return code;
    n = uva__memory_new(&stream->hub->allocator, sizeof(*n));
    if (n == NULL)
        return uva_error_set(error, ENOMEM, "no memory to start the stream");
    uva__receiver_init(&n->receiver, &next_ops, stream);
    n->fn = fn;
    n->ctx = ctx;
    uva__word_store(&n->call, CALL_WAITING);
    code = uva__flow_start(stream, &n->receiver.terminal, error);
    if (code != 0)
        uva__memory_free(&stream->hub->allocator, n, sizeof(*n));
    return code;
}

/* Every call but the first keeps the runtime open, as the stream may be over.
 * While a close waits for it, callbacks on its own loop still run. */
static int next_enter(struct next *n)
{
    struct uva_stream *stream = n->receiver.stream;
    bool on_loop = uva__hub_on_loop(stream->hub);

    n->entered = uva__hub_enter(stream->hub);
    if (!n->entered && !(on_loop && !n->receiver.over))
        return ESHUTDOWN;
    n->held = n->entered && on_loop;
    if (n->held)
        uva__loop_hold(stream->hub);
    return 0;
}

static int next_again(struct uva_stream *stream, uva_next_fn *fn, void *ctx,
                      struct uva_error *error)
{
    struct next *n = next_at(stream);
    uint64_t none = CALL_NONE;

    if (!uva__word_cas(&n->call, &none, CALL_MAKING))
        return uva_error_set(error, EBUSY, "the last call is unanswered");
    if (next_enter(n) != 0) {
        uva__word_store(&n->call, CALL_NONE);
        return uva_error_set(error, ESHUTDOWN, "the runtime is closing");
    }
    n->fn = fn;
    n->ctx = ctx;
    uva__word_exchange(&n->call, CALL_WAITING);
    uva__hub_post(stream->hub, &stream->node);
    return 0;
}

int uva_stream_next(struct uva_stream *stream, uva_next_fn *fn, void *ctx,
                    struct uva_error *error)
{
    if (stream == NULL || fn == NULL)
        return uva_error_set(error, EINVAL, "the stream or fn is NULL");
    if (stream->hub == NULL || stream->sticky.code != 0 ||
        uva__word_load(&stream->stage) == UVA__FLOW_BUILDING)
        return next_start(stream, fn, ctx, error);
    if (!uva__hub_is_alive(stream->hub) ||
        stream->terminal->ops != &next_ops.terminal)
        return uva__flow_may_start(stream, error);
    return next_again(stream, fn, ctx, error);
}
