/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of libuv that the system refuses: an error, and no abort(). As many
 * are tried as libuv starts, with stacks as large as its own. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "loop.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/refused_threads.h"

static uv_loop_t loop;
static struct uva_error error;

static void set_up(void)
{
    memset(&error, 0, sizeof(error));
    ck_assert_int_eq(uva__loop_open(&loop, &error), 0);
}

static void tear_down(void)
{
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

START_TEST(refused_threads_are_an_error)
{
    if (!refused_threads_begin())
        return;
    ck_assert_int_eq(uva__loop_threads(&loop, &error), ENOMEM);
    ck_assert_ptr_nonnull(strstr(error.message, "threads"));
}
END_TEST

START_TEST(threads_are_used_once_they_are_there)
{
    static const char *const counts[] = {"0", "2", "-1", "a"};
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_STACK, &limit), 0);
    limit.rlim_cur = (rlim_t)(_i % 2 == 0 ? 4 : 16) << 20;
    ck_assert_int_eq(setrlimit(RLIMIT_STACK, &limit), 0);
    ck_assert_int_eq(setenv("UV_THREADPOOL_SIZE", counts[_i], 1), 0);
    faulty_libc_threads(false);
    ck_assert_int_eq(uva__loop_threads(&loop, &error), EPERM);
    faulty_libc_threads(true);
    if (_i == 2) /* libuv's most */
        ck_assert_int_eq(setenv("UV_THREADPOOL_SIZE", "1", 1), 0);
    ck_assert_int_eq(uva__loop_threads(&loop, &error), 0);
    faulty_libc_threads(false); /* they are there */
    ck_assert_int_eq(uva__loop_threads(&loop, &error), 0);
    faulty_libc_threads(true);
}
END_TEST

START_TEST(memory_that_runs_out_is_an_error)
{
    bool failed = true;

    for (long k = 1; failed; k++) {
        int code;

        faulty_libc_fail(k);
        code = uva__loop_threads(&loop, &error);
        failed = faulty_libc_stop();
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loop_threads");
    TCase *all = suite_case(suite, "loop_threads", set_up, tear_down);

    suite_add_loops(all, 0, 4, threads_are_used_once_they_are_there, NULL);
    suite_add(all, refused_threads_are_an_error,
              memory_that_runs_out_is_an_error, NULL);
    return suite_run(suite);
}
