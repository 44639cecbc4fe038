/* SPDX-License-Identifier: Apache-2.0 */
/* The operating system beyond ISO C and POSIX threads. Each platform has a
 * file, and a build has one: platform_linux.c uses Linux calls;
 * platform_posix.c uses only calls of every POSIX system (the option
 * UVA_PORTABLE); platform_unix.c is common to both. platform_windows.c is for
 * Windows.
 *
 * Descriptors here close on exec; descriptors that a loop watches never block.
 */
#ifndef UVA_BASE_PLATFORM_H
#define UVA_BASE_PLATFORM_H

#include <stdint.h>

/* A token (stream/task.h) is the address of a slot and a generation, in one
 * pointer of 64 bits. The public headers compile anywhere. */
#if UINTPTR_MAX < UINT64_MAX
#error "uvarrow needs a platform with 64-bit addresses"
#endif

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/atomic.h"
#include "uvarrow/base.h"

/* ---- sleeping on a number ----------------------------------------------- */

/* Sleeps while `*at` is `seen`, at most `ns` (negative: without a limit). May
 * return early. False if the time has passed. Not a cancellation point. Thread:
 * any. */
bool uva__platform_sleep(_Atomic uint32_t *at, uint32_t seen, int64_t ns);

/* Wakes a thread that sleeps there, or all; it may wake more than it must. Uses
 * only the address: the memory may be freed meanwhile.
 * Thread: any. */
void uva__platform_wake_one(_Atomic uint32_t *at);
void uva__platform_wake_all(_Atomic uint32_t *at);

/* ---- threads ------------------------------------------------------------ */

/* Starts a thread that runs `run(arg)` and takes no signals, so that they reach
 * the program's own threads. Signals that report a fault of the thread itself
 * (SIGSEGV and the like) stay open: a JVM or a sanitizer needs them delivered.
 * 0; ENOMEM if the system gives no thread; another code of pthread_create().
 * Thread: any. */
UVA_MUST_CHECK int uva__platform_start_thread(pthread_t *thread,
                                              void *(*run)(void *arg),
                                              void *arg);

/* Names the calling thread for debuggers, where that is possible; the system
 * may cut the name to 15 characters. Thread: any. */
void uva__platform_name_thread(const char *name);

/* Returns a number of the calling thread for people to read: as system tools
 * show it, if they do. Thread: any. */
int32_t uva__platform_thread_number(void);

/* Has the system wake the calling thread as close to the end of a sleep as it
 * can. Thread: any. */
void uva__platform_sleep_exactly(void);

/* Returns how many processors the process may use or, where the system has no
 * such number, how many the machine has; at least 1. Thread: any. */
int32_t uva__platform_cores(void);

/* ---- time --------------------------------------------------------------- */

/* The clock of uva__clock_ns(), read as cheaply as possible: it may be some
 * milliseconds late. Thread: any. */
int64_t uva__platform_coarse_clock_ns(void);

/* ---- memory -------------------------------------------------------------- */

/* Returns `size` bytes at a multiple of `align`, a power of two; NULL without
 * memory. Gives them to the caller, for uva__platform_free() alone. Thread:
 * any. */
void *uva__platform_alloc(size_t align, size_t size);
void uva__platform_free(void *block);

/* ---- a fork -------------------------------------------------------------- */

/* Has each later fork() call the functions that are not NULL: before it, and
 * after it in the parent and in the child. Without memory for them no function
 * is called. Thread: any. */
void uva__platform_on_fork(void (*before)(void), void (*in_parent)(void),
                           void (*in_child)(void));

/* ---- an exit --------------------------------------------------------------
 */

/* Has the end of the process (exit(), or the return of main()) call `fn`,
 * before all functions registered earlier, also by libraries. Without memory
 * for it, it is not called. Thread: any. */
void uva__platform_on_exit(void (*fn)(void));

/* ---- memory that a fork clears ------------------------------------------ */

/* Returns cleared memory of `size` bytes, which the system itself clears in a
 * forked child if it can: base/fork_page.h does that where it cannot. NULL
 * without memory. Gives it to the caller. Thread: any. */
void *uva__platform_map_wiped(size_t size);
void uva__platform_unmap(void *memory, size_t size);

