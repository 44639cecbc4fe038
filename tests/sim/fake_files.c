/* SPDX-License-Identifier: Apache-2.0 */
/* A write is a system call, so it makes earlier stores visible: it is a
 * read-modify-write in the engine. */
#define _GNU_SOURCE
#include "sim/fake_files.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sim/arena.h"
#include "sim/engine.h"

enum { FILES = 128, FIRST = 1000 };

enum file_kind { FILE_NONE, FILE_COUNTER, FILE_TIMER, FILE_SET, FILE_CLOSED };

static struct fake_file {
    enum file_kind kind;
    bool blocks;                 /* counter: reads wait */
    uint64_t count;              /* value of a counter */
    uint64_t due_ns;             /* timer: when it is due; 0: not set */
    bool (*is_ready)(void *ctx); /* set: whether it is readable */
    uint64_t (*set_due_ns)(void *ctx);
    void *ctx;
} files[FILES];
static int files_used;
static int64_t times_set; /* number of times that timers were set */

void fake_files_begin(void)
{
    memset(files, 0, sizeof(files));
    files_used = 0;
}

void fake_files_check(void)
{
    for (int i = 0; i < files_used; i++)
        if (files[i].kind != FILE_CLOSED)
            sim_fail("descriptor %d was never closed", FIRST + i);
}

static int file_new(enum file_kind kind)
{
    if (files_used == FILES)
        sim_fail("too many descriptors");
    files[files_used].kind = kind;
    return FIRST + files_used++;
}

/* Returns NULL if it is not ours. */
static struct fake_file *file_find(int fd)
{
    return fd >= FIRST && fd < FIRST + files_used ? &files[fd - FIRST] : NULL;
}

static struct fake_file *file_of(int fd)
{
    struct fake_file *file = file_find(fd);

    if (file == NULL || file->kind == FILE_CLOSED)
        sim_fail("descriptor %d is used, which is not open", fd);
    return file;
}

int fake_files_new_set(bool (*is_ready)(void *ctx),
                       uint64_t (*due_ns)(void *ctx), void *ctx)
{
    const int fd = file_new(FILE_SET);

    file_of(fd)->is_ready = is_ready;
    file_of(fd)->set_due_ns = due_ns;
    file_of(fd)->ctx = ctx;
    return fd;
}

void fake_files_close(int fd)
{
    file_of(fd)->kind = FILE_CLOSED;
}

bool fake_files_is_readable(int fd)
{
    const struct fake_file *file = file_of(fd);

    switch (file->kind) {
    case FILE_COUNTER:
        return file->count > 0;
    case FILE_TIMER:
        return file->due_ns != 0 && file->due_ns <= sim_now_ns();
    default:
        return file->is_ready(file->ctx);
    }
}

uint64_t fake_files_due_ns(int fd)
{
    const struct fake_file *file = file_of(fd);

    if (file->kind == FILE_SET)
        return file->set_due_ns(file->ctx);
    return file->kind == FILE_TIMER && file->due_ns != 0 ? file->due_ns
                                                         : UINT64_MAX;
}

/* ---- waiting ------------------------------------------------------------ */

struct watch {
    const int *fds;
    int n;
    int64_t times_set;
};

static bool event_wait_is_readable(const struct watch *watch)
{
    for (int i = 0; i < watch->n; i++)
        if (fake_files_is_readable(watch->fds[i]))
            return true;
    return false;
}

static bool event_wait_is_over(void *arg)
{
    const struct watch *watch = arg;

    return watch->times_set != times_set || event_wait_is_readable(watch);
}

static uint64_t event_wait_due_ns(const struct watch *watch)
{
    uint64_t first = UINT64_MAX, due;

    for (int i = 0; i < watch->n; i++) {
        due = fake_files_due_ns(watch->fds[i]);
        first = due < first ? due : first;
    }
    return first;
}

