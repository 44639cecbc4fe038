/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the creation of threads fail, for lane_fixture.h. The programs here
 * have that call replaced by the linker. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "support/lane_fixture.h"
#include "support/soft_memory.h"

static _Atomic bool none;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *arg)
{
    return none ? EAGAIN : __real_pthread_create(thread, how, run, arg);
}

void lane_threads_run_out(bool out)
{
    none = out;
}

static _Atomic int soft_live;

void *soft_memory_new(size_t size)
{
    void *memory = malloc(size);

    soft_live += memory != NULL;
    return memory;
}

void soft_memory_free(void *memory)
{
    soft_live--;
    free(memory);
}

void *soft_memory_at(const void *memory, size_t size)
{
    (void)size;
    return (void *)(uintptr_t)memory;
}

int soft_memory_live(void)
{
    return soft_live;
}
