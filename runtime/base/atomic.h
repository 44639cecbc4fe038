/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics, a futex, and a small lock.
 *
 * Every atomic of the library goes through this file, so that a simulator can
 * replace it. Orders: loads acquire, stores release, all other operations do
 * both. A store that must be visible before a flag is read is followed by an
 * exchange of that flag, never by a load: there are no fences. Such a flag is
 * not stored: the store would hide the data published before an earlier
 * exchange of another thread, unless a lock orders the three. */
#ifndef UVA_BASE_ATOMIC_H
#define UVA_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- atomics ------------------------------------------------------------ */

/* 64 bits that any thread may read and write. All zeroes is 0. */
struct uva__atomic64 {
    _Atomic uint64_t value;
};

/* A pointer that any thread may read and write. All zeroes is NULL. */
struct uva__atomic_ptr {
    _Atomic(void *) pointer;
};

static inline uint64_t uva__atomic64_load(const struct uva__atomic64 *atomic)
{
    return atomic_load_explicit(&atomic->value, memory_order_acquire);
}

/* Relaxed: for the only thread that writes the value, or as a hint which
 * something stronger confirms. */
static inline uint64_t uva__atomic64_peek(const struct uva__atomic64 *atomic)
{
    return atomic_load_explicit(&atomic->value, memory_order_relaxed);
}

static inline void uva__atomic64_store(struct uva__atomic64 *atomic,
                                       uint64_t value)
{
    atomic_store_explicit(&atomic->value, value, memory_order_release);
}

static inline uint64_t uva__atomic64_exchange(struct uva__atomic64 *atomic,
                                              uint64_t n)
{
    return atomic_exchange_explicit(&atomic->value, n, memory_order_acq_rel);
}

static inline uint64_t uva__atomic64_add(struct uva__atomic64 *atomic,
                                         uint64_t n)
{
    return atomic_fetch_add_explicit(&atomic->value, n, memory_order_acq_rel);
}

static inline uint64_t uva__atomic64_sub(struct uva__atomic64 *atomic,
                                         uint64_t n)
{
    return atomic_fetch_sub_explicit(&atomic->value, n, memory_order_acq_rel);
}

static inline uint64_t uva__atomic64_or(struct uva__atomic64 *atomic,
                                        uint64_t bits)
{
    return atomic_fetch_or_explicit(&atomic->value, bits, memory_order_acq_rel);
}

static inline uint64_t uva__atomic64_and(struct uva__atomic64 *atomic,
                                         uint64_t bits)
{
    return atomic_fetch_and_explicit(&atomic->value, bits,
                                     memory_order_acq_rel);
}

/* Sets `atomic` to `value` if it is `*expected`; otherwise stores the value
 * that it has in `*expected`. */
static inline bool uva__atomic64_cas(struct uva__atomic64 *atomic,
                                     uint64_t *expected, uint64_t value)
{
    return atomic_compare_exchange_strong_explicit(&atomic->value, expected,
                                                   value, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static inline void *uva__atomic_ptr_load(const struct uva__atomic_ptr *shared)
{
    return atomic_load_explicit(&shared->pointer, memory_order_acquire);
}

static inline void uva__atomic_ptr_store(struct uva__atomic_ptr *shared,
                                         void *pointer)
{
    atomic_store_explicit(&shared->pointer, pointer, memory_order_release);
}

static inline void *uva__atomic_ptr_exchange(struct uva__atomic_ptr *shared,
                                             void *p)
{
    return atomic_exchange_explicit(&shared->pointer, p, memory_order_acq_rel);
}

static inline bool uva__atomic_ptr_cas(struct uva__atomic_ptr *shared,
                                       void **expected, void *pointer)
{
    return atomic_compare_exchange_strong_explicit(
        &shared->pointer, expected, pointer, memory_order_acq_rel,
        memory_order_acquire);
}

/* ---- waiting ------------------------------------------------------------ */

/* A futex: a number to sleep on until it changes. */
struct uva__futex {
    _Atomic uint32_t value;
};

/* The value now. The caller reads it before it checks its condition. */
static inline uint32_t uva__futex_now(const struct uva__futex *futex)
{
    return atomic_load_explicit(&futex->value, memory_order_acquire);
}

/* Sleeps while the value is `seen`, at most for `ms` or `ns` (negative: without
 * a limit). May return early. False if the time has passed. Not a cancellation
 * point. */
bool uva__futex_wait(struct uva__futex *futex, uint32_t seen, int64_t ms);
bool uva__futex_wait_ns(struct uva__futex *futex, uint32_t seen, int64_t ns);

/* change: changes the value. wake: wakes all sleeping threads; it uses only the
 * address, as the futex may be freed as soon as they see the change. raise:
 * does both. */
void uva__futex_change(struct uva__futex *futex);
void uva__futex_wake(struct uva__futex *futex);
void uva__futex_raise(struct uva__futex *futex);

/* ---- lock --------------------------------------------------------------- */

/* Held for a short time; its holder takes no other lock and calls no foreign
 * code. All zeroes is free. */
struct uva__lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held and waited for */
};

/* The slow halves of take and drop: another thread holds it, or waits for it.
 */
void uva__lock_wait(struct uva__lock *lock);
void uva__lock_wake(struct uva__lock *lock);

static inline void uva__lock_take(struct uva__lock *lock)
{
    uint32_t was = 0;

    if (!atomic_compare_exchange_strong_explicit(
            &lock->state, &was, 1, memory_order_acquire, memory_order_relaxed))
        uva__lock_wait(lock);
}

static inline void uva__lock_drop(struct uva__lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        uva__lock_wake(lock);
}

#endif
