/* SPDX-License-Identifier: Apache-2.0 */
/* Waits are implemented by the engine. */
#include "sim/base/atomic.h"

#include "sim/engine_chooser.h"

/* The futex that each fiber sleeps on; NULL: it was woken, or does not
 * sleep. */
static const struct uva__futex *asleep[SIM_ACTORS];
static int sleepers; /* entries that were ever used */

static bool sleep_is_over(void *arg)
{
    return *(const struct uva__futex **)arg == NULL;
}

/* The system call flushes the store buffer, and compares and sleeps in one
 * step. */
bool uva__futex_wait_ns(struct uva__futex *futex, uint32_t seen,
                        int64_t timeout_ns)
{
    const struct uva__futex **here;
    bool in_time = true;

    if (sim_self() < 0) /* a handler of the exit, after a run that failed */
        return false;
    here = &asleep[sim_self()];
    if (uva__futex_now(futex) != seen)
        return true;
    sim_flush();
    if (sim_self() >= sleepers)
        sleepers = sim_self() + 1;
    if (sim_luck(64) || futex->value != seen)
        return true;
    *here = futex;
    if (timeout_ns < 0)
        sim_wait(sleep_is_over, here);
    else
        in_time = sim_wait_until(sleep_is_over, here,
                                 sim_now_ns() + (uint64_t)timeout_ns);
    *here = NULL;
    return in_time;
}

bool uva__futex_wait(struct uva__futex *futex, uint32_t seen,
                     int64_t timeout_ms)
{
    return uva__futex_wait_ns(futex, seen, timeout_ms * 1000000);
}

void uva__futex_change(struct uva__futex *futex)
{
    (void)sim_add(&futex->value, sizeof(futex->value), 1);
}

void uva__futex_wake(struct uva__futex *futex)
{
    for (int i = 0; i < sleepers; i++)
        if (asleep[i] == futex)
            asleep[i] = NULL;
}

void uva__futex_raise(struct uva__futex *futex)
{
    uva__futex_change(futex);
    uva__futex_wake(futex);
}

static bool lock_is_free(void *arg)
{
    const struct uva__lock *lock = arg;

    return lock->state == 0;
}

/* Taking and dropping need no schedule points of their own before them: no
 * other fiber can get the lock in between. */
void uva__lock_take(struct uva__lock *lock)
{
    const uint32_t mine = (uint32_t)sim_self() + 2;

    if (lock->state == mine)
        sim_fail("a lock is taken twice");
    sim_wait(lock_is_free, lock);
    sim_flush();
    lock->state = mine;
    sim_lock_taken(&lock->state);
}

void uva__lock_drop(struct uva__lock *lock)
{
    if (lock->state != (uint32_t)sim_self() + 2)
        sim_fail("a lock is dropped by another fiber than its holder");
    sim_flush();
    sim_lock_dropped(&lock->state);
    lock->state = 0;
    sim_breathe();
}
