/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a signal: a signal raised before is not waited for, whatever the
 * timeout, and a timeout ends the wait. All other tests rely on threads waking
 * each other. */
#include "base/atomic.h"
#include "support/check_suite.h"

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
    TCase *tc = tcase_create("futex");

    tcase_add_loop_test(tc, what_was_raised_before_is_not_waited_for, 0, 5);
    tcase_add_loop_test(tc, patience_ends, 0, 2);
    return suite_main("atomic", NULL, NULL, tc, NULL);
}
