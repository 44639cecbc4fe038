/* SPDX-License-Identifier: Apache-2.0 */
/* A handler of our own at the end of a stream: extracts each batch on the loop
 * thread, checks that the host can read it, and decides the one outcome. Its
 * users, for_each and next, do something with the batches. */
#ifndef UVA_STREAM_RECEIVER_H
#define UVA_STREAM_RECEIVER_H

#include "stream/stream_impl.h"

struct uva__receiver;

/* What the user of a consumer does. All are called on the loop thread. */
struct uva__receiver_ops {
    struct uva__terminal_ops terminal; /* begin: uva__receiver_begin */
    /* the schema is in stream->loop.info. 0, or a code: rejected. */
    int (*schema)(struct uva__receiver *receiver);
    /* receiver->batch holds a batch */
    void (*batch)(struct uva__receiver *receiver);
    /* the stream is over; if it is silent, no callback may run */
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
    bool decided;                        /* `end` is final */
    enum uva_end end;                    /* how it ends */
    struct uva__failure failure;         /* why */
    int extraction;                      /* its code, until on_error */
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

/* Handles a cancel or a drop, if there was one; for visit. Thread: loop. */
void uva__receiver_heed(struct uva__receiver *receiver);

/* Requests one more batch. Thread: loop, once the schema is known. */
void uva__receiver_request(struct uva__receiver *receiver);

/* Decides how the stream ends, which must not be decided, and cancels it.
 * Thread: loop. */
void uva__receiver_stop(struct uva__receiver *receiver, enum uva_end end,
                        int code, const char *text);

/* Gives the outcome of one that is over. Thread: loop. */
void uva__receiver_outcome(const struct uva__receiver *receiver,
                           struct uva_outcome *out);

#endif
