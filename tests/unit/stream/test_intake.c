/* SPDX-License-Identifier: Apache-2.0 */
/* How many batches a place requests, by number and by size. */
#include <check.h>

#include "stream/intake.h"
#include "support/check_suite.h"

static struct uva__intake in;

static void set_up(void)
{
    uva__intake_init(
        &in, &(struct uva__window){.batches = 8, .bytes = 1000, .refill = 4});
}

static void come(int64_t bytes)
{
    uva__intake_come(&in);
    uva__intake_hold(&in, bytes);
    in.begun++;
}

static int64_t request(int64_t demand, int64_t first)
{
    const int64_t n = uva__intake_room(&in, demand, first);

    in.requested += n;
    return n;
}

START_TEST(a_place_requests_nothing_before_the_first_demand)
{
    ck_assert_int_eq(request(0, 8), 0);
    ck_assert_int_eq(request(1, 8), 8);
    ck_assert_int_eq(in.requested, 8);
}
END_TEST

START_TEST(until_a_size_is_known_few_are_under_way)
{
    ck_assert_int_eq(request(1, 2), 2);
    ck_assert_int_eq(request(1, 2), 0);
    come(0);
    ck_assert_int_eq(request(1, 2), 0);
    uva__intake_end(&in, 0, 100);
    ck_assert_int_eq(request(1, 2), 6);
}
END_TEST

START_TEST(batches_that_have_not_come_count_as_the_largest)
{
    ck_assert_int_eq(request(1, 1), 1);
    come(0);
    uva__intake_end(&in, 0, 400);
    ck_assert_int_eq(request(1, 1), 1);
    ck_assert_int_eq(uva__intake_fit(&in, 1, 1, 1), 0);
    uva__intake_leave(&in, 400);
    ck_assert_int_eq(request(1, 1), 1);
    ck_assert_int_eq(in.held, 0);
    ck_assert_int_eq(in.bytes, 0);
}
END_TEST

START_TEST(one_batch_fits_whatever_its_size)
{
    ck_assert_int_eq(request(1, 1), 1);
    come(5000);
    ck_assert_int_eq(in.undone_bytes, 5000);
    uva__intake_end(&in, 5000, 5000);
    ck_assert_int_eq(request(1, 1), 0);
    uva__intake_leave(&in, 5000);
    ck_assert_int_eq(request(1, 1), 1);
}
END_TEST

START_TEST(batches_without_work_are_done_at_once)
{
    ck_assert_int_eq(request(1, 8), 8);
    uva__intake_come(&in);
    uva__intake_put(&in, 0);
    ck_assert_int_eq(in.done, 1);
    ck_assert_int_eq(in.largest, 0);
    ck_assert_int_eq(request(1, 8), 0);
}
END_TEST

int main(void)
{
    TCase *tc =
        suite_tests("intake", a_place_requests_nothing_before_the_first_demand,
                    until_a_size_is_known_few_are_under_way,
                    batches_that_have_not_come_count_as_the_largest,
                    one_batch_fits_whatever_its_size,
                    batches_without_work_are_done_at_once, NULL);
    return suite_main("intake", set_up, NULL, tc, NULL);
}
