/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before the C library: notices a close of a loop's descriptor that
 * another loop still watches. Its number may be given to any file then. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int closed, watched;

static bool is_loop(int fd)
{
    char path[64], name[64] = "";

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof(name) - 1) > 0 &&
           strcmp(name, "anon_inode:[eventpoll]") == 0;
}

/* Whether the descriptor is among those that this loop watches */
static bool is_watched_by(const char *loop, int fd)
{
    char path[300], line[256];
    bool found = false;
    FILE *file;
    int each;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", loop);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        found |= sscanf(line, "tfd: %d", &each) == 1 && each == fd;
    if (file != NULL)
        (void)fclose(file);
    return found;
}

static bool is_watched(int fd)
{
    DIR *folder = opendir("/proc/self/fdinfo");
    const struct dirent *entry;
    bool found = false;

    while (folder != NULL && (entry = readdir(folder)) != NULL)
        found |= is_watched_by(entry->d_name, fd);
    if (folder != NULL)
        (void)closedir(folder);
    return found;
}

/* libuv closes by it. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long args[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_close && is_loop((int)args[0])) {
        atomic_fetch_add(&closed, 1);
        atomic_fetch_add(&watched, is_watched((int)args[0]));
    }
    return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

__attribute__((destructor)) static void report(void)
{
    (void)fprintf(stderr, "closed %d loops, watched %d\n", atomic_load(&closed),
                  atomic_load(&watched));
}
