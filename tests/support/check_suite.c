/* SPDX-License-Identifier: Apache-2.0 */
/* Check's environment variables decide how much is printed (CK_VERBOSITY) and,
 * unless it is decided here, whether each test runs in a separate process
 * (CK_FORK). */
#define _POSIX_C_SOURCE 200809L
#include "support/check_suite.h"

#include <stdarg.h>
#include <stdlib.h>

/* Check's limits, of 4 s by default, are times on the clock, which pass on a
 * busy machine: they are off for a program that is run by hand, too, as
 * cmake/UvaBuild.cmake has it. Check reads this when a case is made. */
__attribute__((constructor)) static void limits_turn_off(void)
{
    (void)setenv("CK_TIMEOUT_MULTIPLIER", "0", 0);
}

TCase *suite_case(Suite *suite, const char *name, SFun set_up, SFun tear_down)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    return tcase;
}

static void add_all(TCase *tcase, int first, int end, va_list tests)
{
    const TTest *test;

    while ((test = va_arg(tests, const TTest *)) != NULL)
        tcase_add_loop_test(tcase, test, first, end);
}

void suite_add(TCase *tcase, ...)
{
    va_list tests;

    va_start(tests, tcase);
    add_all(tcase, 0, 1, tests);
    va_end(tests);
}

void suite_add_loops(TCase *tcase, int first, int end, ...)
{
    va_list tests;

    va_start(tests, end);
    add_all(tcase, first, end, tests);
    va_end(tests);
}

TCase *suite_tests(const char *name, ...)
{
    TCase *tcase = tcase_create(name);
    va_list tests;

    va_start(tests, name);
    add_all(tcase, 0, 1, tests);
    va_end(tests);
    return tcase;
}

static int run(SRunner *runner)
{
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int suite_run(Suite *suite)
{
    return run(srunner_create(suite));
}

int suite_run_alone(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    srunner_set_fork_status(runner, CK_NOFORK);
    return run(runner);
}

int suite_main(const char *name, SFun set_up, SFun tear_down, ...)
{
    Suite *suite = suite_create(name);
    TCase *tcase;
    va_list all;

    va_start(all, tear_down);
    while ((tcase = va_arg(all, TCase *)) != NULL) {
        if (set_up != NULL || tear_down != NULL)
            tcase_add_checked_fixture(tcase, set_up, tear_down);
        suite_add_tcase(suite, tcase);
    }
    va_end(all);
    return suite_run(suite);
}
