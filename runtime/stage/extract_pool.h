/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that extract batches for one stage, as many at once as it allows:
 * they claim cells in the order in which those were granted. What becomes of a
 * cell that is done is the stage's business. */
#ifndef UVA_STAGE_EXTRACT_POOL_H
#define UVA_STAGE_EXTRACT_POOL_H

#include "stage/stage.h"

/* One batch on its way. */
struct uva__extract_entry {
    struct uva__link link;      /* in arrival order, or among the free */
    struct uva__link wait;      /* among those not yet granted */
    struct ArrowAsyncTask task; /* until claimed; then the worker's */
    struct uva__entry batch;    /* array, bytes and code: once done */
    bool seen;                  /* the loop has counted it as done */
    struct uva__atomic64 done;  /* 1: the worker has left it */
};

struct uva__extractor;

/* All zeroes, but for the first part, is a pool without room. */
struct uva__extract_pool {
    struct uva__stage *stage;   /* borrows: counted by each worker at work */
    struct uva__wakeup *wakeup; /* borrows: posted when a cell is done */
    int32_t workers;            /* at most at once */

    struct ArrowSchema schema;         /* owns: to measure with */
    struct uva__atomic_ptr *granted;   /* owns: a ring of cells to be claimed */
    uint64_t ring;                     /* its size, a power of two */
    struct uva__extractor *extractors; /* owns: `workers` of them */
    uint64_t put;                      /* cells granted, in all; loop only */
    struct uva__atomic64 work; /* cells to be claimed << 8 | workers at work */
    struct uva__atomic64 claimed; /* cells claimed, in all */
    struct uva__atomic64 stopped; /* 1: discard what you have */
    struct uva__lock lock;
    struct {
        struct uva__list idle; /* workers whose job is not queued */
    } locked;
};

/* Makes room for `cells` to be granted at once, of batches like `schema`. 0 or
 * ENOMEM. Thread: loop. */
UVA_MUST_CHECK int uva__extract_pool_prepare(struct uva__extract_pool *pool,
                                             int64_t entries,
                                             const struct ArrowSchema *schema);

/* Frees the room; nobody is at work. Thread: any. */
void uva__extract_pool_fini(struct uva__extract_pool *pool);

/* Puts a cell behind those granted; then publishes `count` of them, with a
 * worker for each as far as there may be more. Thread: loop. */
void uva__extract_pool_grant(struct uva__extract_pool *pool,
                             struct uva__extract_entry *entry);
void uva__extract_pool_publish(struct uva__extract_pool *pool, uint64_t count);

/* From now on results are discarded. Gives back how many cells nobody has
 * claimed; uva__extract_pool_ungrant() gives each, the last one first. Thread:
 * loop. */
uint64_t uva__extract_pool_stop(struct uva__extract_pool *pool);
struct uva__extract_entry *
uva__extract_pool_ungrant(struct uva__extract_pool *pool);

#endif
