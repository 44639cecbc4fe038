/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the operating system. This program is built for the platform of
 * the build, and once more for platform_posix.c. */
#define _GNU_SOURCE
#include "base/platform.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork_page.h"
#include "support/check_suite.h"

/* A library that every system of the kind has, and its function. */
#define UVA_TEST_LIBRARY "libm.so.6"
#define UVA_TEST_SYMBOL  "cos"

/* ---- calls of the system that fail on request --------------------------- */

#ifdef UVA_TEST_POSIX
static _Atomic int fail_pipe, fail_fcntl, fail_calloc, fail_thread;

int __real_pipe(int ends[2]);
int __wrap_pipe(int ends[2]);
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *arg);

int __wrap_pipe(int ends[2])
{
    errno = EMFILE;
    return fail_pipe ? -1 : __real_pipe(ends);
}

/* The `fail_fcntl`-th call from now on fails. */
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    int value;

    va_start(args, command);
    value = va_arg(args, int);
    va_end(args);
    errno = EINVAL;
    return fail_fcntl > 0 && --fail_fcntl == 0
               ? -1
               : __real_fcntl(fd, command, value);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fail_calloc ? NULL : __real_calloc(n, size);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *arg)
{
    return fail_thread ? EAGAIN : __real_pthread_create(thread, how, run, arg);
}
#endif

/* ---- sleeping on a number ----------------------------------------------- */

static _Atomic uint32_t number, slept;

START_TEST(a_number_that_has_changed_is_not_slept_on)
{
    number = 2;
    ck_assert(uva__platform_sleep(&number, 1, -1));
    ck_assert(uva__platform_sleep(&number, 1, 3600000000000));
}
END_TEST

START_TEST(a_sleep_ends_at_its_limit)
{
    const uint64_t begun = uva__clock_ns();

    number = 1;
    while (uva__platform_sleep(&number, 1, 2000000))
        ck_assert_uint_eq(number, 1);
    ck_assert_uint_ge(uva__clock_ns() - begun, 2000000);
    ck_assert(!uva__platform_sleep(&number, 1, 0));
}
END_TEST

static void *sleep_until_changed(void *arg)
{
    const int64_t ns = *(const int64_t *)arg;

    while (number == 1)
        (void)uva__platform_sleep(&number, 1, ns);
    slept++;
    return NULL;
}

/* Each thread that comes too late to sleep sees the new number. */
START_TEST(a_change_wakes_the_threads_that_sleep)
{
    static const int64_t limits[] = {-1, 3600000000000, INT64_MAX, -1};
    pthread_t threads[4];

    number = 1;
    slept = 0;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, sleep_until_changed,
                                        (void *)&limits[i]),
                         0);
    number = 2;
    uva__platform_wake_one(&number);
    while (slept == 0)
        uva__platform_wake_one(&number);
    uva__platform_wake_all(&number);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(slept, 4);
}
END_TEST

/* ---- threads and time --------------------------------------------------- */

static void *number_and_name(void *arg)
{
    char name[32];

    *(int32_t *)arg = uva__platform_thread_number();
    ck_assert_int_eq(*(int32_t *)arg, uva__platform_thread_number());
    uva__platform_sleep_exactly();
    uva__platform_name_thread("a name of more than 15 letters");
    ck_assert_int_eq(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
#if defined(__linux__) && !defined(UVA_TEST_POSIX)
    ck_assert_str_eq(name, "a name of more ");
#endif
    return NULL;
}

START_TEST(threads_have_numbers_of_their_own)
{
    const int32_t own = uva__platform_thread_number();
    pthread_t thread;
    int32_t other = own;

    ck_assert_int_eq(pthread_create(&thread, NULL, number_and_name, &other), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_ne(own, other);
    ck_assert_int_gt(own, 0);
    ck_assert_int_gt(other, 0);
}
END_TEST

START_TEST(there_is_a_processor)
{
    ck_assert_int_ge(uva__platform_cores(), 1);
}
END_TEST

START_TEST(the_coarse_clock_is_the_same_clock)
{
    const int64_t before = (int64_t)uva__clock_ns(), second = 1000000000,
                  coarse = uva__platform_coarse_clock_ns();

    ck_assert_int_ge(coarse, before - second);
    ck_assert_int_le(coarse, (int64_t)uva__clock_ns());
}
END_TEST

/* ---- descriptors -------------------------------------------------------- */

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    const int n = poll(&watched, 1, timeout_ms);

    ck_assert_int_ge(n, 0);
    return n == 1;
}

static void check_flags(int fd)
{
    ck_assert_int_ne(fcntl(fd, F_GETFD, 0) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL, 0) & O_NONBLOCK, 0);
}

