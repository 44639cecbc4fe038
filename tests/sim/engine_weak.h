/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as C11 has it, and not only as x86 does: each atomic keeps its last
 * values, and each fiber has a view: how old a value of each atomic it may
 * still read. A value carries the view of the fiber that released it; a fiber
 * that acquires the value joins that view to its own.
 *
 * So a read may give any value that is not older than the last value that the
 * fiber has seen of this atomic, or than the values in the views that it has
 * acquired. This is RC11 (Lahav et al., "Repairing sequential consistency in
 * C/C++11") without fences, which the library does not use, and without loads
 * that read a store of the future. A store always makes the newest value: two
 * stores of two fibers happen in the order in which the schedule has them.
 *
 * The engine decides which of the values is read. */
#ifndef SIM_ENGINE_WEAK_H
#define SIM_ENGINE_WEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_WEAK_FIBERS = 16, /* of one schedule */
    SIM_WEAK_WORDS = 96,  /* atomics, locks and plain cells of one schedule */
    /* kept of an atomic. Older ones count as seen by every fiber, so that some
     * executions are not found. */
    SIM_WEAK_VALUES = 8
};

/* Forgets everything. */
void sim_weak_begin(void);

/* A fiber begins with the view of its maker (-1: with no view); a fiber that
 * waits for its end has its view then. */
void sim_weak_spawn(int fiber, int by);
void sim_weak_end(int fiber);
void sim_weak_join(int fiber, int ended);

/* How many values of the atomic the fiber may read now, at least one: value 0
 * is the newest. */
uint64_t sim_weak_choices(int fiber, const void *word, size_t size);

/* Reads the value of that age, which is allowed. */
uint64_t sim_weak_read(int fiber, const void *word, size_t size, uint64_t age,
                       bool acquire);

/* Makes a newest value. An update is the second half of a read-modify-write
 * that has read the newest one: the new value carries the view of that one,
 * too. */
void sim_weak_store(int fiber, void *word, size_t size, uint64_t value,
                    bool release);
void sim_weak_update(int fiber, void *word, size_t size, uint64_t value,
                     bool acquire, bool release);

/* A fiber has taken a lock, and drops it. */
void sim_weak_take(int fiber, const void *lock);
void sim_weak_drop(int fiber, const void *lock);

/* An access of plain memory, which no other fiber may access at the same time.
 * Returns whether the fiber knows of all earlier accesses: else it is a data
 * race. */
bool sim_weak_touch(int fiber, const void *cell);

/* A hash of the values and views, equal for states that differ only in values
 * that no fiber can read any more. */
uint64_t sim_weak_state(void);

#endif
