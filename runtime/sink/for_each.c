/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a stream's batches to callbacks, one at a time: the next batch is
 * requested when the last one was accepted.
 *
 * Happy path:  on_schema -> (on_batch)* -> on_done.
 *
 * Failures:    on_batch. EAGAIN pauses until a resume, after which on_batch
 *              gets that batch again if its data was not taken.
 *
 * On cancel:   only on_done is called; on drop: no callback. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arrow/metadata.h"
#include "base/error.h"
#include "base/memory.h"
#include "sink/consumer.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"

struct for_each {
    struct uva__consumer consumer; /* first */
    struct uva_consumer user;      /* the callbacks */
    bool paused;                   /* on_batch returned EAGAIN */
    struct uva__metadata metadata; /* owns: of the batch that is given again */
};

_Static_assert(sizeof(struct for_each) <= UVA__STREAM_SINK_ROOM,
               "it lies behind its stream");

static struct for_each *for_each_of(struct uva__consumer *consumer)
{
    return uva__container_of(consumer, struct for_each, consumer);
}

static int for_each_schema(struct uva__consumer *consumer)
{
    struct uva_consumer *user = &for_each_of(consumer)->user;
    const uint64_t since_ns = uva__span_begin(consumer->stream->rt);
    int code = 0;

    if (user->on_schema != NULL)
        code = uva__error_positive(
            user->on_schema(user->ctx, &consumer->stream->loop.info));
    uva__point_span_end(uva__consumer_point(consumer), "on_schema", -1,
                        since_ns);
    if (code == 0)
        uva__consumer_request(consumer);
    return code;
}

static void metadata_drop(struct for_each *f)
{
    if (f->metadata.block != NULL)
        uva__metadata_fini(&f->metadata, &f->consumer.stream->rt->allocator,
                           NULL);
}

/* The batch was accepted: releases the rest of its data. */
static void batch_accepted(struct for_each *f)
{
    uva_array_release(&f->consumer.batch.data);
    metadata_drop(f);
    f->consumer.delivered++;
}

/* The batch will be given again: copies its metadata until then. */
static void batch_kept(struct for_each *f)
{
    struct uva__consumer *c = &f->consumer;

    if (c->batch.metadata == f->metadata.block)
        return;
    if (uva__metadata_copy(&c->stream->rt->allocator, c->batch.metadata,
                           &f->metadata) == ENOMEM)
        uva__consumer_stop(c, UVA_END_FAILED, ENOMEM, NULL);
    c->batch.metadata = f->metadata.block;
}

static void batch_paused(struct for_each *f)
{
    struct uva_stream *stream = f->consumer.stream;

    f->paused = true;
    uva__producer_pause(stream->tail, true);
    if (uva_array_is_live(&f->consumer.batch.data)) {
        uva__share_hold(&f->consumer.share, 1,
                        uva__window_size(f->consumer.bytes));
        batch_kept(f);
    } else {
        batch_accepted(f);
    }
    if (uva__atomic64_load(&stream->resumed) != 0)
        uva__rt_wake(stream->rt, &stream->wakeup);
}

/* It wants the batch later, or no more. */
__attribute__((cold)) static void batch_refused(struct for_each *f, int code)
{
    struct uva__consumer *c = &f->consumer;

    switch (code) {
    case EAGAIN:
        batch_paused(f);
        return;
    case ECANCELED:
        c->delivered++;
        uva__consumer_stop(c, UVA_END_CANCELLED, code,
                           "the consumer wants no more");
        break;
    default:
        uva__consumer_stop(c, UVA_END_REJECTED, code, NULL);
    }
    uva_array_release(&c->batch.data);
}

/* A resume that comes before on_batch is called has no effect. */
static void resumes_forget(struct uva_stream *stream)
{
    if (uva__atomic64_peek(&stream->resumed) != 0)
        (void)uva__atomic64_exchange(&stream->resumed, 0);
}

/* on_batch has returned `code`. */
static void batch_answered(struct for_each *f, int code)
{
    if (f->consumer.stream->loop.silent) {
        uva_array_release(&f->consumer.batch.data);
    } else if (code != 0) {
        batch_refused(f, uva__error_positive(code));
    } else {
        batch_accepted(f);
        uva__consumer_request(&f->consumer);
    }
}

static void for_each_batch(struct uva__consumer *consumer)
{
    struct for_each *f = for_each_of(consumer);
    const int64_t ordinal = consumer->batch.ordinal;
    const uint64_t since_ns = uva__span_begin(consumer->stream->rt);
    int code;

    resumes_forget(consumer->stream);
    code = f->user.on_batch(f->user.ctx, &consumer->batch);
    uva__point_span_end(uva__consumer_point(consumer), "on_batch", ordinal,
                        since_ns);
    batch_answered(f, code);
}

/* After a resume: gives the paused batch again, or requests the next one. */
static void for_each_posted(struct uva__consumer *consumer)
{
    struct for_each *f = for_each_of(consumer);

    if (!f->paused || !uva__consumer_is_open(consumer) ||
        uva__atomic64_exchange(&consumer->stream->resumed, 0) == 0)
        return;
    f->paused = false;
    uva__share_hold(&consumer->share, 0, 0);
    uva__producer_pause(consumer->stream->tail, false);
    if (uva_array_is_live(&consumer->batch.data)) {
        consumer->stream->rt->loop.spent++;
        for_each_batch(consumer);
    } else {
        uva__consumer_request(consumer);
    }
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

static void for_each_free(struct uva__consumer *consumer)
{
    metadata_drop(for_each_of(consumer));
}

static const struct uva__consumer_kind for_each_kind = {
    .sink = {UVA__CONSUMER_SINK("for_each", for_each, false),
             .options = {UVA__OPTIONS(uva_consumer),
                         UVA__OPTIONS_NEED(uva_consumer, on_batch)},
             .copy = offsetof(struct for_each, user)},
    .schema = for_each_schema,
    .batch = for_each_batch,
    .done = for_each_done,
    .posted = for_each_posted,
    .free = for_each_free,
};

int uva_stream_for_each(struct uva_stream *stream,
                        const struct uva_consumer *consumer,
                        struct uva_error *error)
{
    return uva__sink_start(stream, &for_each_kind.sink, consumer, error);
}
