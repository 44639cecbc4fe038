/* SPDX-License-Identifier: Apache-2.0 */
/* The thread-local variables of the code under test, one set for each fiber.
 *
 * Its sources are compiled with SIM_LOCALS for _Thread_local (CMakeLists.txt of
 * this folder), so that they stand side by side; a switch puts those of one
 * fiber there instead of another's. They have one address in all fibers. */
#ifndef SIM_ENGINE_LOCALS_H
#define SIM_ENGINE_LOCALS_H

#include <stddef.h>

/* Gives a set of them as at a thread's start; NULL if there are none. */
void *sim_locals_new(void);
size_t sim_locals_size(void);
void sim_locals_reset(void *locals);

/* Keeps those that are in place in `save` and puts `load` there. */
void sim_locals_swap(void *save, const void *load);

#endif
