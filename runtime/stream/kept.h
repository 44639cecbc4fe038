/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that wait in slots (stream/task.h), in order, with their number and
 * their bytes (a transform counts the batches into which they are cut). A list
 * is used by the loop thread, or is guarded by its owner. */
#ifndef UVA_STREAM_KEPT_H
#define UVA_STREAM_KEPT_H

#include "stream/inlet.h"

struct uva__kept {
    struct uva__list tasks; /* in order */
    int64_t count;
    int64_t bytes; /* in them, as far as known */
};

/* The content of a slot, from a task that has come. */
enum uva__kept_content {
    UVA__KEPT_BATCH,  /* the batch: the task is extracted at once */
    UVA__KEPT_PROMISE /* the task, to be extracted later: `promise` */
};

static inline struct uva__task *uva__kept_first(const struct uva__kept *kept)
{
    return uva__container_of(kept->tasks.head, struct uva__task, link);
}

/* Gives the oldest batch; NULL: the list is empty. */
struct uva__task *uva__kept_pop(struct uva__kept *kept);

/* Keeps another batch. */
void uva__kept_push(struct uva__kept *kept, struct uva__task *task);

/* For uva__source_ops.stop: discards the kept batches. */
void uva__kept_drop(struct uva__kept *kept, struct uva__source *source);

/* Gives a slot of `producer` (NULL: it is not offered) with the content, the
 * ordinal, the size, also as it was measured, and the metadata of `task`, which
 * it takes. NULL: there was no memory, and the inlet has failed; or the
 * extraction has failed, and the producer above reports why. */
struct uva__task *uva__kept_take_in(struct uva__inlet *inlet,
                                    struct uva__producer *producer,
                                    struct ArrowAsyncTask *task,
                                    const char *metadata,
                                    enum uva__kept_content content);

#endif
