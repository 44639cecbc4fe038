/* SPDX-License-Identifier: Apache-2.0 */
/* The linker provides the C library's own functions under the names __real_*.
 */
#define _GNU_SOURCE
#include "support/faulty_libc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static atomic_long left; /* allocations until one fails; 0: no failure */
static atomic_size_t only;
static _Atomic(const char *) only_thread;
static atomic_bool failed, always, no_threads;

static bool thread_counts(void)
{
    const char *name = atomic_load(&only_thread);
    char own[16];

    if (name == NULL)
        return true;
    return pthread_getname_np(pthread_self(), own, sizeof(own)) == 0 &&
           strcmp(own, name) == 0;
}

static bool fails(size_t size)
{
    if (atomic_load(&left) == 0 || !thread_counts())
        return false;
    if (atomic_load(&only) != 0 && size != atomic_load(&only))
        return false;
    if (atomic_load(&always) && atomic_load(&left) == 1) {
        atomic_store(&failed, true);
        return true;
    }
    if (atomic_fetch_sub(&left, 1) != 1)
        return false;
    atomic_store(&failed, true);
    return true;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails(size) ? NULL : __real_calloc(count, size);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails(size) ? NULL : __real_malloc(size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return fails(size) ? NULL : __real_realloc(old, size);
}

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails(size) ? NULL : __real_aligned_alloc(align, size);
}

/* The allocator of the test framework. */
void *__wrap_emalloc(size_t size);
void *__wrap_emalloc(size_t size)
{
    return __real_malloc(size);
}

void *__wrap_erealloc(void *old, size_t size);
void *__wrap_erealloc(void *old, size_t size)
{
    return __real_realloc(old, size);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *arg), void *arg)
{
    return atomic_load(&no_threads)
               ? EPERM
               : __real_pthread_create(thread, how, run, arg);
}

/* ---- functions for tests ------------------------------------------------ */

void faulty_libc_fail(long n)
{
    atomic_store(&failed, false);
    atomic_store(&left, n);
}

long faulty_libc_left(void)
{
    return atomic_load(&left);
}

void faulty_libc_resume(long n)
{
    atomic_store(&left, n);
}

void faulty_libc_always(bool all)
{
    atomic_store(&always, all);
}

void faulty_libc_only(size_t size)
{
    atomic_store(&only, size);
}

void faulty_libc_only_thread(const char *name)
{
    atomic_store(&only_thread, name);
}

bool faulty_libc_has_failed(void)
{
    return atomic_load(&failed);
}

bool faulty_libc_stop(void)
{
    atomic_store(&left, 0);
    return atomic_load(&failed);
}

void faulty_libc_threads(bool some)
{
    atomic_store(&no_threads, !some);
}
