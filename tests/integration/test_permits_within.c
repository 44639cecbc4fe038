/* SPDX-License-Identifier: Apache-2.0 */
/* Permits within outer ones: sources 0 to 3 are inside, and have together one
 * permit of the outer ones, as the queries of a session have one connection;
 * sources 4 to 6 take permits of the outer ones themselves. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/forked_child.h"

enum { INSIDE = 4, SOURCES = 7, BATCHES = 2 };

static struct fixture f, sources[SOURCES];
static struct uva_permits *outer, *inner;

/* ---- the fixture -------------------------------------------------------- */

static void take_permits(int i, struct uva_permits *permits)
{
    fixture_open_beside(&sources[i], BATCHES, &f);
    sources[i].options.permits = permits;
    sources[i].fake.gate_at = 0;
}

static void open_permits(int32_t count, int32_t inside)
{
    fixture_open(&f, 0);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, count, 0, &outer, NULL),
                     0);
    ck_assert_int_eq(uva_permits_within(outer, inside, 0, &inner, NULL), 0);
    for (int i = 0; i < SOURCES; i++)
        take_permits(i, i < INSIDE ? inner : outer);
}

/* As that, with limits of time. */
static void open_waiting(int64_t outer_ms, int64_t inner_ms)
{
    fixture_open(&f, 0);
    ck_assert_int_eq(uva_permits_new(f.loop.runtime, 1, outer_ms, &outer, NULL),
                     0);
    ck_assert_int_eq(uva_permits_within(outer, 1, inner_ms, &inner, NULL), 0);
    for (int i = 0; i < SOURCES; i++)
        take_permits(i, i < INSIDE ? inner : outer);
}

static void release_inner(void)
{
    uva_permits_release(inner);
    inner = NULL;
}

static void tear_down(void)
{
    release_inner();
    uva_permits_release(outer);
    outer = NULL;
    for (int i = 0; i < SOURCES; i++)
        fixture_close(&sources[i]);
    fixture_close(&f);
}

static void start(int i)
{
    sources[i].stream = fixture_hook(&sources[i]);
    fixture_start(&sources[i]);
}

static bool is_at_gate(void *ctx)
{
    struct fixture *at = ctx;

    loop_nudge(&f.loop);
    return fake_source_is_waiting(&at->fake);
}

static bool is_opened(void *ctx)
{
    struct fixture *at = ctx;

    loop_nudge(&f.loop);
    return atomic_load(&at->fake.opened) > 0;
}

static void await_gate(int i)
{
    loop_until(&f.loop, is_at_gate, &sources[i]);
}

/* Starts source `i`, which gets a permit and stays in a call. */
static void start_open(int i)
{
    start(i);
    await_gate(i);
}

static void open_gate(int i)
{
    fake_source_open_gate(&sources[i].fake);
}

static bool is_done(void *ctx)
{
    return ((struct fixture *)ctx)->got.done > 0;
}

static int await_end(int i)
{
    loop_until(&f.loop, is_done, &sources[i]);
    return sources[i].got.outcome.error.code;
}

static void complete(int i)
{
    open_gate(i);
    ck_assert_int_eq(await_end(i), 0);
}

/* Source `i` waits, whatever the loop has to do. */
static void waits(int i)
{
    loop_settle(&f.loop);
    ck_assert_int_eq(atomic_load(&sources[i].fake.opened), 0);
}

/* Starts source `first` with source `second` opened ahead. Values belong to no
 * single source. */
static void start_ahead(int first, int second)
{
    struct uva_stream *later;

    sources[first].fake.column = sources[second].fake.column = "k";
    later = fixture_hook(&sources[second]);
    sources[first].stream = fixture_hook(&sources[first]);
    ck_assert_int_eq(uva_stream_concat(sources[first].stream, &later, 1,
                                       &(struct uva_merge){.open_at_once = 2}),
                     0);
    fixture_start(&sources[first]);
    await_gate(first);
}

/* ---- one permit of the outer ones ---------------------------------------- */

START_TEST(all_inside_have_one_permit_together)
{
    open_permits(1, 2);
    start_open(0);
    start(4);
    start_open(1);
    waits(4);
    complete(0);
    complete(1);
    waits(4);
    start_open(2); /* before sources that wait outside */
    waits(4);
    release_inner();
    waits(4);
    complete(2);
    complete(4);
}
END_TEST

START_TEST(those_inside_have_an_order)
{
    open_permits(2, 1);
    for (int i = 0; i < 3; i++)
        start(i);
    for (int i = 0; i < 3; i++) {
        await_gate(i);
        if (i < 2)
            waits(i + 1);
        complete(i);
    }
}
END_TEST

static void *release_them(void *ctx)
{
    (void)ctx;
    release_inner();
    return NULL;
}

START_TEST(the_permit_is_given_back_by_any_thread)
{
    pthread_t thread;

    open_permits(1, 1);
    start_open(0);
    complete(0); /* its stream stays */
    start(4);
    waits(4);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_them, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    complete(4);
}
END_TEST

