/* SPDX-License-Identifier: Apache-2.0 */
/* The wait of a thread for a change of data that a lock guards. */
#ifndef UVA_BASE_LOCKED_WAIT_H
#define UVA_BASE_LOCKED_WAIT_H

#include "base/atomic.h"

/* Sleeps until `futex` is changed, at most for `ms` (negative: without a
 * limit), and drops the lock meanwhile. May return early. False if the time has
 * passed. A thread that changes the data, and then the futex, under the lock is
 * not missed. */
static inline bool uva__locked_wait(struct uva__lock *lock,
                                    struct uva__futex *futex, int64_t ms)
{
    const uint32_t seen = uva__futex_now(futex);
    bool in_time;

    uva__lock_drop(lock);
    in_time = uva__futex_wait(futex, seen, ms);
    uva__lock_take(lock);
    return in_time;
}

#endif
