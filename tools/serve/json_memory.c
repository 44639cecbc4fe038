/* SPDX-License-Identifier: Apache-2.0 */
/* A flag for each thread, as a driver may use the parser, too. */
#include "json_memory.h"

#include <jansson.h>
#include <stdlib.h>

static _Thread_local bool has_failed;

static void *allocate(size_t size)
{
    void *data = malloc(size);

    has_failed |= data == NULL;
    return data;
}

static void release(void *data)
{
    free(data);
}

void uva__json_memory_init(void)
{
    json_set_alloc_funcs(allocate, release);
}

void uva__json_memory_reset(void)
{
    has_failed = false;
}

bool uva__json_memory_has_failed(void)
{
    return has_failed;
}