START_TEST(they_wait_in_the_order_of_the_outer_ones)
{
    open_permits(1, 1);
    start_open(4);
    start(0);
    start(5);
    start(1);
    complete(4);
    await_gate(0);
    complete(0);
    complete(1); /* with the permit that 0 has taken */
    waits(5);
    release_inner();
    complete(5);
}
END_TEST

START_TEST(permits_that_were_not_taken_are_released)
{
    open_permits(1, 1);
    release_inner();
    start_open(4);
    complete(4);
}
END_TEST

START_TEST(permits_can_be_within_those_within_others)
{
    struct uva_permits *innermost;

    open_permits(1, 1);
    ck_assert_int_eq(uva_permits_within(inner, 2, 0, &innermost, NULL), 0);
    sources[1].options.permits = sources[2].options.permits = innermost;
    start_open(1);
    start_open(2);
    start(0);
    start(4);
    uva_permits_release(innermost);
    complete(1);
    waits(0);
    complete(2);
    complete(0);
    waits(4);
    release_inner();
    complete(4);
}
END_TEST

START_TEST(more_permits_inside_let_begin_what_waits)
{
    open_permits(1, 1);
    start_open(0);
    start(1);
    waits(1);
    ck_assert_int_eq(uva_permits_resize(inner, 2), 0);
    await_gate(1);
    complete(0);
    complete(1);
}
END_TEST

/* ---- the end of a wait --------------------------------------------------- */

/* The rest inside goes on to wait. */
START_TEST(nothing_waits_outside_when_nothing_waits_inside)
{
    open_permits(1, 1);
    start_open(4);
    start(0);
    start(1);
    start(5);
    loop_settle(&f.loop);
    uva_stream_cancel(sources[0].stream, 0, NULL);
    ck_assert_int_eq(await_end(0), ECANCELED);
    uva_stream_cancel(sources[1].stream, 0, NULL);
    ck_assert_int_eq(await_end(1), ECANCELED);
    start(2);
    complete(4);
    await_gate(5);
    waits(2);
    complete(5);
    complete(2);
}
END_TEST

START_TEST(a_wait_for_the_outer_permit_goes_on_for_the_others)
{
    open_permits(1, 1);
    start_open(4);
    start(0);
    start(1);
    start(5);
    loop_settle(&f.loop);
    uva_stream_cancel(sources[0].stream, 0, NULL);
    ck_assert_int_eq(await_end(0), ECANCELED);
    complete(4);
    complete(1);
    waits(5);
    release_inner();
    complete(5);
}
END_TEST

START_TEST(the_time_of_those_inside_counts)
{
    open_waiting(0, 1);
    start_open(4);
    for (int i = 0; i < 2; i++)
        start(i);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(await_end(i), ETIMEDOUT);
        text_contains(sources[i].got.outcome.error.message, "within 1 ms");
    }
    start(5);
    complete(4);
    complete(5); /* no query holds the permit */
}
END_TEST

START_TEST(the_time_outside_does_not_count_for_those_inside)
{
    open_waiting(1, 0);
    start_open(4);
    start(0);
    start(5);
    start(6);
    ck_assert_int_eq(await_end(5), ETIMEDOUT);
    ck_assert_int_eq(await_end(6), ETIMEDOUT);
    waits(0);
    ck_assert(!loop_has_timer(&f.loop));
    complete(4);
    complete(0);
}
END_TEST