START_TEST(a_wake_fd_is_readable_while_it_is_raised)
{
    struct uva__wake_fd wake_fd;

    ck_assert_int_eq(uva__wake_fd_open(&wake_fd), 0);
    check_flags(wake_fd.reader);
    check_flags(wake_fd.writer);
    ck_assert(!is_readable(wake_fd.reader, 0));
    errno = ERANGE;
    for (int i = 0; i < 200000; i++) /* more than a pipe has room for */
        uva__wake_fd_raise(&wake_fd);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert(is_readable(wake_fd.reader, 0));
    uva__wake_fd_clear(&wake_fd);
    uva__wake_fd_clear(&wake_fd);
    ck_assert(!is_readable(wake_fd.reader, 0));
    uva__wake_fd_raise(&wake_fd);
    ck_assert(is_readable(wake_fd.reader, 0));
    uva__wake_fd_close(&wake_fd);
    ck_assert_int_eq(fcntl(wake_fd.reader, F_GETFD, 0), -1);
    ck_assert_int_eq(fcntl(wake_fd.writer, F_GETFD, 0), -1);
}
END_TEST

static int64_t now_ms(void)
{
    return (int64_t)(uva__clock_ns() / 1000000);
}

START_TEST(a_timer_fd_is_readable_from_its_time_on)
{
    struct uva__timer_fd timer_fd;
    int64_t due_ms;

    ck_assert_int_eq(uva__timer_fd_open(&timer_fd), 0);
    check_flags(timer_fd.fd);
    ck_assert(!is_readable(timer_fd.fd, 0));
    uva__timer_fd_set(&timer_fd, UVA__TIMER_FD_NOW);
    ck_assert(is_readable(timer_fd.fd, -1));
    uva__timer_fd_set(&timer_fd, now_ms() + 3600000);
    ck_assert(!is_readable(timer_fd.fd, 0));
    due_ms = now_ms() + 3;
    uva__timer_fd_set(&timer_fd, due_ms);
    ck_assert(is_readable(timer_fd.fd, -1));
    ck_assert_int_ge(now_ms(), due_ms);
    uva__timer_fd_set(&timer_fd, UVA__TIMER_FD_NEVER);
    ck_assert(!is_readable(timer_fd.fd, 0));
    uva__timer_fd_close(&timer_fd);
    ck_assert_int_eq(fcntl(timer_fd.fd, F_GETFD, 0), -1);
}
END_TEST

#ifdef UVA_TEST_POSIX
START_TEST(what_cannot_be_opened_leaves_nothing)
{
    struct uva__wake_fd wake_fd;
    struct uva__timer_fd timer_fd;
    const int lowest = dup(STDIN_FILENO);
    int i;

    ck_assert_int_eq(close(lowest), 0);
    fail_pipe = 1;
    ck_assert_int_eq(uva__wake_fd_open(&wake_fd), EMFILE);
    ck_assert_int_eq(uva__timer_fd_open(&timer_fd), EMFILE);
    fail_pipe = 0;
    for (i = 1; i <= 4; i++) {
        fail_fcntl = i;
        ck_assert_int_eq(uva__wake_fd_open(&wake_fd), EINVAL);
        ck_assert_int_eq(wake_fd.reader, -1);
    }
    fail_calloc = 1;
    ck_assert_int_eq(uva__timer_fd_open(&timer_fd), ENOMEM);
    fail_calloc = 0;
    fail_thread = 1;
    ck_assert_int_eq(uva__timer_fd_open(&timer_fd), ENOMEM);
    ck_assert_int_eq(timer_fd.fd, -1);
    fail_thread = 0;
    ck_assert_int_eq(dup(STDIN_FILENO), lowest);
    ck_assert_int_eq(close(lowest), 0);
}
END_TEST

START_TEST(no_memory_for_a_fork_page)
{
    struct uva__fork_page page;

    fail_calloc = 1;
    ck_assert_int_eq(uva__fork_page_init(&page), ENOMEM);
    fail_calloc = 0;
}
END_TEST
#endif

/* ---- a fork ------------------------------------------------------------- */

static uint64_t value_of(const struct uva__fork_page *page)
{
    return uva__atomic64_load(page->word);
}

/* A page that the child makes counts there. */
static int child_code(const struct uva__fork_page *inherited)
{
    struct uva__fork_page own;

    for (int i = 0; i < 2; i++)
        if (value_of(&inherited[i]) != 0)
            return 1;
    if (uva__fork_page_init(&own) != 0 || value_of(&own) != 1)
        return 2;
    uva__fork_page_fini(&own);
    return uva__platform_sleep(&number, number + 1, -1) ? 0 : 3;
}

START_TEST(a_fork_clears_every_page_in_the_child)
{
    struct uva__fork_page pages[3];
    int status;
    pid_t child;

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(uva__fork_page_init(&pages[i]), 0);
        ck_assert_uint_eq(value_of(&pages[i]), 1);
    }
    uva__fork_page_fini(&pages[1]);
    pages[1] = pages[2];
    child = fork();
    if (child == 0)
        _exit(child_code((struct uva__fork_page[]){pages[0], pages[1]}));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(value_of(&pages[0]), 1);
    uva__fork_page_fini(&pages[0]);
    uva__fork_page_fini(&pages[2]);
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

