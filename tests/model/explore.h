/* SPDX-License-Identifier: Apache-2.0 */
/* Explores all schedules of a small program: a few fibers that use an inline
 * algorithm of the library on a few atomics. Each comes with mutants that have
 * one fault, which must be found.
 *
 * It does so twice, with the two memories of the engine.
 *
 * On x86: a store may pass later loads, and no other operation is reordered.
 *
 * Weak: as C11 allows (sim/engine_weak.h), except for the gaps below. Arm and
 * RISC-V reorder in this way. A load may give an old value, unless something
 * newer has come to the fiber by an acquire of a release; and memory that is
 * not atomic is checked where the program declares an access (sim_plain()),
 * because only its newest value can be read. So it finds an acquire or a
 * release that is missing, and a load of a flag that ought to be an exchange.
 * Its mutants are atomics with weaker orders, which x86 would hide.
 *
 * The gaps: in either memory, races on memory that a lock should guard and no
 * sim_plain() declares, because a fiber runs undisturbed from one access of an
 * atomic to the next; ThreadSanitizer finds those. In weak memory, bugs that
 * need more preemptions than a search allows; two fibers that each store to two
 * atomics, which take these stores in different orders; a load that reads a
 * store of the future, or a value older than the eight newest; and a wait
 * (sim_wait()) that an old value ends, although the newest one did not while
 * the fiber waited. The system compares a futex with its newest value. Memory
 * that is read directly, as in `world.over.value`, is not weak: it is a look
 * from outside. */
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

/* As explore_holds(), in weak memory, and in the schedules that interrupt a
 * fiber at most so many times although it could go on; 0: in all. The variable
 * UVA_MODEL_PREEMPTIONS replaces a number other than 0, for searches that have
 * more time. */
void explore_holds_weak(const struct explore_kernel *kernel, int preemptions);

/* As explore_finds_spoiled(), in weak memory, with up to three preemptions. */
void explore_finds_weak(const struct explore_kernel *kernel, const void *word,
                        enum sim_defect defect, const char *mutant);

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
