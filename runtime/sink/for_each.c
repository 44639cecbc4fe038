/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a stream's batches to callbacks, one at a time: the next batch is
 * requested when the last one was taken, unless the stream is paused then.
 *
 * Happy path:  on_schema -> (on_batch)* -> on_done.
 *
 * Failures:    on_batch. EAGAIN is none: the batch was taken, and the stream
 *              is paused.
 *
 * On cancel:   only on_done is called; on drop: no callback. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "sink/consumer.h"
#include "stream/pausing.h"
#include "uvarrow/arrow.h"

struct for_each {
    struct uva__consumer consumer; /* first */
    struct uva_consumer user;      /* the callbacks */
    bool is_due;                   /* the request for the next batch */
};

_Static_assert(sizeof(struct for_each) <= UVA__STREAM_SINK_ROOM,
               "it lies behind its stream");

static struct for_each *for_each_of(struct uva__consumer *consumer)
{
    return uva__container_of(consumer, struct for_each, consumer);
}

/* Requests the next batch, unless that is done, or the stream is paused. */
static void for_each_go_on(struct for_each *f)
{
    if (!f->is_due || uva__pausing_is_on(&f->consumer.stream->pausing))
        return;
    f->is_due = false;
    uva__consumer_request(&f->consumer);
}

static int for_each_schema(struct uva__consumer *consumer)
{
    struct for_each *f = for_each_of(consumer);
    const struct uva_consumer *user = &f->user;
    const uint64_t since_ns = uva__span_begin(consumer->stream->rt);
    int code = 0;

    if (user->on_schema != NULL)
        code = uva__error_positive(
            user->on_schema(user->ctx, &consumer->stream->loop.info));
    uva__point_span_end(uva__consumer_point(consumer), "on_schema", -1,
                        since_ns);
    if (code != 0)
        return code;
    uva__producer_pause_by(consumer->stream->tail, &consumer->stream->pausing);
    f->is_due = true;
    for_each_go_on(f);
    return 0;
}

static bool for_each_asks(const struct uva__consumer *consumer)
{
    const struct for_each *f =
        uva__container_of(consumer, const struct for_each, consumer);

    return f->user.on_schema == NULL &&
           !uva__pausing_is_on(&consumer->stream->pausing);
}

/* on_batch has returned another code than 0. Returns whether the stream goes
 * on, though perhaps paused. */
__attribute__((cold)) static bool batch_is_taken(struct for_each *f,
                                                 int64_t rows, int code)
{
    struct uva__consumer *c = &f->consumer;

    code = uva__error_positive(code);
    switch (code) {
    case EAGAIN:
        uva__pausing_note_full(&c->stream->pausing);
        return true;
    case ECANCELED:
        uva__consumer_accept(c, rows);
        uva__consumer_stop(c, UVA_END_CANCELLED, code,
                           "the consumer wants no more");
        return false;
    default:
        uva__consumer_stop(c, UVA_END_REJECTED, code, NULL);
        return false;
    }
}

/* on_batch has returned `code` for a batch of `rows`. */
static void batch_answered(struct for_each *f, int64_t rows, int code)
{
    struct uva__consumer *c = &f->consumer;

    if (c->stream->loop.silent)
        return;
    if (code != 0 && !batch_is_taken(f, rows, code))
        return;
    uva__consumer_accept(c, rows);
    f->is_due = true;
    for_each_go_on(f);
}

/* What on_batch leaves of the data is released, whatever it returns. */
static void for_each_batch(struct uva__consumer *consumer)
{
    struct for_each *f = for_each_of(consumer);
    const int64_t ordinal = consumer->batch.ordinal;
    const int64_t rows = consumer->batch.data.array.length;
    const uint64_t since_ns = uva__span_begin(consumer->stream->rt);
    int code;

    uva__pausing_begin(&consumer->stream->pausing);
    code = f->user.on_batch(f->user.ctx, &consumer->batch);
    uva__point_span_end(uva__consumer_point(consumer), "on_batch", ordinal,
                        since_ns);
    uva_array_release(&consumer->batch.data);
    batch_answered(f, rows, code);
}

/* A thread has paused or resumed the stream: the producer looks at the word
 * again, as a batch that was requested may wait there. */
static void for_each_posted(struct uva__consumer *consumer)
{
    if (!uva__consumer_is_open(consumer))
        return;
    for_each_go_on(for_each_of(consumer));
    uva__producer_wake(consumer->stream->tail);
}

static void for_each_done(struct uva__consumer *consumer,
                          const struct uva_outcome *outcome)
{
    struct uva_consumer *user = &for_each_of(consumer)->user;
    const uint64_t since_ns = uva__span_begin(consumer->stream->rt);

    if (user->on_done != NULL && !consumer->stream->loop.silent) {
        user->on_done(user->ctx, outcome);
        uva__point_span_end(uva__consumer_point(consumer), "on_done", -1,
                            since_ns);
    }
    if (user->free_ctx != NULL)
        user->free_ctx(user->ctx);
}

static const struct uva__consumer_kind for_each_kind = {
    .sink = {UVA__CONSUMER_SINK("for_each", for_each, false),
             .options = {UVA__OPTIONS(uva_consumer),
                         UVA__OPTIONS_NEED(uva_consumer, on_batch)},
             .copy = offsetof(struct for_each, user)},
    .schema = for_each_schema,
    .asks = for_each_asks,
    .batch = for_each_batch,
    .done = for_each_done,
    .posted = for_each_posted,
};

int uva_stream_for_each(struct uva_stream *stream,
                        const struct uva_consumer *consumer,
                        struct uva_error *error)
{
    return uva__sink_start(stream, &for_each_kind.sink, consumer, error);
}
