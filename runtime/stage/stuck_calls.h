/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the jobs of a stage that are inside foreign code, so that abandoned
 * ones count as stuck calls of the runtime until they return. Everything here
 * is under a lock of the stage. */
#ifndef UVA_STAGE_STUCK_CALLS_H
#define UVA_STAGE_STUCK_CALLS_H

#include "loop/rt.h"

/* All zeroes: no job runs. */
struct uva__stuck_calls {
    int32_t running; /* jobs that had begun before they were abandoned */
    bool abandoned;  /* no one waits for them any more */
};

/* A job begins. Returns whether it counts: it does not if the jobs were
 * abandoned before. */
static inline bool uva__stuck_calls_enter(struct uva__stuck_calls *calls)
{
    calls->running += !calls->abandoned;
    return !calls->abandoned;
}

/* A job that counts ends. */
static inline void uva__stuck_calls_leave(struct uva__stuck_calls *calls,
                                          struct uva__stats *stats)
{
    calls->running--;
    if (calls->abandoned)
        uva__atomic64_sub(&stats->calls_stuck, 1);
}

/* No one waits for the jobs any more; once. */
static inline void uva__stuck_calls_abandon(struct uva__stuck_calls *calls,
                                            struct uva__stats *stats)
{
    calls->abandoned = true;
    uva__atomic64_add(&stats->calls_stuck, (uint64_t)calls->running);
}

#endif
