/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a stage: a handler for the producer above it, a feed for the
 * producer below. Relays schema, metadata, end, error and cancel; what happens
 * to tasks in between is the stage's business. Loop thread, unless it says
 * otherwise. */
#ifndef UVA_OPERATORS_OPERATOR_H
#define UVA_OPERATORS_OPERATOR_H

#include "stream/producer.h"

struct uva__operator;

/* What a stage does. */
struct uva__operator_ops {
    struct uva__feed_ops feed; /* pull and take are its own; start, stop and
                                  leave may be those of the frame */
    /* takes a task from above, in order */
    void (*task)(struct uva__operator *op, struct ArrowAsyncTask *task,
                 const char *metadata);
    /* frees the whole stage; any thread */
    void (*free)(struct uva__operator *op,
                 const struct uva_allocator *allocator);
};

struct uva__operator {
    struct uva__feed feed;                        /* first */
    struct ArrowAsyncDeviceStreamHandler handler; /* for the one above */
    const struct uva__operator_ops *ops;          /* static */
    struct uva__producer *above; /* owns until started; then until released */
    struct uva__node node;       /* posted by the stage; counted by the feed,
                                    the handler, workers and posts */
    ArrowDeviceType becomes;     /* of what the stage gives; 0: it stays */
    bool started;                /* the one above drives us */
    bool stopped;                /* nothing more is wanted */
    bool ended;                  /* the one above has no more */
    bool released;               /* it has let go of us */
    struct uva__failure failure; /* what it said last; code 0: nothing */
};

/* Sets up the frame in cleared memory; takes `above`. The feed holds the one
 * count there is. Thread: builder. */
void uva__operator_init(struct uva__operator *op,
                        const struct uva__operator_ops *ops,
                        const struct uva__node_ops *node_ops,
                        struct uva__producer *above);

/* For uva__node_ops: frees the stage. Thread: any. */
void uva__operator_free(struct uva__node *node);

/* The stage that a feed is part of. */
struct uva__operator *uva__operator_of(struct uva__feed *feed);

/* Counts. Thread: any. */
void uva__operator_acquire(struct uva__operator *op);
void uva__operator_release(struct uva__operator *op);

/* For uva__feed_ops: begins to drive the frame's handler; cancels above; gives
 * up the feed's count. */
void uva__operator_start(struct uva__feed *feed);
void uva__operator_stop(struct uva__feed *feed);
void uva__operator_leave(struct uva__feed *feed);

/* Asks the one above for `n` more, if it still may be asked. */
void uva__operator_request(struct uva__operator *op, int64_t n);

#endif
