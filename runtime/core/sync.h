/* SPDX-License-Identifier: Apache-2.0 */
/* Words that threads share, waiting for one to change, and a small lock.
 *
 * Every shared word of the library goes through here, so that a simulator can
 * stand in its place. Orders: loads acquire, stores release, all else both. A
 * store that must be seen before a flag is looked at is followed by an
 * exchange of that flag, never by a load: there are no fences. */
#ifndef UVA_CORE_SYNC_H
#define UVA_CORE_SYNC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- words -------------------------------------------------------------- */

/* 64 bits that any thread may read and write. All zeroes is 0. */
struct uva__word {
    _Atomic uint64_t value;
};

/* A pointer that any thread may read and write. All zeroes is NULL. */
struct uva__shared {
    _Atomic(void *) pointer;
};

static inline uint64_t uva__word_load(const struct uva__word *word)
{
    return atomic_load_explicit(&word->value, memory_order_acquire);
}

/* Only to decide whether to look closer, by a read-modify-write. */
static inline uint64_t uva__word_peek(const struct uva__word *word)
{
    return atomic_load_explicit(&word->value, memory_order_relaxed);
}

static inline void uva__word_store(struct uva__word *word, uint64_t value)
{
    atomic_store_explicit(&word->value, value, memory_order_release);
}

static inline uint64_t uva__word_exchange(struct uva__word *word, uint64_t n)
{
    return atomic_exchange_explicit(&word->value, n, memory_order_acq_rel);
}

static inline uint64_t uva__word_add(struct uva__word *word, uint64_t n)
{
    return atomic_fetch_add_explicit(&word->value, n, memory_order_acq_rel);
}

static inline uint64_t uva__word_sub(struct uva__word *word, uint64_t n)
{
    return atomic_fetch_sub_explicit(&word->value, n, memory_order_acq_rel);
}

static inline uint64_t uva__word_or(struct uva__word *word, uint64_t bits)
{
    return atomic_fetch_or_explicit(&word->value, bits, memory_order_acq_rel);
}

static inline uint64_t uva__word_and(struct uva__word *word, uint64_t bits)
{
    return atomic_fetch_and_explicit(&word->value, bits, memory_order_acq_rel);
}

/* Sets `word` to `value` if it is `*expected`; else puts there what it is. */
static inline bool uva__word_cas(struct uva__word *word, uint64_t *expected,
                                 uint64_t value)
{
    return atomic_compare_exchange_strong_explicit(&word->value, expected,
                                                   value, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static inline void *uva__shared_load(const struct uva__shared *shared)
{
    return atomic_load_explicit(&shared->pointer, memory_order_acquire);
}

static inline void uva__shared_store(struct uva__shared *shared, void *pointer)
{
    atomic_store_explicit(&shared->pointer, pointer, memory_order_release);
}

static inline void *uva__shared_exchange(struct uva__shared *shared, void *p)
{
    return atomic_exchange_explicit(&shared->pointer, p, memory_order_acq_rel);
}

static inline bool uva__shared_cas(struct uva__shared *shared, void **expected,
                                   void *pointer)
{
    return atomic_compare_exchange_strong_explicit(
        &shared->pointer, expected, pointer, memory_order_acq_rel,
        memory_order_acquire);
}

/* ---- waiting ------------------------------------------------------------ */

/* A word to sleep on. */
struct uva__signal {
    _Atomic uint32_t value;
};

/* The value now: to be read before looking at what is waited for. */
static inline uint32_t uva__signal_now(const struct uva__signal *signal)
{
    return atomic_load_explicit(&signal->value, memory_order_acquire);
}

/* Sleeps while the value is `seen`, at most so long (negative: for ever). May
 * return early. False if the time has passed. Not a cancellation point. */
bool uva__signal_wait(struct uva__signal *signal, uint32_t seen, int64_t ms);
bool uva__signal_wait_ns(struct uva__signal *signal, uint32_t seen, int64_t ns);

/* Changes the value; wakes all who wait, by the address alone, as the signal
 * may be gone as soon as they see the change; does both. */
void uva__signal_change(struct uva__signal *signal);
void uva__signal_wake(struct uva__signal *signal);
void uva__signal_raise(struct uva__signal *signal);

/* ---- lock --------------------------------------------------------------- */

/* Short, a leaf, and never held over foreign code. All zeroes is free. */
struct uva__lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held and waited for */
};

/* The slow halves of take and drop: another thread has it, or waits for it. */
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
