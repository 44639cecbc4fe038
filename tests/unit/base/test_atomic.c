/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a futex: one that was raised before is not waited for, whatever
 * the timeout, and a timeout ends the wait. All other tests rely on threads
 * waking each other. */
#include "base/atomic.h"

#include <check.h>

START_TEST(what_was_raised_before_is_not_waited_for)
{
    static const int64_t patience[] = {-1, 0, 1, INT64_MAX / 1000000,
                                       INT64_MAX};
    struct uva__futex signal = {0};
    const uint32_t seen = uva__futex_now(&signal);

    uva__futex_raise(&signal);
    ck_assert(uva__futex_wait(&signal, seen, patience[_i]));
    ck_assert_uint_ne(uva__futex_now(&signal), seen);
}
END_TEST

START_TEST(patience_ends)
{
    struct uva__futex signal = {0};

    ck_assert(!uva__futex_wait(&signal, uva__futex_now(&signal), _i));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("atomic");
    TCase *tc = tcase_create("futex");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, what_was_raised_before_is_not_waited_for, 0, 5);
    tcase_add_loop_test(tc, patience_ends, 0, 2);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
