/* SPDX-License-Identifier: Apache-2.0 */
/* Extractors of a parallel stage: jobs that extract its batches on compute
 * workers, as many at once as it allows. They claim the batches in the order in
 * which the stage has granted them. */
#ifndef UVA_STAGE_EXTRACT_POOL_H
#define UVA_STAGE_EXTRACT_POOL_H

#include "stage/flight.h"
#include "stream/measure.h"

struct uva__extractor;

/* All zeroes, but for the first two, is a pool without extractors. */
struct uva__extract_pool {
    struct uva__flight flight; /* first: it takes extracted batches */
    int32_t workers;           /* extractors at work at once, at most */
    const struct uva__measure *measure; /* borrows: of the batches */
    struct uva__extractor *extractors;  /* owns: `workers` of them */
    struct uva__list fresh; /* batches to be published, by `work_link`; loop
                               only. Empty between two pulls */
    struct uva__atomic64 awaited; /* batches; see exec/awaited.h */
    struct uva__atomic64 stopped; /* 1: extractors discard their results */
    struct uva__lock lock;
    struct {
        struct uva__list granted; /* batches to be claimed, by `work_link` */
        struct uva__list idle;    /* extractors that were not submitted */
        uint64_t claimed;         /* batches claimed, in all */
        int32_t active;           /* extractors that are not idle */
    } locked;
};

/* Makes the extractors, for batches of that measure, which is borrowed as long
 * as the flight. 0 or ENOMEM. Thread: loop. */
UVA_MUST_CHECK int
uva__extract_pool_prepare(struct uva__extract_pool *pool,
                          const struct uva__measure *measure);

/* Frees them; none is active. Thread: any. */
void uva__extract_pool_fini(struct uva__extract_pool *pool);

/* Grants a batch, which publish then lets the extractors claim: it starts an
 * idle one for each. Thread: loop. */
void uva__extract_pool_grant(struct uva__extract_pool *pool,
                             struct uva__flight_batch *batch);
void uva__extract_pool_publish(struct uva__extract_pool *pool);

/* The consumer waits for batch number `count`, counted from 1 in the order in
 * which they were granted: it is extracted before the batches that no consumer
 * waits for. Thread: loop. */
void uva__extract_pool_want(struct uva__extract_pool *pool, uint64_t count);

/* From now on results are discarded. Moves the batches that were not claimed to
 * `unclaimed`, by `work_link`. Thread: loop. */
void uva__extract_pool_stop(struct uva__extract_pool *pool,
                            struct uva__list *unclaimed);

#endif
