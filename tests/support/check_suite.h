/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a suite of Check as the whole of a program. */
#ifndef UVA_SUPPORT_CHECK_SUITE_H
#define UVA_SUPPORT_CHECK_SUITE_H

#include <check.h>

/* Runs the cases that follow (taken; the last argument is NULL), each test
 * between `set_up` and `tear_down` where those are not NULL. Returns what
 * main() is to return. */
int suite_main(const char *name, SFun set_up, SFun tear_down, ...);

/* Adds cases to a suite, with such functions. */
TCase *suite_case(Suite *suite, const char *name, SFun set_up, SFun tear_down);

/* Runs the suite, which it takes. The second form runs all tests in this
 * process, for drivers whose threads do not survive a fork. */
int suite_run(Suite *suite);
int suite_run_alone(Suite *suite);

#endif
