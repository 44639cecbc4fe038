/* SPDX-License-Identifier: Apache-2.0 */
/* A process that has no loop yet opens a runtime with its own loop, with few
 * descriptors left: libuv's first loop would end the process with some numbers
 * of them. Each test is a process. */
#include <check.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "uvarrow/runtime.h"

enum { ENOUGH = 24 };

static struct rlimit before;

/* Lets the process open `count` descriptors more. */
static void leave_descriptors(int count)
{
    const int next = dup(STDIN_FILENO);
    struct rlimit limit;

    ck_assert_int_ge(next, 0);
    (void)close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)(next + count);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A sanitizer looks for leaks in files of the system. */
static void leave_all(void)
{
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Index: descriptors left, for a runtime on a thread and a turned one. */
START_TEST(a_first_loop_without_descriptors_is_an_error)
{
    const bool is_turned = _i % 2 == 1;
    struct uva_runtime *runtime = NULL;
    struct uva_error error = {0};
    int code;

    leave_descriptors(_i / 2);
    code = is_turned
               ? uva_runtime_open_turned(NULL, NULL, NULL, &runtime, &error)
               : uva_runtime_open(NULL, NULL, &runtime, &error);
    leave_all();
    ck_assert(code == 0 || code == EMFILE);
    ck_assert_int_eq(error.code, code);
    if (_i / 2 == 0)
        ck_assert_int_eq(code, EMFILE);
    if (_i / 2 == ENOUGH - 1)
        ck_assert_int_eq(code, 0);
    if (code != 0)
        return;
    ck_assert_int_eq(uva_runtime_join(runtime, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("first_loop");
    TCase *all = suite_case(suite, "first_loop", NULL, NULL);

    suite_add_loops(all, 0, 2 * ENOUGH,
                    a_first_loop_without_descriptors_is_an_error, NULL);
    return suite_run(suite);
}
