/* SPDX-License-Identifier: Apache-2.0 */
/* for_each: pausing, resuming, cancelling and dropping, at every point
 * and from every place, also while the source is stuck. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f, other; /* `other` only where two streams run */

/* The acts of on_batch, once. */
static struct {
    int64_t at;         /* acts in this batch; negative: in no batch */
    int code;           /* the code that it returns */
    bool take;          /* it first moves the data out */
    void (*hook)(void); /* called after that; may be NULL */
    int done;           /* how often it has acted */
    struct ArrowDeviceArray taken;
} plan;

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    if (batch->ordinal != plan.at)
        return;
    plan.at = -1;
    plan.done++;
    if (plan.take)
        uva_array_move(&batch->data, &plan.taken);
    if (plan.hook != NULL)
        plan.hook();
    c->answer = plan.code;
}

static bool plan_is_done(void *ctx)
{
    (void)ctx;
    return plan.done > 0;
}

/* Turns the loop until on_batch has acted, and until no more callbacks follow.
 */
static void await_plan(void)
{
    loop_until(&f.loop, plan_is_done, NULL);
    loop_settle(&f.loop);
}

/* Opens the fixture, without a stream. */
static void set_up_with_options(int64_t batches,
                                const struct uva_runtime_options *options)
{
    fixture_open_with(&f, batches, options);
    f.got.on_batch = on_batch;
    memset(&plan, 0, sizeof(plan));
    plan.at = -1;
}

static void set_up_with(int64_t batches, int64_t at, int code)
{
    set_up_with_options(batches, &(struct uva_runtime_options){0});
    plan.at = at;
    plan.code = code;
}

static void start_stream(void)
{
    f.stream = fixture_blocking(&f);
    fixture_start(&f);
}

static void tear_down(void)
{
    uva_array_release(&plan.taken);
    ck_assert(f.got.in_order);
    fixture_close(&other);
    fixture_close(&f);
}

/* ---- pausing ------------------------------------------------------------ */

START_TEST(a_pause_at_any_batch_loses_nothing)
{
    const int k = _i % 5; /* also the last batch */

    set_up_with(5, k, EAGAIN);
    f.stream = fixture_sources[_i / 5].make(&f);
    fixture_start(&f);
    await_plan();
    ck_assert_int_eq(f.got.taken, k + 1);
    if (k < 4)
        ck_assert_int_eq(f.got.done, 0);
    uva_stream_resume(f.stream);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 5);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.outcome.batches, 5);
}
END_TEST

START_TEST(a_pause_that_took_its_batch_goes_on_with_the_next)
{
    set_up_with(5, _i, EAGAIN);
    plan.take = true;
    start_stream();
    await_plan();
    if (_i < 4)
        ck_assert_int_eq(f.got.done, 0);
    uva_stream_resume(f.stream);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 5);
    ck_assert_int_eq(f.got.outcome.batches, 5);
}
END_TEST

static void resume(void)
{
    uva_stream_resume(f.stream);
}

START_TEST(a_resume_inside_on_batch_counts)
{
    set_up_with(4, 2, EAGAIN);
    plan.hook = resume;
    start_stream();
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 4);
    ck_assert_int_eq(plan.done, 1);
}
END_TEST

START_TEST(a_resume_without_a_pause_has_no_effect)
{
    set_up_with(4, -1, 0);
    start_stream();
    uva_stream_resume(f.stream); /* resumes now; a pause follows */
    plan.at = 1;
    plan.code = EAGAIN;
    await_plan();
    ck_assert_int_eq(f.got.taken, 2);
    uva_stream_resume(f.stream);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 4);
}
END_TEST

START_TEST(an_error_waits_behind_the_batch_that_waits)
{
    set_up_with(5, 1, EAGAIN);
    f.fake.fail_at = 3;
    start_stream();
    await_plan();
    ck_assert_int_eq(f.got.done, 0);
    uva_stream_resume(f.stream);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 3);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_str_eq(f.got.outcome.error.message,
                     "arrow_stream: the disk is on fire");
}
END_TEST

/* ---- stopping ----------------------------------------------------------- */

static void cancel(void)
{
    uva_stream_cancel(f.stream, ETIMEDOUT, "long enough");
    uva_stream_cancel(f.stream, EIO, "and again");
}

