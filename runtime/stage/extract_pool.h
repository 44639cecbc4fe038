/* SPDX-License-Identifier: Apache-2.0 */
/* Extractors of one stage: jobs that extract its batches on compute workers, as
 * many at once as it allows. They claim batches in the order in which the stage
 * has granted them; the stage collects finished ones. */
#ifndef UVA_STAGE_EXTRACT_POOL_H
#define UVA_STAGE_EXTRACT_POOL_H

#include "stage/flight.h"
#include "stage/stuck_calls.h"
#include "stream/measure.h"

struct uva__extractor;

/* All zeroes, but for the first part, is a pool without any room. */
struct uva__extract_pool {
    struct uva__flight *flight; /* borrows: every active worker counts the
                                   stage, which is told of finished batches */
    int32_t workers;            /* that may be active at once */
    int32_t priority;           /* of their jobs; set before the room is made */

    struct uva__measure measure;     /* of the batches */
    struct uva__atomic_ptr *granted; /* owns: a ring of batches to be claimed */
    uint64_t ring;                   /* its size, a power of two */
    struct uva__extractor *extractors; /* owns: `workers` of them */
    uint64_t put;                      /* batches granted, in all; loop only */
    struct uva__atomic64 work; /* batches to be claimed << 8 | active workers */
    struct uva__atomic64 claimed; /* batches claimed, in all */
    struct uva__atomic64 awaited; /* batches; see exec/awaited.h */
    struct uva__atomic64 stopped; /* 1: workers discard their results */
    struct uva__lock lock;
    struct {
        struct uva__list idle; /* extractors with a job that is not queued */
        struct uva__stuck_calls calls; /* jobs that run */
    } locked;
};

/* Makes room for `batches` to be granted at once, which fit `schema`. 0 or
 * ENOMEM. Thread: loop. */
UVA_MUST_CHECK int uva__extract_pool_prepare(struct uva__extract_pool *pool,
                                             int64_t batches,
                                             const struct ArrowSchema *schema);

/* Frees the room; no worker is active. Thread: any. */
void uva__extract_pool_fini(struct uva__extract_pool *pool);

/* Puts a batch after the granted ones; then publishes `count` of them, and
 * starts a worker for each, up to the number of workers. Thread: loop. */
void uva__extract_pool_grant(struct uva__extract_pool *pool,
                             struct uva__flight_batch *batch);
void uva__extract_pool_publish(struct uva__extract_pool *pool, uint64_t count);

/* The consumer waits for batch number `count`, counted from 1 in the order in
 * which they were granted: it is extracted before the batches that no consumer
 * waits for. Thread: loop. */
void uva__extract_pool_want(struct uva__extract_pool *pool, uint64_t count);

/* From now on results are discarded. Returns how many batches were not claimed;
 * uva__extract_pool_ungrant() returns each of them, the last one first.
 * Thread: loop. */
uint64_t uva__extract_pool_stop(struct uva__extract_pool *pool);
struct uva__flight_batch *
uva__extract_pool_ungrant(struct uva__extract_pool *pool);

#endif