START_TEST(a_close_ends_the_wait_and_the_permit)
{
    open_permits(1 + _i, 1);
    start_open(4);
    start(0);
    start(1);
    if (_i == 1)
        await_gate(0);
    loop_close_runtime(&f.loop, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(await_end(i), ECANCELED);
}
END_TEST

/* ---- opened ahead -------------------------------------------------------- */

START_TEST(the_last_outer_permit_is_not_taken_ahead)
{
    open_permits(1, 2);
    sources[0].fake.gate_at = -1;
    start_ahead(4, 0);
    waits(0);
    complete(4);
    ck_assert_int_eq(atomic_load(&sources[0].fake.opened), 1);
}
END_TEST

/* Then there is room for another one ahead once it is needed. */
START_TEST(an_outer_permit_to_spare_is_taken_ahead)
{
    open_permits(2, 2);
    start_ahead(4, 0);
    loop_until(&f.loop, is_opened, &sources[0]);
    start(5);
    start_open(1); /* with that permit, which is needed from now on */
    waits(5);
    complete(1);
    open_gate(4);
    complete(5);
    open_gate(0);
    ck_assert_int_eq(await_end(4), 0);
}
END_TEST

START_TEST(one_that_is_needed_inside_makes_the_wait_needed)
{
    open_permits(1, 2);
    start_ahead(4, 0);
    waits(0);
    start(1);
    start(5);
    open_gate(4);
    complete(1);
    open_gate(0);
    ck_assert_int_eq(await_end(4), 0);
    waits(5);
    release_inner();
    complete(5);
}
END_TEST

START_TEST(a_wait_that_only_one_ahead_is_left_of_goes_behind)
{
    open_permits(1, 2);
    start_ahead(4, 0);
    waits(0);
    start(1);
    start(5);
    loop_settle(&f.loop);
    uva_stream_cancel(sources[1].stream, 0, NULL);
    ck_assert_int_eq(await_end(1), ECANCELED);
    open_gate(4);
    await_gate(5);
    waits(0);
    complete(5);
    open_gate(0);
    ck_assert_int_eq(await_end(4), 0);
}
END_TEST

/* The hold waits ahead until the last of them is cancelled. */
START_TEST(a_wait_ahead_outside_is_that_of_all_inside)
{
    struct uva_stream *later[2], *first;

    open_permits(1, 3);
    for (int i = 0; i < 5; i++)
        sources[i].fake.column = "k";
    for (int i = 0; i < 2; i++)
        later[i] = fixture_hook(&sources[i]);
    first = uva_stream_acquire(later[0]);
    sources[4].stream = fixture_hook(&sources[4]);
    ck_assert_int_eq(uva_stream_concat(sources[4].stream, later, 2,
                                       &(struct uva_merge){.open_at_once = 3}),
                     0);
    fixture_start(&sources[4]);
    await_gate(4);
    waits(0);
    waits(1);
    start(5);
    uva_stream_cancel(_i == 0 ? first : sources[4].stream, 0, NULL);
    uva_stream_release(first);
    open_gate(4);
    ck_assert_int_eq(await_end(4), ECANCELED);
    waits(0);
    waits(1);
    complete(5);
}
END_TEST

static bool is_freed(void *ctx)
{
    struct fixture *at = ctx;

    loop_nudge(&f.loop);
    return atomic_load(&at->fake.freed) > 0;
}

/* It has failed ahead, and is closed when its part of the stream comes. */
START_TEST(one_that_has_ended_needs_nothing)
{
    open_permits(2, 2);
    sources[0].fake.schema_code = EIO;
    start_ahead(4, 0);
    loop_until(&f.loop, is_freed, &sources[0]);
    open_gate(4);
    ck_assert_int_eq(await_end(4), EIO);
    start_open(1);
    complete(1);
}
END_TEST

/* ---- invalid arguments --------------------------------------------------- */

START_TEST(what_is_invalid_is_refused)
{
    struct uva_permits *none = NULL;

    open_permits(1, 1);
    ck_assert_int_eq(uva_permits_within(NULL, 1, 0, &none, NULL), EINVAL);
    ck_assert_int_eq(uva_permits_within(outer, 1, 0, NULL, NULL), EINVAL);
    ck_assert_int_eq(uva_permits_within(outer, 0, 0, &none, NULL), EINVAL);
    ck_assert_int_eq(uva_permits_within(outer, 1, -1, &none, NULL), EINVAL);
    loop_fail(&f.loop, 1);
    ck_assert_int_eq(uva_permits_within(outer, 1, 0, &none, NULL), ENOMEM);
    loop_fail(&f.loop, 0);
    ck_assert_ptr_null(none);
}
END_TEST

static int use_permits(void *ctx)
{
    struct uva_permits *made;
    const int code = uva_permits_within(outer, 1, 0, &made, NULL);

    (void)ctx;
    release_inner(); /* which the parent has, too */
    return code != EPERM;
}

START_TEST(a_forked_child_has_no_permits)
{
    open_permits(1, 1);
    forked_child_run(use_permits, NULL);
    start_open(0);
    complete(0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("permits within");

    suite_add(tc, all_inside_have_one_permit_together,
              those_inside_have_an_order,
              the_permit_is_given_back_by_any_thread,
              they_wait_in_the_order_of_the_outer_ones,
              permits_that_were_not_taken_are_released,
              permits_can_be_within_those_within_others,
              more_permits_inside_let_begin_what_waits,
              nothing_waits_outside_when_nothing_waits_inside,
              a_wait_for_the_outer_permit_goes_on_for_the_others,
              the_time_of_those_inside_counts,
              the_time_outside_does_not_count_for_those_inside, NULL);
    suite_add_loops(tc, 0, 2, a_close_ends_the_wait_and_the_permit, NULL);
    suite_add_loops(tc, 0, 2, a_wait_ahead_outside_is_that_of_all_inside, NULL);
    suite_add(tc, the_last_outer_permit_is_not_taken_ahead,
              an_outer_permit_to_spare_is_taken_ahead,
              one_that_is_needed_inside_makes_the_wait_needed,
              a_wait_that_only_one_ahead_is_left_of_goes_behind,
              one_that_has_ended_needs_nothing, what_is_invalid_is_refused,
              a_forked_child_has_no_permits, NULL);
    return suite_main("permits_within", NULL, tear_down, tc, NULL);
}
