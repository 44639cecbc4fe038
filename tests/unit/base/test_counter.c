/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that peers drive beyond every number. */
#include "base/counter.h"

#include <check.h>

#include "support/check_suite.h"

START_TEST(counters_wrap)
{
    struct uva__counter own = {0}, shared = {0};

    uva__counter_add(&own, 2);
    uva__counter_add(&own, INT64_MAX);
    uva__counter_add_shared(&shared, 2);
    uva__counter_add_shared(&shared, INT64_MAX);
    ck_assert_int_eq(uva__counter_get(&own), INT64_MIN + 1);
    ck_assert_int_eq(uva__counter_get(&shared), INT64_MIN + 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("counter");

    tcase_add_test(tc, counters_wrap);
    return suite_main("counter", NULL, NULL, tc, NULL);
}
