/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of every stage: a handler for the producer above it, and a
 * source for the producer below. It relays schema, metadata, end, error and
 * cancel; each stage decides what happens to tasks in between. Everything here
 * runs on the loop thread, unless its comment states otherwise. */
#ifndef UVA_STAGE_STAGE_H
#define UVA_STAGE_STAGE_H

#include "stream/producer.h"

struct uva__stage;

/* What a stage does. */
struct uva__stage_ops {
    struct uva__source_ops source; /* pull and take are the stage's own; start,
                                      stop and leave may be those below */
    /* takes a task from above, in order */
    void (*task)(struct uva__stage *stage, struct ArrowAsyncTask *task,
                 const char *metadata);
    /* frees the stage and its own memory; any thread */
    void (*free)(struct uva__stage *stage,
                 const struct uva_allocator *allocator);
};

struct uva__stage {
    struct uva__source source;                    /* first */
    struct ArrowAsyncDeviceStreamHandler handler; /* for the producer above */
    const struct uva__stage_ops *ops;             /* static */
    struct uva__producer *above; /* owns until started; then until released */
    struct uva__wakeup wakeup;   /* posted by the stage; counted by the source,
                                    the handler, workers and posts */
    ArrowDeviceType output_type; /* of its batches; 0: unchanged */
    bool started;                /* the producer above drives the handler */
    bool ended;                  /* the producer above has reported its end */
    bool released;               /* it has released the handler */
    bool quit;                   /* it was cancelled */
    bool stop_waits; /* the stop waits until it has released the handler */
    struct uva__failure failure; /* its error; code 0: none */
};

/* Initialises the common part in cleared memory; takes `above`. The source
 * holds the only reference. Thread: builder. */
void uva__stage_init(struct uva__stage *stage, const struct uva__stage_ops *ops,
                     const struct uva__wakeup_ops *wakeup_ops,
                     struct uva__producer *above);

/* For uva__wakeup_ops: frees the stage. Thread: any. */
void uva__stage_free(struct uva__wakeup *wakeup);

/* Returns the stage that a source is part of. */
struct uva__stage *uva__stage_of(struct uva__source *source);

/* Counts references; the last release frees the stage. Thread: any. */
void uva__stage_acquire(struct uva__stage *stage);
void uva__stage_release(struct uva__stage *stage);

/* For uva__source_ops: has the producer above drive the handler; cancels that
 * producer; releases the source's reference. */
void uva__stage_start(struct uva__source *source);
void uva__stage_stop(struct uva__source *source);
void uva__stage_leave(struct uva__source *source);

/* For uva__source_ops: passes it on to the producer above. */
void uva__stage_need(struct uva__source *source);

/* For uva__source_ops: gives the source of the producer above, until that has
 * released the handler. */
const struct uva__source *uva__stage_above(const struct uva__source *source);

/* Cancels the producer above, unless that has released the handler; once. */
void uva__stage_quit(struct uva__stage *stage);

/* An extraction has failed with `code`: once the reason is known, it becomes
 * the failure of the stage's source. That is the error of the producer above,
 * or the code alone if there is none, or if that error only states that the
 * producer released the handler without an end: then the extraction had failed
 * before. Clauses: ER-12, ER-13. */
void uva__stage_fail_extraction(struct uva__stage *stage, int code);

/* Requests `n` more batches of the producer above, unless it has ended. */
void uva__stage_request(struct uva__stage *stage, int64_t n);

/* Has another producer (takes it) drive the handler, in which the functions are
 * filled in, after one that has failed and released it. */
void uva__stage_restart(struct uva__stage *stage, struct uva__producer *above);

/* Batches that a stage has extracted, in slots of the producer below. */
struct uva__kept {
    struct uva__list tasks; /* in order */
    int64_t count;
    int64_t bytes; /* in them, as far as known */
};

/* Extracts `task`, and keeps the batch. False: there was no memory for it, and
 * it is lost. If the extraction fails, nothing is kept, and the producer above
 * reports why. */
UVA_MUST_CHECK bool uva__stage_keep(struct uva__stage *stage,
                                    struct uva__kept *kept,
                                    struct ArrowAsyncTask *task,
                                    const char *metadata);

/* Gives the oldest batch; NULL: none is kept. Keeps one more. */
struct uva__task *uva__kept_pop(struct uva__kept *kept);
void uva__kept_push(struct uva__kept *kept, struct uva__task *task);

/* For uva__source_ops.stop: discards all of them. */
void uva__kept_drop(struct uva__kept *kept, struct uva__source *source);

#endif