/* Watches for timers that another fiber sets meanwhile. */
void fake_files_wait(const int *fds, int n)
{
    struct watch watch = {.fds = fds, .n = n};

    do {
        watch.times_set = times_set;
        (void)sim_wait_until(event_wait_is_over, &watch,
                             event_wait_due_ns(&watch));
    } while (!event_wait_is_readable(&watch));
}

/* ---- replacements of system functions ----------------------------------- */

int __wrap_eventfd(unsigned count, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
                           struct itimerspec *before);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_write(int fd, const void *from, size_t size);
int __wrap_close(int fd);
int __wrap_poll(struct pollfd *polled, nfds_t n, int timeout_ms);
ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __real_write(int fd, const void *from, size_t size);
int __real_close(int fd);

int __wrap_eventfd(unsigned count, int flags)
{
    const int fd = file_new(FILE_COUNTER);

    file_of(fd)->count = count;
    file_of(fd)->blocks = !(flags & EFD_NONBLOCK);
    return fd;
}

int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock;
    (void)flags;
    return file_new(FILE_TIMER);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
                           struct itimerspec *before)
{
    const uint64_t ns = (uint64_t)when->it_value.tv_sec * 1000000000 +
                        (uint64_t)when->it_value.tv_nsec;

    (void)before;
    file_of(fd)->due_ns =
        ns == 0 ? 0 : ns + (flags & TFD_TIMER_ABSTIME ? 0 : sim_now_ns());
    times_set++;
    return 0;
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
    struct fake_file *file = file_find(fd);
    uint64_t count = 0;

    if (file == NULL)
        return __real_read(fd, to, size);
    sim_point();
    if (!fake_files_is_readable(fd)) {
        if (file->blocks)
            sim_fail("a read that would wait for ever");
        errno = EAGAIN;
        return -1;
    }
    if (file->kind == FILE_COUNTER)
        count = sim_exchange(&file->count, sizeof(file->count), 0);
    else
        count = 1;
    if (file->kind == FILE_TIMER)
        file->due_ns = 0;
    memcpy(to, &count, sizeof(count));
    return (ssize_t)size;
}

ssize_t __wrap_write(int fd, const void *from, size_t size)
{
    uint64_t n;

    if (file_find(fd) == NULL)
        return __real_write(fd, from, size);
    memcpy(&n, from, sizeof(n));
    if (file_of(fd)->kind != FILE_COUNTER)
        sim_fail("descriptor %d is written to, which is no counter", fd);
    (void)sim_add(&file_of(fd)->count, sizeof(n), n);
    return (ssize_t)size;
}

int __wrap_close(int fd)
{
    if (file_find(fd) == NULL)
        return __real_close(fd);
    sim_point();
    fake_files_close(fd);
    return 0;
}

int __wrap_poll(struct pollfd *polled, nfds_t n, int timeout_ms)
{
    int fds[4] = {0}, ready = 0;

    if (timeout_ms >= 0 || n > 4)
        sim_fail("a poll such as the fake kernel does not know");
    for (nfds_t i = 0; i < n; i++)
        fds[i] = polled[i].fd;
    fake_files_wait(fds, (int)n);
    for (nfds_t i = 0; i < n; i++) {
        polled[i].revents = fake_files_is_readable(polled[i].fd) ? POLLIN : 0;
        ready += polled[i].revents != 0;
    }
    return ready;
}

/* ---- the page that a fork clears ---------------------------------------- */

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset);
int __wrap_munmap(void *at, size_t size);
int __wrap_madvise(void *at, size_t size, int advice);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset);
int __real_munmap(void *at, size_t size);
int __real_madvise(void *at, size_t size, int advice);

/* The library maps only a word; other code maps pages. */
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset)
{
    return size == sizeof(uint64_t)
               ? arena_new(size, "a page")
               : __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
    if (size != sizeof(uint64_t))
        return __real_munmap(at, size);
    arena_free(at);
    return 0;
}

int __wrap_madvise(void *at, size_t size, int advice)
{
    return size == sizeof(uint64_t) ? 0 : __real_madvise(at, size, advice);
}
