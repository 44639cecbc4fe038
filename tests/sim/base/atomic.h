/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the library's base/atomic.h when its sources are compiled for the
 * simulation. It has the names of that file, and each access to an atomic is a
 * point of the schedule (sim/engine.h). */
#ifndef UVA_BASE_ATOMIC_H
#define UVA_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine.h"

/* ---- atomics ------------------------------------------------------------ */

struct uva__atomic64 {
    uint64_t value;
};

struct uva__atomic_ptr {
    void *pointer;
};

static inline uint64_t uva__atomic64_load(const struct uva__atomic64 *atomic)
{
    return sim_load(&atomic->value, sizeof(atomic->value));
}

static inline uint64_t uva__atomic64_peek(const struct uva__atomic64 *atomic)
{
    return sim_peek(&atomic->value, sizeof(atomic->value));
}

static inline void uva__atomic64_store(struct uva__atomic64 *atomic,
                                       uint64_t value)
{
    sim_store(&atomic->value, sizeof(atomic->value), value);
}

static inline uint64_t uva__atomic64_exchange(struct uva__atomic64 *atomic,
                                              uint64_t value)
{
    return sim_exchange(&atomic->value, sizeof(atomic->value), value);
}

static inline uint64_t uva__atomic64_add(struct uva__atomic64 *atomic,
                                         uint64_t n)
{
    return sim_add(&atomic->value, sizeof(atomic->value), n);
}

static inline uint64_t uva__atomic64_sub(struct uva__atomic64 *atomic,
                                         uint64_t n)
{
    return sim_add(&atomic->value, sizeof(atomic->value), 0 - n);
}

static inline uint64_t uva__atomic64_or(struct uva__atomic64 *atomic,
                                        uint64_t bits)
{
    return sim_or(&atomic->value, sizeof(atomic->value), bits);
}

static inline uint64_t uva__atomic64_and(struct uva__atomic64 *atomic,
                                         uint64_t bits)
{
    return sim_and(&atomic->value, sizeof(atomic->value), bits);
}

static inline bool uva__atomic64_cas(struct uva__atomic64 *atomic,
                                     uint64_t *expected, uint64_t value)
{
    return sim_cas(&atomic->value, sizeof(atomic->value), expected, value);
}

static inline void *uva__atomic_ptr_load(const struct uva__atomic_ptr *shared)
{
    return (void *)(uintptr_t)sim_load(&shared->pointer,
                                       sizeof(shared->pointer));
}

static inline void uva__atomic_ptr_store(struct uva__atomic_ptr *shared,
                                         void *pointer)
{
    sim_store(&shared->pointer, sizeof(shared->pointer), (uintptr_t)pointer);
}

static inline void *uva__atomic_ptr_exchange(struct uva__atomic_ptr *shared,
                                             void *pointer)
{
    return (void *)(uintptr_t)sim_exchange(
        &shared->pointer, sizeof(shared->pointer), (uintptr_t)pointer);
}

static inline bool uva__atomic_ptr_cas(struct uva__atomic_ptr *shared,
                                       void **expected, void *pointer)
{
    uint64_t seen = (uintptr_t)*expected;
    const bool done = sim_cas(&shared->pointer, sizeof(shared->pointer), &seen,
                              (uintptr_t)pointer);

    *expected = (void *)(uintptr_t)seen;
    return done;
}

/* ---- waiting ------------------------------------------------------------ */

struct uva__futex {
    uint32_t value;
};

static inline uint32_t uva__futex_now(const struct uva__futex *futex)
{
    return (uint32_t)sim_load(&futex->value, sizeof(futex->value));
}

/* Sometimes returns without a wake-up, as the real one may. */
bool uva__futex_wait(struct uva__futex *futex, uint32_t seen,
                     int64_t timeout_ms);
bool uva__futex_wait_ns(struct uva__futex *futex, uint32_t seen,
                        int64_t timeout_ns);
void uva__futex_change(struct uva__futex *futex);
void uva__futex_wake(struct uva__futex *futex);
void uva__futex_raise(struct uva__futex *futex);

/* ---- lock --------------------------------------------------------------- */

/* Must be dropped by the fiber that took it. */
struct uva__lock {
    uint32_t state; /* 0: free, otherwise the fiber plus 2 */
};

void uva__lock_take(struct uva__lock *lock);
void uva__lock_drop(struct uva__lock *lock);

#endif
