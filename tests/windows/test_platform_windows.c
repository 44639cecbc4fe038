/* SPDX-License-Identifier: Apache-2.0 */
/* The Windows calls of the library. test_platform.c asks the same of other
 * systems. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/platform.h"
#include "loop/readiness.h"
#include "support/check_suite.h"
#include "uvarrow/runtime.h"

/* ---- sleeping on a number ----------------------------------------------- */

static _Atomic uint32_t number;

static void *sleep_until_changed(void *arg)
{
    (void)arg;
    while (number == 1)
        (void)uva__platform_sleep(&number, 1, -1);
    return NULL;
}

START_TEST(a_change_wakes_the_threads_that_sleep)
{
    pthread_t threads[4];

    number = 1;
    ck_assert(uva__platform_sleep(&number, 2, -1));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            uva__platform_start_thread(&threads[i], sleep_until_changed, NULL),
            0);
    number = 2;
    uva__platform_wake_one(&number);
    uva__platform_wake_all(&number);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
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

/* ---- descriptors -------------------------------------------------------- */

static bool is_readable(int fd, int timeout_ms)
{
    WSAPOLLFD watched = {.fd = (SOCKET)fd, .events = POLLRDNORM};
    const int n = WSAPoll(&watched, 1, timeout_ms);

    ck_assert_int_ge(n, 0);
    return n == 1;
}

START_TEST(a_wake_fd_is_readable_while_it_is_raised)
{
    struct uva__wake_fd wake_fd;

    ck_assert_int_eq(uva__wake_fd_open(&wake_fd), 0);
    ck_assert(!is_readable(wake_fd.reader, 0));
    errno = ERANGE;
    for (int i = 0; i < 20000; i++)
        uva__wake_fd_raise(&wake_fd);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert(is_readable(wake_fd.reader, -1));
    while (is_readable(wake_fd.reader, 10))
        uva__wake_fd_clear(&wake_fd);
    uva__wake_fd_raise(&wake_fd);
    ck_assert(is_readable(wake_fd.reader, -1));
    uva__wake_fd_close(&wake_fd);
}
END_TEST

/* Threads that raise when the one before has been noticed, as for a loop */
static struct uva__wake_fd shared_fd;
static _Atomic bool armed;
static _Atomic int left;

static void *raise_in_turn(void *arg)
{
    (void)arg;
    while (left > 0)
        if (!atomic_exchange(&armed, true))
            uva__wake_fd_raise(&shared_fd);
        else
            (void)SwitchToThread();
    return NULL;
}

START_TEST(no_raise_of_several_threads_is_lost)
{
    const int turns = 5000, limit_ms = 60000;
    pthread_t threads[3];

    armed = false;
    left = turns;
    ck_assert_int_eq(uva__wake_fd_open(&shared_fd), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            uva__platform_start_thread(&threads[i], raise_in_turn, NULL), 0);
    for (; left > 0; left--) {
        ck_assert(is_readable(shared_fd.reader, limit_ms));
        uva__wake_fd_clear(&shared_fd);
        armed = false;
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    uva__wake_fd_close(&shared_fd);
}
END_TEST

START_TEST(a_timer_fd_is_readable_from_its_time_on)
{
    const int64_t now_ms = (int64_t)(uva__clock_ns() / 1000000);
    struct uva__timer_fd timer_fd;

    ck_assert_int_eq(uva__timer_fd_open(&timer_fd), 0);
    ck_assert(!is_readable(timer_fd.fd, 0));
    uva__timer_fd_set(&timer_fd, now_ms + 3600000);
    ck_assert(!is_readable(timer_fd.fd, 0));
    uva__timer_fd_set(&timer_fd, now_ms + 30);
    ck_assert(is_readable(timer_fd.fd, -1));
    ck_assert_int_ge((int64_t)(uva__clock_ns() / 1000000), now_ms + 30);
    uva__timer_fd_close(&timer_fd);
}
END_TEST

/* ---- memory, files, libraries ------------------------------------------- */

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

START_TEST(a_file_keeps_its_content_until_it_is_emptied)
{
    static const char path[] = "test_platform_windows.file";
    int64_t size_bytes = -1;
    int fd, other;

    (void)remove(path);
    ck_assert_int_eq(uva__platform_open_file(path, &fd, &size_bytes), 0);
    ck_assert_int_eq(size_bytes, 0);
    ck_assert_int_eq(uva__platform_open_file(path, &other, &size_bytes), EBUSY);
    ck_assert_int_eq(uva__platform_write_file(fd, "one\ntwo", 7, 0), 0);
    ck_assert_int_eq(uva__platform_write_file(fd, "six", 3, 4), 0);
    uva__platform_close_file(fd);
    ck_assert_int_eq(uva__platform_open_file(path, &fd, &size_bytes), 0);
    ck_assert_int_eq(size_bytes, 7);
    ck_assert_int_eq(uva__platform_empty_file(fd), 0);
    uva__platform_close_file(fd);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_ne(uva__platform_open_file(".", &fd, &size_bytes), 0);
    ck_assert_int_eq(
        uva__platform_open_file("no/such/folder", &fd, &size_bytes), ENOENT);
}
END_TEST

START_TEST(libraries_are_loaded_by_name)
{
    char why[128] = "";
    void *library;

    library = uva__platform_load("kernel32.dll", why, sizeof(why));
    ck_assert_ptr_nonnull(library);
    ck_assert_ptr_nonnull(uva__platform_symbol(library, "GetTickCount"));
    ck_assert_ptr_null(uva__platform_symbol(library, "no_such_function"));
    ck_assert_ptr_null(uva__platform_load("no-such.dll", why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "no-such.dll"));
}
END_TEST

/* ---- hosting ------------------------------------------------------------ */

START_TEST(a_host_of_descriptors_is_refused)
{
    struct uva_runtime *runtime = NULL;

    ck_assert(!uva__readiness_has_fd());
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &runtime, NULL),
                     ENOTSUP);
    ck_assert_ptr_null(runtime);
}
END_TEST

int main(void)
{
    return suite_main("platform", NULL, NULL,
                      suite_tests("windows",
                                  a_change_wakes_the_threads_that_sleep,
                                  a_sleep_ends_at_its_limit,
                                  a_wake_fd_is_readable_while_it_is_raised,
                                  no_raise_of_several_threads_is_lost,
                                  a_timer_fd_is_readable_from_its_time_on,
                                  memory_begins_where_it_is_asked_to,
                                  a_file_keeps_its_content_until_it_is_emptied,
                                  libraries_are_loaded_by_name,
                                  a_host_of_descriptors_is_refused, NULL),
                      NULL);
}
