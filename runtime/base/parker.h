/* SPDX-License-Identifier: Apache-2.0 */
/* Parks one thread until another has work for it. The other thread makes a
 * system call only if the first one sleeps. */
#ifndef UVA_CORE_SLEEPER_H
#define UVA_CORE_SLEEPER_H

#include "base/atomic.h"

/* All zeroes: the thread is awake. */
struct uva__sleeper {
    struct uva__word sleeping; /* 1: the thread sleeps, or is about to */
    struct uva__signal wake;   /* the futex it sleeps on */
};

/* Announces that the caller will sleep. The caller checks for work between this
 * and uva__sleeper_sleep(), which may return early. Thread: the one that
 * sleeps. */
static inline uint32_t uva__sleeper_begin(struct uva__sleeper *sleeper)
{
    const uint32_t seen = uva__signal_now(&sleeper->wake);

    uva__word_exchange(&sleeper->sleeping, 1);
    return seen;
}

static inline void uva__sleeper_sleep(struct uva__sleeper *sleeper,
                                      uint32_t seen)
{
    (void)uva__signal_wait(&sleeper->wake, seen, -1);
}

/* The caller has its work, or sleeps no more. Thread: the one that slept. */
static inline void uva__sleeper_end(struct uva__sleeper *sleeper)
{
    uva__word_store(&sleeper->sleeping, 0);
}

/* Wakes the thread, after the caller has published the work. Thread: any. */
static inline void uva__sleeper_wake(struct uva__sleeper *sleeper)
{
    if (uva__word_exchange(&sleeper->sleeping, 0) != 0)
        uva__signal_raise(&sleeper->wake);
}

#endif