START_TEST(a_cancel_inside_on_batch_is_the_last_of_it)
{
    set_up_with(1000, _i, 0);
    plan.hook = cancel;
    start_stream();
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, _i + 1);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(f.got.outcome.error.code, ETIMEDOUT);
    ck_assert_str_eq(f.got.outcome.error.message, "long enough");
}
END_TEST

START_TEST(a_cancel_while_paused_is_told_at_once)
{
    set_up_with(1000, 3, EAGAIN);
    start_stream();
    await_plan();
    uva_stream_cancel(f.stream, 0, NULL);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(f.got.outcome.error.code, ECANCELED);
}
END_TEST

static void drop(void)
{
    fixture_drop(&f);
}

START_TEST(a_drop_inside_on_batch_is_silent)
{
    set_up_with(1000, _i, EIO); /* the code is ignored */
    plan.hook = drop;
    start_stream();
    await_plan();
    ck_assert_int_eq(f.got.done, 0);
}
END_TEST

static void drop_other(void)
{
    fixture_drop(&other);
}

START_TEST(a_stream_dropped_in_the_callback_of_another_is_silent_at_once)
{
    set_up_with(300, _i, 0);
    plan.hook = drop_other;
    f.stream = fixture_blocking(&f);
    fixture_open_beside(&other, 300, &f);
    other.fake.gate_at = 299; /* it cannot end before it is dropped */
    other.stream = fixture_blocking(&other);
    fixture_start(&other);
    fixture_start(&f);
    fixture_await(&f);
    loop_settle(&f.loop);
    ck_assert_int_eq(other.got.done, 0);
}
END_TEST

START_TEST(a_drop_before_anything_came_is_silent)
{
    set_up_with(10, -1, 0);
    start_stream();
    drop();
    loop_settle(&f.loop);
}
END_TEST

START_TEST(a_source_that_is_stuck_holds_up_neither_cancel_nor_close)
{
    set_up_with(10, -1, 0);
    f.fake.gate_at = 2;
    f.options.interrupt = NULL; /* the source cannot be interrupted */
    start_stream();
    fixture_await_gate(&f);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.taken, 2); /* each was announced before the wait */
    if (_i == 0) {
        uva_stream_cancel(f.stream, 0, NULL);
        fixture_await(&f);
    }
    fixture_release(&f);
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(f.got.done, 1);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(atomic_load(&f.fake.freed), 0); /* it is still inside */
    fake_source_open_gate(&f.fake);
}
END_TEST

START_TEST(an_interrupt_reaches_a_source_that_is_stuck)
{
    set_up_with(10, -1, 0);
    f.fake.gate_at = _i;
    start_stream();
    fixture_await_gate(&f);
    uva_stream_cancel(f.stream, 0, NULL);
    fixture_await(&f);
    fixture_close(&f); /* only the interrupt opened the gate */
    ck_assert_int_ge(atomic_load(&f.fake.interrupts), 1);
}
END_TEST

/* ---- windows ------------------------------------------------------------ */

START_TEST(AP29_the_source_is_read_no_further_ahead_than_the_window)
{
    set_up_with(1000, 4, EAGAIN);
    f.options.window.batches = _i;
    start_stream();
    await_plan();
    loop_settle(&f.loop);
    ck_assert_int_le(atomic_load(&f.fake.given), 5 + _i);
    uva_stream_cancel(f.stream, 0, NULL);
    fixture_await(&f);
}
END_TEST

START_TEST(a_window_of_bytes_pauses_the_reader_and_lets_it_go_on)
{
    set_up_with(200, 7, EAGAIN);
    f.options.window = (struct uva_window){.batches = 64, .bytes = 50};
    f.options.on_loop = _i == 1;
    start_stream();
    await_plan();
    loop_settle(&f.loop);
    /* 24 bytes a batch: three of them are over the budget */
    ck_assert_int_le(atomic_load(&f.fake.given), 8 + 3);
    uva_stream_resume(f.stream);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 200);
}
END_TEST

