/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a stream of which the batches are used on the loop thread: an
 * inlet and a sink. It extracts each batch, checks that the host can read it,
 * and decides the one outcome. Its kinds, for_each, take and collect, do
 * something with the batches. */
#ifndef UVA_SINK_CONSUMER_H
#define UVA_SINK_CONSUMER_H

#include <assert.h>

#include "arrow/buffer.h"
#include "base/sum.h"
#include "sink/sink.h"
#include "stream/inlet.h"

struct uva__consumer;

/* A kind of consumer: a static table. All functions run on the loop thread,
 * but for `free`. */
struct uva__consumer_kind {
    struct uva__sink_kind sink; /* first; with UVA__CONSUMER_SINK() */
    /* the schema is in stream->loop.info. 0; ECANCELED: cancelled; another
     * code: rejected. NULL: the first batch is requested */
    int (*schema)(struct uva__consumer *consumer);
    /* whether `schema` runs no code of the program, and requests a batch unless
     * the stream is paused or over. NULL: it does */
    bool (*asks)(const struct uva__consumer *consumer);
    /* consumer->batch holds a batch */
    void (*batch)(struct uva__consumer *consumer);
    /* the stream is over; if it is silent, no callback may run */
    void (*done)(struct uva__consumer *consumer,
                 const struct uva_outcome *outcome);
    /* a thread has posted the stream: with a resume or a request, or a cancel,
     * which was handled. NULL: there is no rest */
    void (*posted)(struct uva__consumer *consumer);
    /* frees what it owns beside the common part, any thread; NULL: that is all
     */
    void (*free)(struct uva__consumer *consumer);
};

struct uva__consumer {
    struct uva__sink sink;                 /* first */
    struct uva__inlet inlet;               /* `failure`: why it ends early */
    const struct uva__consumer_kind *kind; /* static */
    struct uva_stream *stream;             /* borrows: it owns us */
    struct uva_batch batch;                /* owns the live members */
    struct uva__share share;               /* of a batch that is kept */
    int64_t bytes;     /* of `batch` before its extraction, as far as known, of
                          any size */
    int64_t delivered; /* batches that were accepted */
    int64_t rows;      /* in them */
    enum uva_end end;  /* how it ends, if that is early */
    bool measured;     /* `batch`, as struct uva__task has it */
};

/* The members of uva__consumer_kind.sink that all kinds share, with the name
 * and the struct of one, and whether the release of the last holder cancels. */
#define UVA__CONSUMER_SINK(own_name, type, cancels)                            \
    .ops = {.name = (own_name),                                                \
            .size = sizeof(struct type),                                       \
            .begin = uva__consumer_begin,                                      \
            .on_wakeup = uva__consumer_on_wakeup,                              \
            .free = uva__consumer_free,                                        \
            .cancel_without_holder = (cancels)},                               \
    .prepare = uva__consumer_prepare, .init = uva__consumer_init
void uva__consumer_begin(struct uva_stream *stream);
void uva__consumer_on_wakeup(struct uva_stream *stream);
void uva__consumer_free(struct uva_stream *stream);
void uva__consumer_prepare(struct uva_stream *stream,
                           const struct uva_window *window);
int uva__consumer_init(struct uva_stream *stream, struct uva_error *error);

/* Where calls of user functions are reported. */
static inline const struct uva__point *
uva__consumer_point(const struct uva__consumer *consumer)
{
    return &consumer->stream->label->consumer;
}

/* Whether the outcome is open. Thread: loop. */
static inline bool uva__consumer_is_open(const struct uva__consumer *consumer)
{
    return consumer->inlet.state == UVA__INLET_RUNNING &&
           consumer->inlet.failure.code == 0;
}

/* Whether the outcome was given to `done`. Thread: loop. */
static inline bool uva__consumer_is_over(const struct uva__consumer *consumer)
{
    return consumer->inlet.above == NULL;
}

/* Counts a batch with so many rows as accepted. */
static inline void uva__consumer_accept(struct uva__consumer *consumer,
                                        int64_t rows)
{
    consumer->delivered++;
    consumer->rows = uva__sum(consumer->rows, rows);
}

/* Requests one more batch. Thread: loop, once the schema is known. */
static inline void uva__consumer_request(struct uva__consumer *consumer)
{
    uva__inlet_request(&consumer->inlet, 1);
}

/* Decides how the stream ends, which is open so far, and cancels it.
 * Thread: loop. */
void uva__consumer_stop(struct uva__consumer *consumer, enum uva_end end,
                        int code, const char *text);

/* Gives the outcome of a consumer that is over. Thread: loop. */
void uva__consumer_outcome(const struct uva__consumer *consumer,
                           struct uva_outcome *out);

#endif
