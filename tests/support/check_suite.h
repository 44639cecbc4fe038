/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a suite of Check as a whole program. */
#ifndef UVA_SUPPORT_CHECK_SUITE_H
#define UVA_SUPPORT_CHECK_SUITE_H

#include <check.h>

/* Runs the given cases, which it takes (the last argument is NULL), with
 * `set_up` before and `tear_down` after each test unless these are NULL.
 * Returns the exit code for main(). */
int suite_main(const char *name, SFun set_up, SFun tear_down, ...);

/* Adds a case to a suite, with a set-up and a tear-down function. */
TCase *suite_case(Suite *suite, const char *name, SFun set_up, SFun tear_down);

/* Adds tests to a case; the last argument is NULL. The second form adds tests
 * that run once for each index from `first` to `end - 1`. */
void suite_add(TCase *tcase, ...);
void suite_add_loops(TCase *tcase, int first, int end, ...);

/* Makes a case of tests, for suite_main(); the last argument is NULL. */
TCase *suite_tests(const char *name, ...);

/* Runs the suite, which it takes. The second form runs all tests in this
 * process, for drivers that lose their threads in a fork. */
int suite_run(Suite *suite);
int suite_run_alone(Suite *suite);

#endif
