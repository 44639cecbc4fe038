/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that threads count and any thread reads. They do not order memory:
 * atomics that publish data are in base/atomic.h. */
#ifndef UVA_BASE_COUNTER_H
#define UVA_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* All zeroes is 0. */
struct uva__counter {
    _Atomic int64_t value;
};

/* A small number: a state, or a few objects. */
struct uva__small_counter {
    _Atomic int32_t value;
};

/* Thread: any. */
static inline int64_t uva__counter_get(const struct uva__counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

/* Without a read-modify-write. Thread: the only writer. */
static inline void uva__counter_set(struct uva__counter *counter, int64_t value)
{
    atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

/* Wraps, as the atomic addition below does: peers may claim any number. */
static inline void uva__counter_add(struct uva__counter *counter, int64_t n)
{
    uva__counter_set(
        counter, (int64_t)((uint64_t)uva__counter_get(counter) + (uint64_t)n));
}

/* Thread: any, if all threads that write it use these two. */
static inline void uva__counter_add_shared(struct uva__counter *counter,
                                           int64_t n)
{
    (void)atomic_fetch_add_explicit(&counter->value, n, memory_order_relaxed);
}

static inline void uva__counter_raise_shared(struct uva__counter *counter,
                                             int64_t value)
{
    int64_t before = uva__counter_get(counter);

    while (before < value && !atomic_compare_exchange_weak_explicit(
                                 &counter->value, &before, value,
                                 memory_order_relaxed, memory_order_relaxed))
        ;
}

/* The same for small numbers. */
static inline int32_t
uva__small_counter_get(const struct uva__small_counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

static inline void uva__small_counter_set(struct uva__small_counter *counter,
                                          int32_t value)
{
    atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

static inline void
uva__small_counter_add_shared(struct uva__small_counter *counter, int32_t n)
{
    (void)atomic_fetch_add_explicit(&counter->value, n, memory_order_relaxed);
}

#endif
