/* SPDX-License-Identifier: Apache-2.0 */
/* The reference peers without a check between them: they finish, release
 * everything, and find no fault with each other. */
#include <check.h>
#include <stdlib.h>

#include "support/check_suite.h"
#include "support/reference_run.h"

enum { STREAMS = 20000, THREADED = 300 };

struct fixture {
    struct reference_producer producer;
    struct reference_consumer consumer;
};

static void fixture_init(struct fixture *fixture,
                         const struct reference_pair *pair)
{
    reference_producer_init(&fixture->producer, &pair->producer);
    reference_consumer_init(&fixture->consumer, &pair->consumer);
    reference_producer_start(&fixture->producer, &fixture->consumer.handler);
}

static void fixture_fini(struct fixture *fixture)
{
    struct reference_producer *p = &fixture->producer;
    struct reference_consumer *c = &fixture->consumer;

    ck_assert(reference_producer_over(p));
    ck_assert(reference_consumer_over(c));
    ck_assert_int_eq(atomic_load(&p->offered), atomic_load(&p->settled));
    ck_assert_int_eq(atomic_load(&p->released), 1);
    ck_assert_int_eq(atomic_load(&p->faults), 0);
    ck_assert_int_eq(atomic_load(&c->faults), 0);
    reference_consumer_fini(c);
    ck_assert_int_eq(atomic_load(&p->live_structs.live), 0);
    reference_producer_fini(p);
}

START_TEST(all_batches_arrive_and_the_end_is_told)
{
    const struct reference_pair pair = {{.batches = 5},
                                        {.first = 2, .more = 2}};
    struct fixture fixture;

    fixture_init(&fixture, &pair);
    reference_run(&fixture.producer, &fixture.consumer);
    ck_assert_int_eq(atomic_load(&fixture.consumer.rows), 5 * REFERENCE_ROWS);
    ck_assert(fixture.consumer.now.ended);
    ck_assert(!fixture.consumer.now.erred);
    fixture_fini(&fixture);
}
END_TEST

START_TEST(a_spoilt_batch_becomes_an_error)
{
    const struct reference_pair pair = {
        {.batches = 3, .lazy = true, .spoilt_at = 1}, {.first = 9}};
    struct fixture fixture;

    fixture_init(&fixture, &pair);
    reference_run(&fixture.producer, &fixture.consumer);
    ck_assert(fixture.consumer.now.failed);
    ck_assert(fixture.consumer.now.erred);
    fixture_fini(&fixture);
}
END_TEST

START_TEST(a_cancel_leads_to_release_alone)
{
    const struct reference_pair pair = {
        {.batches = -1}, {.first = 2, .more = 2, .cancel_at = 3}};
    struct fixture fixture;

    fixture_init(&fixture, &pair);
    reference_run(&fixture.producer, &fixture.consumer);
    ck_assert_int_eq(atomic_load(&fixture.producer.offered), 3);
    ck_assert(!fixture.consumer.now.ended);
    ck_assert(!fixture.consumer.now.erred);
    fixture_fini(&fixture);
}
END_TEST

START_TEST(batches_can_be_told_apart)
{
    struct reference_counts live_structs = {0};
    struct ArrowDeviceArray array;

    reference_array(&live_structs, 7, &array);
    ck_assert_int_eq(reference_array_ordinal(&array.array), 7);
    array.array.release(&array.array);
    ck_assert_int_eq(atomic_load(&live_structs.live), 0);
}
END_TEST

START_TEST(any_two_of_them_come_to_an_end)
{
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        struct reference_chance chance = {seed};
        struct reference_pair pair;
        struct fixture fixture;

        reference_pair_draw(&chance, false, &pair);
        fixture_init(&fixture, &pair);
        reference_run_random(&fixture.producer, &fixture.consumer, &chance);
        fixture_fini(&fixture);
    }
}
END_TEST

START_TEST(on_threads_too)
{
    for (uint64_t seed = 1; seed <= THREADED; seed++) {
        struct reference_chance chance = {seed};
        struct reference_pair pair;
        struct fixture fixture;

        reference_pair_draw(&chance, true, &pair);
        fixture_init(&fixture, &pair);
        reference_run_threads(&fixture.producer, &fixture.consumer, 2);
        fixture_fini(&fixture);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("pairs");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, all_batches_arrive_and_the_end_is_told);
    tcase_add_test(tcase, a_spoilt_batch_becomes_an_error);
    tcase_add_test(tcase, a_cancel_leads_to_release_alone);
    tcase_add_test(tcase, batches_can_be_told_apart);
    tcase_add_test(tcase, any_two_of_them_come_to_an_end);
    tcase_add_test(tcase, on_threads_too);
    return suite_main("reference", NULL, NULL, tcase, NULL);
}
