/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a number in memory, by the call of the platform. */
#include "base/atomic.h"

#include "base/platform.h"

bool uva__futex_wait_ns(struct uva__futex *futex, uint32_t seen, int64_t ns)
{
    if (uva__futex_now(futex) != seen)
        return true;
    return uva__platform_sleep(&futex->value, seen, ns);
}

bool uva__futex_wait(struct uva__futex *futex, uint32_t seen, int64_t ms)
{
    const int64_t ns_in_ms = 1000000;
    const int64_t most = INT64_MAX / ns_in_ms;

    return uva__futex_wait_ns(futex, seen,
                              ms < most ? ms * ns_in_ms : INT64_MAX);
}

void uva__futex_change(struct uva__futex *futex)
{
    atomic_fetch_add_explicit(&futex->value, 1, memory_order_acq_rel);
}

void uva__futex_wake(struct uva__futex *futex)
{
    uva__platform_wake_all(&futex->value);
}

void uva__futex_raise(struct uva__futex *futex)
{
    uva__futex_change(futex);
    uva__futex_wake(futex);
}

void uva__lock_wait(struct uva__lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        (void)uva__platform_sleep(&lock->state, 2, -1);
}

void uva__lock_wake(struct uva__lock *lock)
{
    uva__platform_wake_one(&lock->state);
}
