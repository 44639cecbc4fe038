/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a stage: a handler for the producer above it, a feed for the
 * producer below. Relays schema, metadata, end, error and cancel; what happens
 * to tasks in between is the stage's business. Loop thread, unless it says
 * otherwise. */
#ifndef UVA_STAGE_STAGE_H
#define UVA_STAGE_STAGE_H

#include "stream/producer.h"

struct uva__stage;

/* What a stage does. */
struct uva__stage_ops {
    struct uva__source_ops source; /* pull and take are its own; start, stop and
                                  leave may be those of the frame */
    /* takes a task from above, in order */
    void (*task)(struct uva__stage *stage, struct ArrowAsyncTask *task,
                 const char *metadata);
    /* frees the whole stage; any thread */
    void (*free)(struct uva__stage *stage,
                 const struct uva_allocator *allocator);
};

struct uva__stage {
    struct uva__source source;                    /* first */
    struct ArrowAsyncDeviceStreamHandler handler; /* for the one above */
    const struct uva__stage_ops *ops;             /* static */
    struct uva__producer *above; /* owns until started; then until released */
    struct uva__wakeup wakeup;   /* posted by the stage; counted by the feed,
                                the handler, workers and posts */
    ArrowDeviceType output_type; /* of what the stage gives; 0: it stays */
    bool started;                /* the one above drives us */
    bool stopped;                /* nothing more is wanted */
    bool ended;                  /* the one above has no more */
    bool released;               /* it has let go of us */
    struct uva__failure failure; /* what it said last; code 0: nothing */
};

/* Sets up the frame in cleared memory; takes `above`. The feed holds the one
 * count there is. Thread: builder. */
void uva__stage_init(struct uva__stage *stage, const struct uva__stage_ops *ops,
                     const struct uva__wakeup_ops *wakeup_ops,
                     struct uva__producer *above);

/* For uva__wakeup_ops: frees the stage. Thread: any. */
void uva__stage_free(struct uva__wakeup *wakeup);

/* The stage that a feed is part of. */
struct uva__stage *uva__stage_of(struct uva__source *source);

/* Counts. Thread: any. */
void uva__stage_acquire(struct uva__stage *stage);
void uva__stage_release(struct uva__stage *stage);

/* For uva__source_ops: begins to drive the frame's handler; cancels above;
 * gives up the feed's count. */
void uva__stage_start(struct uva__source *source);
void uva__stage_stop(struct uva__source *source);
void uva__stage_leave(struct uva__source *source);

/* Asks the one above for `n` more, if it still may be asked. */
void uva__stage_request(struct uva__stage *stage, int64_t n);

#endif
