/* SPDX-License-Identifier: Apache-2.0 */
/* The part common to platform_linux.c and platform_posix.c: signals, memory,
 * files, libraries, the hooks of a fork. The lock of a FILE is in every such
 * system, but some hide it from a program that asks for POSIX alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/platform.h"

/* ---- threads ------------------------------------------------------------ */

static void signals_block(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGTRAP, SIGSYS};
    sigset_t set;

    (void)sigfillset(&set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        (void)sigdelset(&set, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &set, before);
}

/* The new thread inherits the mask, so there is no moment at which it could
 * take a signal. */
int uva__platform_start_thread(pthread_t *thread, void *(*run)(void *arg),
                               void *arg)
{
    sigset_t before;
    int code;

    signals_block(&before);
    code = pthread_create(thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code == EAGAIN ? ENOMEM : code;
}

/* ---- memory -------------------------------------------------------------- */

void *uva__platform_alloc(size_t align, size_t size)
{
    if (align <= _Alignof(max_align_t))
        return malloc(size);
    if (size > SIZE_MAX - align)
        return NULL;
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

void uva__platform_free(void *block)
{
    free(block);
}

/* ---- a fork -------------------------------------------------------------- */

void uva__platform_on_fork(void (*before)(void), void (*in_parent)(void),
                           void (*in_child)(void))
{
    (void)pthread_atfork(before, in_parent, in_child);
}

/* ---- an exit --------------------------------------------------------------
 */

void uva__platform_on_exit(void (*fn)(void))
{
    (void)atexit(fn);
}

/* ---- files --------------------------------------------------------------- */

/* A file system without locks is no reason to fail. */
static int file_lock(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_SETLK, &lock) == 0 || (errno != EACCES && errno != EAGAIN))
        return 0;
    return EBUSY;
}

int uva__platform_open_file(const char *path, int *fd, int64_t *size_bytes)
{
    struct stat found;
    int code = 0;

    *fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (*fd < 0)
        return errno;
    if (fstat(*fd, &found) != 0)
        code = errno;
    else if (!S_ISREG(found.st_mode))
        code = EINVAL;
    else
        code = file_lock(*fd);
    if (code != 0)
        (void)close(*fd);
    else
        *size_bytes = found.st_size;
    return code;
}

void uva__platform_close_file(int fd)
{
    (void)close(fd);
}

int uva__platform_write_file(int fd, const char *text, size_t size, int64_t at)
{
    while (size > 0) {
        const ssize_t n = pwrite(fd, text, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        text += n;
        size -= (size_t)n;
        at += n;
    }
    return 0;
}

int uva__platform_empty_file(int fd)
{
    return ftruncate(fd, 0) == 0 ? 0 : errno;
}

void uva__platform_lock_stdio(FILE *file)
{
    flockfile(file);
}

void uva__platform_unlock_stdio(FILE *file)
{
    funlockfile(file);
}

/* ---- libraries ----------------------------------------------------------- */

void *uva__platform_load(const char *path, char *why, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        (void)snprintf(why, size, "%s", dlerror());
    return library;
}

void *uva__platform_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

/* ---- the process -------------------------------------------------------- */

int64_t uva__platform_process(void)
{
    return getpid();
}

/* ---- descriptors ----------------------------------------------------------
 */

int uva__platform_try_descriptors(void)
{
    int opened[UVA__DESCRIPTORS_TRIED];
    int code = 0, count = 0;

    while (count < UVA__DESCRIPTORS_TRIED && code == 0) {
        opened[count] = open("/", O_RDONLY | O_CLOEXEC);
        if (opened[count] < 0)
            code = errno;
        else
            count++;
    }
    while (count > 0)
        (void)close(opened[--count]);
    return code;
}
