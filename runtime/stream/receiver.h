/* SPDX-License-Identifier: Apache-2.0 */
/* A handler of our own at the end of a stream: extracts each batch on the loop
 * thread, checks that the host can read it, and works out the one outcome. What
 * is done with batches is its user's business: for_each, or next. */
#ifndef UVA_STREAM_RECEIVER_H
#define UVA_STREAM_RECEIVER_H

#include "stream/flow.h"

struct uva__receiver;

/* What the user of a consumer does. All are called on the loop thread. */
struct uva__receiver_ops {
    struct uva__terminal_ops terminal; /* begin: uva__receiver_begin */
    /* the schema is in stream->loop.info. 0, or a code: rejected. */
    int (*schema)(struct uva__receiver *receiver);
    /* there is a batch in receiver->batch */
    void (*batch)(struct uva__receiver *receiver);
    /* it is over; in silence nobody is to be told */
    void (*done)(struct uva__receiver *receiver,
                 const struct uva_outcome *outcome);
};

struct uva__receiver {
    struct uva__terminal terminal; /* first */
    struct ArrowAsyncDeviceStreamHandler handler;
    const struct uva__receiver_ops *ops; /* static */
    struct uva_stream *stream;           /* borrows: it owns us */
    struct uva_batch batch;              /* owns what is live in it */
    int64_t delivered;                   /* batches that were accepted */
    bool decided;                        /* `end` is settled */
    enum uva_end end;                    /* how it ends */
    struct uva__failure failure;         /* why */
    int extraction;                      /* a code that on_error explains */
    bool over;                           /* the handler was released */
};

/* Sets up the handler and the common part. */
void uva__receiver_init(struct uva__receiver *receiver,
                        const struct uva__receiver_ops *ops,
                        struct uva_stream *stream);

/* Frees what it owns, but for its own memory. Thread: any. */
void uva__receiver_fini(struct uva__receiver *receiver);

/* Attaches the handler; for uva__terminal_ops.begin. Thread: loop. */
void uva__receiver_begin(struct uva_stream *stream);

/* Heeds a cancel or a drop, if there was one; for visit. Thread: loop. */
void uva__receiver_heed(struct uva__receiver *receiver);

/* Asks for one more batch. Thread: loop, once the schema is known. */
void uva__receiver_request(struct uva__receiver *receiver);

/* Decides how it ends, unless it is decided, and wants no more. Thread: loop.
 */
void uva__receiver_stop(struct uva__receiver *receiver, enum uva_end end,
                        int code, const char *text);

/* Gives the outcome of one that is over. Thread: loop. */
void uva__receiver_outcome(const struct uva__receiver *receiver,
                           struct uva_outcome *out);

#endif
