/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a number in memory, by the futex call of Linux. */
#define _GNU_SOURCE
#include "base/atomic.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* In glibc syscall(SYS_futex) is not a cancellation point. */
static int sync_sleep(_Atomic uint32_t *at, uint32_t seen,
                      const struct timespec *limit)
{
    return syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, seen, limit, NULL, 0) == 0
               ? 0
               : errno;
}

static void sync_wake(_Atomic uint32_t *at, int count)
{
    (void)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

bool uva__futex_wait_ns(struct uva__futex *signal, uint32_t seen, int64_t ns)
{
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};

    if (uva__futex_now(signal) != seen)
        return true;
    return sync_sleep(&signal->value, seen, ns < 0 ? NULL : &limit) !=
           ETIMEDOUT;
}

bool uva__futex_wait(struct uva__futex *signal, uint32_t seen, int64_t ms)
{
    const int64_t ns_in_ms = 1000000;
    const int64_t most = INT64_MAX / ns_in_ms;

    return uva__futex_wait_ns(signal, seen,
                              ms < most ? ms * ns_in_ms : INT64_MAX);
}

void uva__futex_change(struct uva__futex *signal)
{
    atomic_fetch_add_explicit(&signal->value, 1, memory_order_acq_rel);
}

void uva__futex_wake(struct uva__futex *signal)
{
    sync_wake(&signal->value, INT_MAX);
}

void uva__futex_raise(struct uva__futex *signal)
{
    uva__futex_change(signal);
    uva__futex_wake(signal);
}

void uva__lock_wait(struct uva__lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        (void)sync_sleep(&lock->state, 2, NULL);
}

void uva__lock_wake(struct uva__lock *lock)
{
    sync_wake(&lock->state, 1);
}
