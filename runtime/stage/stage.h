/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of every stage: an inlet for the producer above it, and a
 * source for the producer below. It relays schema, metadata, end, error and
 * cancel; each stage decides what happens to tasks in between. Everything here
 * runs on the loop thread, unless its comment states otherwise. */
#ifndef UVA_STAGE_STAGE_H
#define UVA_STAGE_STAGE_H

#include "stream/inlet.h"

struct uva__stage;

/* What a stage does. A static table. */
struct uva__stage_ops {
    struct uva__source_ops source; /* pull and take are the stage's own; start,
                                      stop and leave may be those below */
    /* as in struct uva__inlet_ops; NULL: the schema is passed on */
    int (*schema)(struct uva__stage *stage, struct ArrowSchema *schema,
                  struct uva_error *error);
    /* takes a task from above, in order */
    void (*task)(struct uva__stage *stage, struct ArrowAsyncTask *task,
                 const char *metadata);
    /* frees the stage and its own memory; any thread */
    void (*free)(struct uva__stage *stage,
                 const struct uva_allocator *allocator);
};

struct uva__stage {
    struct uva__source source; /* first */
    struct uva__inlet inlet;   /* its failure follows the batches at hand */
    const struct uva__stage_ops *ops; /* static */
    struct uva__wakeup wakeup;        /* posted by the stage; counted by the
                                         source, the inlet, workers and posts */
    ArrowDeviceType output_type;      /* of its batches; 0: unchanged */
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

/* For uva__source_ops: begins the inlet; stops it; releases the reference of
 * the source. */
void uva__stage_start(struct uva__source *source);
void uva__stage_stop(struct uva__source *source);
void uva__stage_leave(struct uva__source *source);

/* For uva__source_ops: passes it on to the producer above. */
void uva__stage_need(struct uva__source *source);

/* For uva__source_ops: gives the source of the producer above, until that has
 * released the inlet. */
const struct uva__source *uva__stage_above(const struct uva__source *source);

/* Passes the schema of the inlet on; for uva__stage_ops.schema.
 * 0 or ENOMEM. */
int uva__stage_pass_schema(struct uva__stage *stage,
                           struct ArrowSchema *schema);

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

static inline struct uva__task *uva__kept_first(const struct uva__kept *kept)
{
    return uva__container_of(kept->tasks.head, struct uva__task, link);
}

/* Gives the oldest batch; NULL: none is kept. Keeps one more. */
struct uva__task *uva__kept_pop(struct uva__kept *kept);
void uva__kept_push(struct uva__kept *kept, struct uva__task *task);

/* For uva__source_ops.stop: discards all of them. */
void uva__kept_drop(struct uva__kept *kept, struct uva__source *source);

#endif