/* Items count with their size, before they are extracted. */
START_TEST(a_window_of_bytes_counts_items)
{
    struct uva_task_source source;

    set_up_with(200, 7, EAGAIN);
    f.fake.item_size = 24;
    source = fake_source_tasks(&f.fake);
    source.window = (struct uva_window){.batches = 64, .bytes = 50};
    f.contexts++;
    f.stream = uva_stream_from_tasks(f.loop.runtime, &source);
    ck_assert_int_eq(uva_stream_parallel(
                         f.stream, &(struct uva_parallel){.workers = 1,
                                                          .window.batches = 1}),
                     0);
    fixture_start(&f);
    await_plan();
    loop_settle(&f.loop);
    /* one more is extracted, and three of them are over the budget */
    ck_assert_int_le(atomic_load(&f.fake.given), 8 + 1 + 3 + 1);
    uva_stream_resume(f.stream);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 200);
}
END_TEST

/* An impossible size counts as 0, or as much. */
START_TEST(an_odd_size_of_items_is_harmless)
{
    set_up_with(50, -1, 0);
    f.fake.item_size = _i == 0 ? INT64_MIN : INT64_MAX;
    f.stream = fixture_tasks(&f);
    fixture_start(&f);
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 50);
}
END_TEST

START_TEST(a_quick_source_runs_on_the_loop_and_ends)
{
    set_up_with(500, _i, EAGAIN);
    f.options.on_loop = true;
    plan.hook = resume;
    start_stream();
    fixture_await(&f);
    ck_assert_int_eq(f.got.taken, 500);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
}
END_TEST

static void other_is_not_ahead(void)
{
    ck_assert_int_gt(other.got.taken, 0);
    ck_assert_int_eq(atomic_load(&other.fake.given), other.got.taken);
}

START_TEST(a_quick_source_is_not_read_ahead_while_others_have_their_turn)
{
    /* even if visits are slow, no visit is followed by a shorter one */
    const struct uva_runtime_options slow = {.turn_us = 100000000};

    set_up_with_options(200, &slow);
    plan.at = _i;
    plan.hook = other_is_not_ahead;
    fixture_open_beside(&other, 200, &f);
    f.options.on_loop = other.options.on_loop = true;
    other.stream = fixture_blocking(&other);
    f.stream = fixture_blocking(&f);
    fixture_start(&other);
    fixture_start(&f);
    recording_await_done(&other.got, &f.loop);
    fixture_await(&f);
    ck_assert_int_eq(other.got.taken, 200);
    ck_assert_int_eq(f.got.taken, 200);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("on the loop");

    tcase_set_timeout(tc, 60);
    suite_add(tc, a_resume_inside_on_batch_counts,
              a_resume_without_a_pause_has_no_effect,
              an_error_waits_behind_the_batch_that_waits,
              a_cancel_while_paused_is_told_at_once,
              a_drop_before_anything_came_is_silent,
              a_window_of_bytes_counts_items, NULL);
    tcase_add_loop_test(tc, a_pause_at_any_batch_loses_nothing, 0,
                        5 * FIXTURE_SOURCES);
    tcase_add_loop_test(tc, a_pause_that_took_its_batch_goes_on_with_the_next,
                        0, 5);
    tcase_add_loop_test(tc, a_cancel_inside_on_batch_is_the_last_of_it, 0, 70);
    suite_add_loops(
        tc, 0, 20, a_drop_inside_on_batch_is_silent,
        a_stream_dropped_in_the_callback_of_another_is_silent_at_once, NULL);
    suite_add_loops(tc, 0, 2,
                    a_source_that_is_stuck_holds_up_neither_cancel_nor_close,
                    a_window_of_bytes_pauses_the_reader_and_lets_it_go_on,
                    an_odd_size_of_items_is_harmless, NULL);
    tcase_add_loop_test(tc, an_interrupt_reaches_a_source_that_is_stuck, 0, 4);
    tcase_add_loop_test(
        tc, AP29_the_source_is_read_no_further_ahead_than_the_window, 1, 9);
    tcase_add_loop_test(tc, a_quick_source_runs_on_the_loop_and_ends, 0, 40);
    tcase_add_loop_test(
        tc, a_quick_source_is_not_read_ahead_while_others_have_their_turn, 1,
        40);
    return suite_main("consuming", NULL, tear_down, tc, NULL);
}
