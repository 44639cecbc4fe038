/* SPDX-License-Identifier: Apache-2.0 */
/* The thread-local variables of the code under test, one set for each fiber.
 *
 * Its sources are compiled with SIM_LOCALS for _Thread_local (see
 * CMakeLists.txt in this folder), which puts the variables into one section; a
 * switch copies the set of one fiber there. Their addresses are the same in all
 * fibers. */
#ifndef SIM_ENGINE_LOCALS_H
#define SIM_ENGINE_LOCALS_H

#include <stddef.h>

/* Returns a set with the values at a thread's start; NULL if there are no
 * variables. */
void *sim_locals_new(void);
size_t sim_locals_size(void);
void sim_locals_reset(void *locals);

/* Saves the current values in `save` and loads the values in `load`. */
void sim_locals_swap(void *save, const void *load);

#endif
