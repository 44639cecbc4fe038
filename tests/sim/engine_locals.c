/* SPDX-License-Identifier: Apache-2.0 */
/* The linker defines where the section of that name begins and ends. */
#include "sim/engine_locals.h"

#include <stdlib.h>
#include <string.h>

extern char __start_sim_locals[] __attribute__((weak));
extern char __stop_sim_locals[] __attribute__((weak));

static void *at_start; /* owns: initial values, before any code has run */

size_t sim_locals_size(void)
{
    return __start_sim_locals == NULL
               ? 0
               : (size_t)(__stop_sim_locals - __start_sim_locals);
}

static void *locals_copy(const void *from)
{
    void *copy = malloc(sim_locals_size());

    if (copy == NULL)
        abort();
    return memcpy(copy, from, sim_locals_size());
}

__attribute__((constructor)) static void locals_keep(void)
{
    if (sim_locals_size() > 0)
        at_start = locals_copy(__start_sim_locals);
}

void *sim_locals_new(void)
{
    return at_start == NULL ? NULL : locals_copy(at_start);
}

void sim_locals_reset(void *locals)
{
    if (locals != NULL)
        memcpy(locals, at_start, sim_locals_size());
}

void sim_locals_swap(void *save, const void *load)
{
    if (save == NULL || load == NULL)
        return;
    memcpy(save, __start_sim_locals, sim_locals_size());
    memcpy(__start_sim_locals, load, sim_locals_size());
}
