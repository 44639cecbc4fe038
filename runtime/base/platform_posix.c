/* SPDX-License-Identifier: Apache-2.0 */
/* The platform by POSIX calls alone: condition variables for sleeping, a pipe
 * as a descriptor that wakes a loop. A descriptor that becomes readable at a
 * time is left to timer_thread.c. Names and nice values of single threads are
 * not set. */
#define _POSIX_C_SOURCE 200809L
#include "base/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- sleeping on a number ----------------------------------------------- */

enum { BUCKETS = 64 };

/* Threads that sleep on two addresses of one bucket wake each other, too. */
static struct bucket {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} buckets[BUCKETS];

static pthread_once_t buckets_once = PTHREAD_ONCE_INIT;

static void buckets_init(void)
{
    pthread_condattr_t by_clock;

    (void)pthread_condattr_init(&by_clock);
    (void)pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    for (int i = 0; i < BUCKETS; i++) {
        (void)pthread_mutex_init(&buckets[i].mutex, NULL);
        (void)pthread_cond_init(&buckets[i].changed, &by_clock);
    }
    (void)pthread_condattr_destroy(&by_clock);
}

/* A thread that is not in the child may hold a mutex or sleep there. */
static void buckets_first_init(void)
{
    buckets_init();
    (void)pthread_atfork(NULL, NULL, buckets_init);
}

static struct bucket *bucket_of(const _Atomic uint32_t *at)
{
    (void)pthread_once(&buckets_once, buckets_first_init);
    return &buckets[((uintptr_t)at >> 4) % BUCKETS];
}

static struct timespec time_in(int64_t ns)
{
    const int64_t now = (int64_t)uva__clock_ns(),
                  end = ns < INT64_MAX - now ? now + ns : INT64_MAX;

    return (struct timespec){.tv_sec = (time_t)(end / 1000000000),
                             .tv_nsec = (long)(end % 1000000000)};
}

bool uva__platform_sleep(_Atomic uint32_t *at, uint32_t seen, int64_t ns)
{
    struct bucket *bucket = bucket_of(at);
    const struct timespec limit = time_in(ns < 0 ? 0 : ns);
    int code = 0, before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_mutex_lock(&bucket->mutex);
    if (atomic_load_explicit(at, memory_order_acquire) == seen)
        code = ns < 0 ? pthread_cond_wait(&bucket->changed, &bucket->mutex)
                      : pthread_cond_timedwait(&bucket->changed, &bucket->mutex,
                                               &limit);
    (void)pthread_mutex_unlock(&bucket->mutex);
    (void)pthread_setcancelstate(before, NULL);
    return code != ETIMEDOUT;
}

void uva__platform_wake_all(_Atomic uint32_t *at)
{
    struct bucket *bucket = bucket_of(at);

    (void)pthread_mutex_lock(&bucket->mutex);
    (void)pthread_cond_broadcast(&bucket->changed);
    (void)pthread_mutex_unlock(&bucket->mutex);
}

/* The wanted thread need not be the thread that a signal would wake. */
void uva__platform_wake_one(_Atomic uint32_t *at)
{
    uva__platform_wake_all(at);
}

/* ---- threads ------------------------------------------------------------ */

void uva__platform_name_thread(const char *name)
{
    (void)name;
}

/* The system's own number cannot be had, so threads are counted. */
int32_t uva__platform_thread_number(void)
{
    static struct uva__atomic64 threads;
    static _Thread_local int32_t number;

    if (number == 0)
        number = (int32_t)(uva__atomic64_add(&threads, 1) + 1);
    return number;
}

void uva__platform_sleep_exactly(void)
{
}

int32_t uva__platform_cores(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (int32_t)n : 1;
}

/* ---- time --------------------------------------------------------------- */

int64_t uva__platform_coarse_clock_ns(void)
{
    return (int64_t)uva__clock_ns();
}

/* ---- memory that a fork clears ------------------------------------------ */

void *uva__platform_map_wiped(size_t size)
{
    return calloc(1, size);
}

void uva__platform_unmap(void *memory, size_t size)
{
    (void)size;
    free(memory);
}

/* ---- a descriptor that wakes a loop ------------------------------------- */

static void pipe_close(const int ends[2])
{
    for (int i = 0; i < 2; i++)
        (void)close(ends[i]);
}

/* Both ends close on exec. A thread that starts another program before that is
 * set leaves it open there: POSIX has no call that does both. */
static int pipe_open(int ends[2])
{
    int code = 0;

    if (pipe(ends) != 0)
        return errno;
    for (int i = 0; i < 2 && code == 0; i++)
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0 ||
            fcntl(ends[i], F_SETFL, O_NONBLOCK) != 0)
            code = errno;
    if (code != 0)
        pipe_close(ends);
    return code;
}

/* A full pipe is readable as well. */
static void pipe_put(int writer)
{
    while (write(writer, "", 1) < 0 && errno == EINTR)
        ;
}

static void pipe_drain(int reader)
{
    char bytes[64];
    ssize_t got;

    do {
        got = read(reader, bytes, sizeof(bytes));
    } while (got > 0 || (got < 0 && errno == EINTR));
}

int uva__wake_fd_open(struct uva__wake_fd *wake_fd)
{
    int ends[2];
    const int code = pipe_open(ends);

    wake_fd->reader = code == 0 ? ends[0] : -1;
    wake_fd->writer = code == 0 ? ends[1] : -1;
    return code;
}

void uva__wake_fd_close(struct uva__wake_fd *wake_fd)
{
    (void)close(wake_fd->reader);
    (void)close(wake_fd->writer);
}

void uva__wake_fd_raise(const struct uva__wake_fd *wake_fd)
{
    int before, saved = errno;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pipe_put(wake_fd->writer);
    (void)pthread_setcancelstate(before, NULL);
    errno = saved;
}

void uva__wake_fd_clear(const struct uva__wake_fd *wake_fd)
{
    pipe_drain(wake_fd->reader);
}

/* ---- the process -------------------------------------------------------- */

const char *uva__platform_trusted_env(const char *name)
{
    return geteuid() == getuid() && getegid() == getgid() ? getenv(name) : NULL;
}

/* A loaded library is found again by its name, so only libraries under another
 * name are missed. */
bool uva__platform_find_loaded(const char *prefix, char *path, size_t size)
{
    (void)prefix;
    (void)path;
    (void)size;
    return false;
}
