/* SPDX-License-Identifier: Apache-2.0 */
/* Parks one thread until another has work for it. The other thread makes a
 * system call only if the first one sleeps. */
#ifndef UVA_BASE_PARKER_H
#define UVA_BASE_PARKER_H

#include "base/atomic.h"

/* All zeroes: the thread is awake. */
struct uva__parker {
    struct uva__atomic64 sleeping; /* 1: the thread sleeps, or is about to */
    struct uva__futex wake;        /* the futex it sleeps on */
};

/* Announces that the caller will sleep. The caller checks for work between this
 * and uva__parker_park(), which may return early. Thread: the sleeper. */
static inline uint32_t uva__parker_prepare(struct uva__parker *parker)
{
    const uint32_t seen = uva__futex_now(&parker->wake);

    uva__atomic64_exchange(&parker->sleeping, 1);
    return seen;
}

static inline void uva__parker_park(struct uva__parker *parker, uint32_t seen)
{
    (void)uva__futex_wait(&parker->wake, seen, -1);
}

/* The caller has its work, or sleeps no more. An exchange and not a store,
 * because the next prepare reads this value: it must carry the work published
 * before an unpark. Thread: the sleeper. */
static inline void uva__parker_finish(struct uva__parker *parker)
{
    uva__atomic64_exchange(&parker->sleeping, 0);
}

/* Wakes the thread, after the caller has published the work. Thread: any. */
static inline void uva__parker_unpark(struct uva__parker *parker)
{
    if (uva__atomic64_exchange(&parker->sleeping, 0) != 0)
        uva__futex_raise(&parker->wake);
}

#endif
