/* SPDX-License-Identifier: Apache-2.0 */
/* Explores all schedules of a small program: a few fibers that use one of the
 * library's inline algorithms on a few atomics. Each comes with mutants that
 * have one fault, which must be found.
 *
 * What it cannot find: reorderings that only occur on machines weaker than x86,
 * such as a load that passes a read-modify-write of another atomic; and races
 * on memory that a lock should guard, because a fiber runs undisturbed from one
 * access of an atomic to the next. ThreadSanitizer finds those. */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include "sim/engine.h"

struct explore_kernel {
    const char *name;
    void *memory; /* borrows: all shared memory; cleared each time */
    size_t size;
    void (*prepare)(void);      /* prepares the memory; or NULL */
    void (*first)(void *arg);   /* spawns the fibers */
    const char *(*wrong)(void); /* checks the end: the failure, or NULL */
};

/* Checks that every schedule ends well. Prints how many there are. */
void explore_holds(const struct explore_kernel *kernel);

/* Checks that some schedule ends badly, given the fault described by
 * `mutant`. */
void explore_finds(const struct explore_kernel *kernel, const char *mutant);

/* As explore_finds(), with a defect in an atomic of the program's memory. */
void explore_finds_spoiled(const struct explore_kernel *kernel,
                           const void *word, enum sim_defect defect,
                           const char *mutant);

/* Memory for the library's own allocations, a part of the program's: the `ctx`
 * of an allocator. Freed memory is cleared, so that equal states look equal. */
struct explore_arena {
    char *bytes; /* borrows: aligned to 64 */
    size_t size, used;
};

void *explore_alloc(void *arena, size_t size, size_t align);
void explore_dealloc(void *arena, void *block, size_t size);

/* Runs the given tests of Check (the last argument is NULL). Returns the exit
 * code for main(). */
int explore_main(const char *name, ...);

#endif
