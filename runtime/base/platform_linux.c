/* SPDX-License-Identifier: Apache-2.0 */
/* The platform by Linux calls: futexes, eventfd, timerfd, memory that fork()
 * wipes, nice values of single threads. */
#define _GNU_SOURCE
#include "base/platform.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* ---- sleeping on a number ----------------------------------------------- */

/* In glibc syscall(SYS_futex) is not a cancellation point. */
bool uva__platform_sleep(_Atomic uint32_t *at, uint32_t seen, int64_t ns)
{
    const struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000),
                                   .tv_nsec = (long)(ns % 1000000000)};

    return syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, seen,
                   ns < 0 ? NULL : &limit, NULL, 0) == 0 ||
           errno != ETIMEDOUT;
}

void uva__platform_wake_one(_Atomic uint32_t *at)
{
    (void)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void uva__platform_wake_all(_Atomic uint32_t *at)
{
    (void)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- threads ------------------------------------------------------------ */

void uva__platform_name_thread(const char *name)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%.15s", name);
    (void)pthread_setname_np(pthread_self(), text);
}

int32_t uva__platform_thread_number(void)
{
    return (int32_t)syscall(SYS_gettid);
}

void uva__platform_sleep_exactly(void)
{
    (void)prctl(PR_SET_TIMERSLACK, 1);
}

int32_t uva__platform_cores(void)
{
    cpu_set_t set;
    long n;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

/* ---- time --------------------------------------------------------------- */

int64_t uva__platform_coarse_clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- memory that a fork clears ------------------------------------------ */

void *uva__platform_map_wiped(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, size, MADV_WIPEONFORK);
    return memory;
}

void uva__platform_unmap(void *memory, size_t size)
{
    (void)munmap(memory, size);
}

/* ---- a descriptor that wakes a loop ------------------------------------- */

int uva__wake_fd_open(struct uva__wake_fd *wake_fd)
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    wake_fd->reader = wake_fd->writer = fd;
    return fd < 0 ? errno : 0;
}

void uva__wake_fd_close(struct uva__wake_fd *wake_fd)
{
    (void)close(wake_fd->reader);
}

/* A thread that is cancelled must not end here, before it has woken the loop.
 */
void uva__wake_fd_raise(const struct uva__wake_fd *wake_fd)
{
    const uint64_t one = 1;
    int before, saved = errno;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    while (write(wake_fd->writer, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    (void)pthread_setcancelstate(before, NULL);
    errno = saved;
}

/* If that fails, the descriptor stays readable, and is cleared the next time.
 */
void uva__wake_fd_clear(const struct uva__wake_fd *wake_fd)
{
    uint64_t count;

    if (read(wake_fd->reader, &count, sizeof(count)) < 0)
        return;
}

/* ---- a descriptor that becomes readable at a time ----------------------- */

int uva__timer_fd_open(struct uva__timer_fd *timer_fd)
{
    timer_fd->thread = NULL;
    timer_fd->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return timer_fd->fd < 0 ? errno : 0;
}

void uva__timer_fd_close(struct uva__timer_fd *timer_fd)
{
    (void)close(timer_fd->fd);
}

void uva__timer_fd_set(struct uva__timer_fd *timer_fd, int64_t due_ms)
{
    struct itimerspec when = {0};

    if (due_ms == UVA__TIMER_FD_NOW) {
        when.it_value.tv_nsec = 1;
    } else if (due_ms != UVA__TIMER_FD_NEVER) {
        when.it_value.tv_sec = (time_t)(due_ms / 1000);
        when.it_value.tv_nsec = (long)(due_ms % 1000) * 1000000;
    }
    (void)timerfd_settime(timer_fd->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- the process -------------------------------------------------------- */

const char *uva__platform_trusted_env(const char *name)
{
    return secure_getenv(name);
}

/* A search among the loaded objects. */
struct search {
    const char *prefix;
    char *path; /* borrows: receives the path of the object found */
    size_t size;
};

static int search_step(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct search *search = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *base = slash != NULL ? slash + 1 : info->dlpi_name;

    (void)size;
    if (strncmp(base, search->prefix, strlen(search->prefix)) != 0 ||
        strlen(info->dlpi_name) >= search->size)
        return 0;
    (void)snprintf(search->path, search->size, "%s", info->dlpi_name);
    return 1;
}

bool uva__platform_find_loaded(const char *prefix, char *path, size_t size)
{
    struct search search = {.prefix = prefix, .path = path, .size = size};

    return dl_iterate_phdr(search_step, &search) != 0;
}