START_TEST(memory_begins_where_it_is_asked_to)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        char *block = uva__platform_alloc(align, 3 * align + 1);

        ck_assert_ptr_nonnull(block);
        ck_assert_uint_eq((uintptr_t)block % align, 0);
        memset(block, 1, 3 * align + 1);
        uva__platform_free(block);
    }
    uva__platform_free(NULL);
    ck_assert_ptr_null(uva__platform_alloc(64, SIZE_MAX - 8));
}
END_TEST

/* ---- files --------------------------------------------------------------- */

static void check_content(const char *path, const char *expected)
{
    char text[64];
    FILE *file = fopen(path, "rb");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    ck_assert_str_eq(text, expected);
}

START_TEST(a_file_keeps_its_content_until_it_is_emptied)
{
    char path[64];
    int64_t size_bytes = -1;
    int fd;

    (void)snprintf(path, sizeof(path), "test_platform.%lld",
                   (long long)uva__platform_process());
    ck_assert_int_eq(uva__platform_open_file(path, &fd, &size_bytes), 0);
    ck_assert_int_eq(size_bytes, 0);
    ck_assert_int_eq(uva__platform_write_file(fd, "one\ntwo", 7, 0), 0);
    ck_assert_int_eq(uva__platform_write_file(fd, "six", 3, 4), 0);
    uva__platform_close_file(fd);
    check_content(path, "one\nsix");
    ck_assert_int_eq(uva__platform_open_file(path, &fd, &size_bytes), 0);
    ck_assert_int_eq(size_bytes, 7);
    ck_assert_int_eq(uva__platform_empty_file(fd), 0);
    uva__platform_close_file(fd);
    check_content(path, "");
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_ne(uva__platform_open_file(".", &fd, &size_bytes), 0);
    ck_assert_int_eq(
        uva__platform_open_file("no/such/folder", &fd, &size_bytes), ENOENT);
}
END_TEST

/* ---- libraries ----------------------------------------------------------- */

START_TEST(a_library_that_is_not_there_gives_the_reason)
{
    char why[256] = "", cut[4];

    ck_assert_ptr_null(uva__platform_load("libno-such.so", why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "libno-such.so"));
    ck_assert_ptr_null(uva__platform_load("libno-such.so", cut, sizeof(cut)));
    ck_assert_uint_eq(strlen(cut), 3);
}
END_TEST

START_TEST(a_library_that_is_there_has_its_functions)
{
    char why[256];
    void *library = uva__platform_load(UVA_TEST_LIBRARY, why, sizeof(why));

    ck_assert_ptr_nonnull(library);
    ck_assert_ptr_nonnull(uva__platform_symbol(library, UVA_TEST_SYMBOL));
    ck_assert_ptr_null(uva__platform_symbol(library, "no_such_function"));
}
END_TEST

/* ---- the process -------------------------------------------------------- */

START_TEST(the_environment_of_the_user_is_trusted)
{
    ck_assert_int_eq(setenv("UVA_PLATFORM_TEST", "a value", 1), 0);
    ck_assert_str_eq(uva__platform_trusted_env("UVA_PLATFORM_TEST"), "a value");
    ck_assert_ptr_null(uva__platform_trusted_env("UVA_PLATFORM_NONE"));
}
END_TEST

#ifdef __GLIBC__
#define LIBC "libc.so"
#else /* musl's loader is its C library */
#define LIBC "ld-musl"
#endif

START_TEST(a_loaded_library_is_found_by_the_begin_of_its_name)
{
    char path[1024] = "";

    ck_assert(!uva__platform_find_loaded("libnone", path, sizeof(path)));
#ifndef UVA_TEST_POSIX
    ck_assert(!uva__platform_find_loaded(LIBC, path, 3));
    ck_assert(uva__platform_find_loaded(LIBC, path, sizeof(path)));
    ck_assert_ptr_nonnull(strstr(path, "/" LIBC));
#endif
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "platform", a_number_that_has_changed_is_not_slept_on,
        a_sleep_ends_at_its_limit, a_change_wakes_the_threads_that_sleep,
        threads_have_numbers_of_their_own, there_is_a_processor,
        the_coarse_clock_is_the_same_clock,
        a_wake_fd_is_readable_while_it_is_raised,
        a_timer_fd_is_readable_from_its_time_on,
        a_fork_clears_every_page_in_the_child,
        memory_begins_where_it_is_asked_to,
        a_file_keeps_its_content_until_it_is_emptied,
        a_library_that_is_not_there_gives_the_reason,
        a_library_that_is_there_has_its_functions,
        the_environment_of_the_user_is_trusted,
        a_loaded_library_is_found_by_the_begin_of_its_name, NULL);

#ifdef UVA_TEST_POSIX
    tcase_add_test(tc, what_cannot_be_opened_leaves_nothing);
    tcase_add_test(tc, no_memory_for_a_fork_page);
#endif
    return suite_main("platform", NULL, NULL, tc, NULL);
}
