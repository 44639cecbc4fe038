/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces <stdatomic.h> when libraries beside the runtime are compiled for the
 * simulation: the operations that they use, as points of the schedule
 * (sim/engine.h). All accesses are sequentially consistent. */
#ifndef SIM_STD_STDATOMIC_H
#define SIM_STD_STDATOMIC_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/engine.h"

typedef bool atomic_bool;
typedef int atomic_int;
typedef long atomic_long;
typedef size_t atomic_size_t;

/* The type of a value that was read. */
#define SIM_ATOMIC_TYPE(word) __typeof__(((void)0, *(word)))

#define atomic_init(word, value) ((void)(*(word) = (value)))

#define atomic_load(word)                                                      \
    ((SIM_ATOMIC_TYPE(word))sim_load((word), sizeof(*(word))))

#define atomic_store(word, value)                                              \
    ((void)sim_exchange((word), sizeof(*(word)), (uint64_t)(value)))

/* `expected` points to an int. */
static inline bool sim_atomic_cas(void *word, size_t size, int *expected,
                                  uint64_t value)
{
    uint64_t wide = (uint64_t)(int64_t)*expected;
    const bool done = sim_cas(word, size, &wide, value);

    *expected = (int)wide;
    return done;
}

#define atomic_compare_exchange_strong(word, expected, value)                  \
    sim_atomic_cas((word), sizeof(*(word)), (expected), (uint64_t)(value))

#define atomic_fetch_add(word, n)                                              \
    ((SIM_ATOMIC_TYPE(word))sim_add((word), sizeof(*(word)), (uint64_t)(n)))

#define atomic_fetch_sub(word, n)                                              \
    ((SIM_ATOMIC_TYPE(word))sim_add((word), sizeof(*(word)), 0 - (uint64_t)(n)))

/* Every order is that of the others. */
#define atomic_load_explicit(word, order)         atomic_load(word)
#define atomic_store_explicit(word, value, order) atomic_store(word, value)
#define atomic_fetch_add_explicit(word, n, order) atomic_fetch_add(word, n)
#define atomic_fetch_sub_explicit(word, n, order) atomic_fetch_sub(word, n)

#endif
