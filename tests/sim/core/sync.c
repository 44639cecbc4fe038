/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting is the engine's. */
#include "sim/core/sync.h"

struct sleep {
    const struct uva__signal *signal; /* borrows */
    uint32_t seen;
};

static bool sleep_is_over(void *arg)
{
    const struct sleep *sleep = arg;

    return uva__signal_now(sleep->signal) != sleep->seen;
}

/* The system call empties the buffer. */
bool uva__signal_wait(struct uva__signal *signal, uint32_t seen,
                      int64_t timeout_ms)
{
    struct sleep sleep = {.signal = signal, .seen = seen};

    if (uva__signal_now(signal) != seen)
        return true;
    sim_flush();
    if (sim_luck(64))
        return true;
    if (timeout_ms < 0) {
        sim_wait(sleep_is_over, &sleep);
        return true;
    }
    return sim_wait_until(sleep_is_over, &sleep,
                          sim_now_ns() + (uint64_t)timeout_ms * 1000000);
}

void uva__signal_raise(struct uva__signal *signal)
{
    (void)sim_add(&signal->value, sizeof(signal->value), 1);
}

static bool lock_is_free(void *arg)
{
    const struct uva__lock *lock = arg;

    return sim_load(&lock->state, sizeof(lock->state)) == 0;
}

/* Who takes it need not be let go on once more before that, nor who drops it:
 * between the two nobody else gets it. */
void uva__lock_take(struct uva__lock *lock)
{
    const uint32_t mine = (uint32_t)sim_self() + 2;

    if (lock->state == mine)
        sim_fail("a lock is taken twice");
    sim_wait(lock_is_free, lock);
    sim_flush();
    lock->state = mine;
}

void uva__lock_drop(struct uva__lock *lock)
{
    if (lock->state != (uint32_t)sim_self() + 2)
        sim_fail("a lock is dropped by another than who took it");
    sim_flush();
    lock->state = 0;
    sim_breathe();
}