/* ---- a descriptor that wakes a loop ------------------------------------- */

/* Becomes readable when it is raised, until it is cleared. */
struct uva__wake_fd {
    int reader; /* owns: for the loop to watch */
    int writer; /* owns, unless it equals `reader` */
};

/* Opens a descriptor that is not raised. Returns 0 or a code. Thread: any. */
UVA_MUST_CHECK int uva__wake_fd_open(struct uva__wake_fd *wake_fd);
void uva__wake_fd_close(struct uva__wake_fd *wake_fd);

/* Raising it twice has no further effect. raise() keeps errno.
 * Thread: any; clear() of a descriptor is called by one thread at a time. */
void uva__wake_fd_raise(const struct uva__wake_fd *wake_fd);
void uva__wake_fd_clear(const struct uva__wake_fd *wake_fd);

/* Opens as many descriptors as UVA__DESCRIPTORS_TRIED, and closes them: a call
 * that cannot report their lack may follow. 0; EMFILE, ENFILE or another code
 * of the system. Thread: any. */
enum { UVA__DESCRIPTORS_TRIED = 8 };
UVA_MUST_CHECK int uva__platform_try_descriptors(void);

/* ---- a descriptor that becomes readable at a time ----------------------- */

/* Times of uva__timer_fd_set() that are no time. */
enum { UVA__TIMER_FD_NEVER = -1, UVA__TIMER_FD_NOW = 0 };

struct uva__timer_fd {
    int fd;                           /* owns: for the loop to watch */
    struct uva__timer_thread *thread; /* owns: makes it readable; or NULL: the
                                         system does */
};

/* Opens a timer that is never due. Returns 0 or a code. Thread: any. */
UVA_MUST_CHECK int uva__timer_fd_open(struct uva__timer_fd *timer_fd);
void uva__timer_fd_close(struct uva__timer_fd *timer_fd);

/* Makes the descriptor readable from `due_ms` on, a time of uva__clock_ns() in
 * milliseconds, and not readable until then. One thread at a time. */
void uva__timer_fd_set(struct uva__timer_fd *timer_fd, int64_t due_ms);

/* ---- files --------------------------------------------------------------- */

/* Opens a regular file for this process to write, and makes it if it does not
 * exist; it keeps its content. Gives the descriptor and how many bytes the file
 * has. 0; EBUSY: another process has opened it so; EINVAL: it is no regular
 * file; or a code of the system. Closing any descriptor of the file, or the end
 * of the process, lets others open it. Thread: any. */
UVA_MUST_CHECK int uva__platform_open_file(const char *path, int *fd,
                                           int64_t *size_bytes);
void uva__platform_close_file(int fd);

/* Writes all bytes of `text` to the place `at`. 0 or a code. One thread at a
 * time. */
UVA_MUST_CHECK int uva__platform_write_file(int fd, const char *text,
                                            size_t size, int64_t at);

/* Empties the file. 0 or a code. One thread at a time. */
UVA_MUST_CHECK int uva__platform_empty_file(int fd);

/* Locks the FILE for the calling thread, which may go on using it, and unlocks
 * it. Thread: any. */
void uva__platform_lock_stdio(FILE *file);
void uva__platform_unlock_stdio(FILE *file);

/* ---- libraries ----------------------------------------------------------- */

/* Loads a library by path, or by a name that the system looks for. NULL, and in
 * `why` the reason, cut to `size` bytes. It is never unloaded. Thread: any. */
void *uva__platform_load(const char *path, char *why, size_t size);

/* Returns the address of a function of a loaded library; NULL if it has no such
 * function.
 * Thread: any. */
void *uva__platform_symbol(void *library, const char *name);

/* ---- the process -------------------------------------------------------- */

/* Returns the number of the process. Thread: any. */
int64_t uva__platform_process(void);

/* Returns a variable of the environment; NULL if it is not set, or in a program
 * with other rights than its user (set-user-ID). Thread: any, while no thread
 * changes the environment. */
const char *uva__platform_trusted_env(const char *name);

/* Finds a loaded library with a file name that begins with `prefix`, and writes
 * its path. False if no such library is loaded, or the system cannot be asked.
 * Thread: any. */
bool uva__platform_find_loaded(const char *prefix, char *path, size_t size);

#endif
