/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a consumer waits for the next result of work that a job does in
 * turns, in one atomic: so that a job queued as read-ahead and a consumer that
 * begins to wait cannot miss each other. Used by a reader (source/reader.c) and
 * by a parallel stage (stage/extract_pool.c). */
#ifndef UVA_EXEC_AWAITED_H
#define UVA_EXEC_AWAITED_H

#include "base/atomic.h"

enum {
    AWAITED_AHEAD = 1, /* a job is queued as read-ahead */
    AWAITED_SHIFT = 1  /* above it: results that the consumer waits for */
};

/* More results than there can be: every further step is waited for. */
static const uint64_t UVA__AWAITED_ALL = UINT64_MAX >> AWAITED_SHIFT;

/* ---- the loop ----------------------------------------------------------- */

/* Notes that the consumer waits for result number `count`, counted from 1.
 * Returns whether the caller has to raise a job that is queued as read-ahead.
 * Thread: loop. */
static inline bool uva__awaited_want(struct uva__atomic64 *word, uint64_t count)
{
    const uint64_t before = uva__atomic64_peek(word) >> AWAITED_SHIFT;

    if (before >= count)
        return false;
    return (uva__atomic64_add(word, (count - before) << AWAITED_SHIFT) &
            AWAITED_AHEAD) != 0;
}

/* ---- the lane and the job ------------------------------------------------ */

/* Whether the consumer waits for more than the `done` results that there are.
 * Thread: any. */
static inline bool uva__awaited_is(const struct uva__atomic64 *word,
                                   uint64_t done)
{
    return uva__atomic64_load(word) >> AWAITED_SHIFT > done;
}

/* The job is queued: returns whether it is read-ahead, and notes it. A consumer
 * that begins to wait after this has to raise the job. Thread: any, under the
 * lock of the queue. */
static inline bool uva__awaited_submit(struct uva__atomic64 *word,
                                       uint64_t done)
{
    uint64_t seen = uva__atomic64_load(word);

    do
        if (seen >> AWAITED_SHIFT > done)
            return false;
    while (!uva__atomic64_cas(word, &seen, seen | AWAITED_AHEAD));
    return true;
}

/* A job that was queued as read-ahead was taken. Thread: any, under that lock.
 */
static inline void uva__awaited_run(struct uva__atomic64 *word)
{
    uva__atomic64_and(word, ~(uint64_t)AWAITED_AHEAD);
}

#endif
