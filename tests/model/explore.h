/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through all schedules of a kernel: a few fibers that use one of the
 * library's own inline functions on a few words. With it come mutants, each
 * with one thing wrong, which must be found.
 *
 * Not seen: what only machines with weaker orders than x86 do, such as a load
 * that passes a read-modify-write of another word; and races over memory that
 * a lock should guard, for code goes on from one shared word to the next
 * undisturbed. ThreadSanitizer looks for those. */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include "sim/engine.h"

struct explore_kernel {
    const char *name;
    void *memory; /* borrows: all that its fibers share; cleared each time */
    size_t size;
    void (*prepare)(void);    /* sets it up; or NULL */
    void (*first)(void *arg); /* spawns the fibers */
    const char *(*wrong)(void)/* at the end: what is, or NULL */;
};

/* Every schedule must end well. Prints how many there are. */
void explore_holds(const struct explore_kernel *kernel);

/* The same with something wrong, of which `mutant` says what: some schedule
 * must end badly. */
void explore_finds(const struct explore_kernel *kernel, const char *mutant);

/* The same with a word of the kernel's memory that has a defect. */
void explore_finds_spoiled(const struct explore_kernel *kernel,
                           const void *word, enum sim_defect defect,
                           const char *mutant);

/* Memory for the library's own allocations, part of the kernel's: `ctx` of an
 * allocator. What comes back is cleared, so that equal states look equal. */
struct explore_arena {
    char *bytes; /* borrows: aligned to 64 */
    size_t size, used;
};

void *explore_alloc(void *arena, size_t size, size_t align);
void explore_dealloc(void *arena, void *block, size_t size);

/* Runs the tests of a program, made by tcase_add_test(): its main(). */
struct TCase;
int explore_main(const char *name, void (*add)(struct TCase *tests));

#endif
