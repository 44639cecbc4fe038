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
static int futex_sleep(_Atomic uint32_t *at, uint32_t seen,
                       const struct timespec *limit)
{
    return syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, seen, limit, NULL, 0) == 0
               ? 0
               : errno;
}

static void futex_wake_up(_Atomic uint32_t *at, int count)
{
    (void)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

bool uva__futex_wait_ns(struct uva__futex *futex, uint32_t seen, int64_t ns)
{
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};

    if (uva__futex_now(futex) != seen)
        return true;
    return futex_sleep(&futex->value, seen, ns < 0 ? NULL : &limit) !=
           ETIMEDOUT;
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
    futex_wake_up(&futex->value, INT_MAX);
}

void uva__futex_raise(struct uva__futex *futex)
{
    uva__futex_change(futex);
    uva__futex_wake(futex);
}

void uva__lock_wait(struct uva__lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        (void)futex_sleep(&lock->state, 2, NULL);
}

void uva__lock_wake(struct uva__lock *lock)
{
    futex_wake_up(&lock->state, 1);
}
