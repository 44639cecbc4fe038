/* SPDX-License-Identifier: Apache-2.0 */
/* for_each and next: pausing, resuming, cancelling, dropping, at every point
 * and from everywhere, also while the source is stuck. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct uva_stream *stream;
    bool on_loop;             /* the source runs on the loop */
    struct uva_window window; /* of the source */
    /* what on_batch does */
    int64_t at;                    /* in this batch; negative: in none */
    int answer;                    /* that, and answers so */
    bool take;                     /* moves the data out first */
    void (*hook)(struct scene *s); /* and calls that; NULL: no */
    struct scene *other;           /* for the hook */
    /* what happened */
    int64_t batches, answers, again;
    struct ArrowDeviceArray kept;
    bool silent; /* nothing may come any more */
    int done;
    struct uva_outcome outcome;
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct scene *s = ctx;

    ck_assert(!s->silent);
    ck_assert(uva_array_is_live(&batch->data));
    ck_assert_int_eq(batch->ordinal, s->batches);
    if (batch->ordinal != s->at) {
        s->batches++;
        return 0;
    }
    s->at = -1;
    s->again++;
    if (s->take)
        uva_array_move(&batch->data, &s->kept);
    if (s->take || s->answer == 0)
        s->batches++;
    if (s->hook != NULL)
        s->hook(s);
    return s->answer;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    ck_assert(!s->silent);
    s->done++;
    s->outcome = *outcome;
}

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done > 0;
}

static bool has_met(void *ctx)
{
    return ((struct scene *)ctx)->again > 0;
}

static void scene_init(struct scene *s, int64_t batches)
{
    memset(s, 0, sizeof(*s));
    fake_source_init(&s->fake, batches);
    s->at = -1;
}

static void scene_source(struct scene *s, struct uva_runtime *runtime)
{
    struct uva_blocking_source how = fake_source_how(&s->fake);
    struct ArrowArrayStream plain;

    how.on_loop = s->on_loop;
    how.window = s->window;
    fake_source_plain(&s->fake, &plain);
    s->stream = uva_stream_from_blocking_cpu(runtime, &plain, &how);
}

static void scene_start(struct scene *s)
{
    struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};
    struct uva_error error = {0};

    ck_assert_msg(uva_stream_for_each(s->stream, &consumer, &error) == 0, "%s",
                  error.message);
}

/* Turns the loop until the source is stuck. */
static void await_gate(struct scene *s)
{
    while (!fake_source_is_waiting(&s->fake)) {
        (void)uv_run(&s->rig.loop, UV_RUN_NOWAIT);
        sched_yield();
    }
}

static void scene_open(struct scene *s, int64_t batches)
{
    scene_init(s, batches);
    loop_rig_open(&s->rig);
    scene_source(s, s->rig.runtime);
}

static void scene_end(struct scene *s)
{
    uva_array_release(&s->kept);
    while (atomic_load(&s->fake.freed) == 0)
        sched_yield(); /* a worker may just be at it */
    ck_assert_int_eq(atomic_load(&s->fake.freed), 1);
    ck_assert_int_eq(atomic_load(&s->fake.released), 1);
}

static void scene_close(struct scene *s)
{
    uva_stream_release(s->stream);
    loop_rig_close_runtime(&s->rig, 0);
    scene_end(s);
    while (faulty_allocator_live(&s->rig.memory) > 0)
        sched_yield();
    loop_rig_close(&s->rig);
    fake_source_fini(&s->fake);
}

/* ---- pausing ------------------------------------------------------------ */

START_TEST(a_pause_at_any_batch_loses_nothing)
{
    struct scene s;

    scene_open(&s, 5);
    s.at = _i; /* the last one too */
    s.answer = EAGAIN;
    scene_start(&s);
    loop_rig_until(&s.rig, has_met, &s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, _i);
    ck_assert_int_eq(s.done, 0);
    uva_stream_resume(s.stream);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 5);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(s.outcome.batches, 5);
    scene_close(&s);
}
END_TEST

START_TEST(a_pause_that_took_its_batch_goes_on_with_the_next)
{
    struct scene s;

    scene_open(&s, 5);
    s.at = _i;
    s.answer = EAGAIN;
    s.take = true;
    scene_start(&s);
    loop_rig_until(&s.rig, has_met, &s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.done, 0); /* not even the end comes */
    uva_stream_resume(s.stream);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 5);
    ck_assert_int_eq(s.outcome.batches, 5);
    scene_close(&s);
}
END_TEST

static void resume(struct scene *s)
{
    uva_stream_resume(s->stream);
}

START_TEST(a_resume_inside_on_batch_counts)
{
    struct scene s;

    scene_open(&s, 4);
    s.at = 2;
    s.answer = EAGAIN;
    s.hook = resume;
    scene_start(&s);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 4);
    ck_assert_int_eq(s.again, 1);
    scene_close(&s);
}
END_TEST

START_TEST(a_resume_without_a_pause_has_no_effect)
{
    struct scene s;

    scene_open(&s, 4);
    scene_start(&s);
    uva_stream_resume(s.stream); /* now; and then a pause */
    s.at = 1;
    s.answer = EAGAIN;
    loop_rig_until(&s.rig, has_met, &s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 1);
    uva_stream_resume(s.stream);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 4);
    scene_close(&s);
}
END_TEST

START_TEST(an_error_waits_behind_a_paused_batch)
{
    struct scene s;

    scene_open(&s, 5);
    s.fake.fail_at = 3;
    s.at = 2;
    s.answer = EAGAIN;
    scene_start(&s);
    loop_rig_until(&s.rig, has_met, &s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.done, 0);
    uva_stream_resume(s.stream);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 3);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_str_eq(s.outcome.error.message, "the disk is on fire");
    scene_close(&s);
}
END_TEST

/* ---- stopping ----------------------------------------------------------- */

static void cancel(struct scene *s)
{
    uva_stream_cancel(s->stream, ETIMEDOUT, "long enough");
    uva_stream_cancel(s->stream, EIO, "and again");
}

START_TEST(a_cancel_inside_on_batch_is_the_last_of_it)
{
    struct scene s;

    scene_open(&s, 1000);
    s.at = _i;
    s.hook = cancel;
    scene_start(&s);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, _i + 1);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(s.outcome.error.code, ETIMEDOUT);
    ck_assert_str_eq(s.outcome.error.message, "long enough");
    scene_close(&s);
}
END_TEST

START_TEST(a_cancel_while_paused_is_told_at_once)
{
    struct scene s;

    scene_open(&s, 1000);
    s.at = 3;
    s.answer = EAGAIN;
    scene_start(&s);
    loop_rig_until(&s.rig, has_met, &s);
    uva_stream_cancel(s.stream, 0, NULL);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(s.outcome.error.code, ECANCELED);
    scene_close(&s);
}
END_TEST

static void drop(struct scene *s)
{
    uva_stream_drop(s->stream);
    s->stream = NULL;
    s->silent = true;
}

START_TEST(a_drop_inside_on_batch_is_silent)
{
    struct scene s;

    scene_open(&s, 1000);
    s.at = _i;
    s.answer = EIO; /* of no account */
    s.hook = drop;
    scene_start(&s);
    loop_rig_until(&s.rig, has_met, &s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.done, 0);
    scene_close(&s);
}
END_TEST

static void drop_other(struct scene *s)
{
    drop(s->other);
}

START_TEST(a_stream_dropped_in_the_callback_of_another_is_silent_at_once)
{
    struct scene s, t;

    scene_open(&s, 300);
    scene_init(&t, 300);
    scene_source(&t, s.rig.runtime);
    t.fake.gate_at = 299; /* so it cannot end before it is dropped */
    s.other = &t;
    s.at = _i;
    s.hook = drop_other;
    scene_start(&t);
    scene_start(&s);
    loop_rig_until(&s.rig, is_done, &s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(t.done, 0);
    scene_end(&t);
    scene_close(&s);
    fake_source_fini(&t.fake);
}
END_TEST

START_TEST(a_drop_before_anything_came_is_silent)
{
    struct scene s;

    scene_open(&s, 10);
    scene_start(&s);
    drop(&s);
    loop_rig_settle(&s.rig);
    scene_close(&s);
}
END_TEST

START_TEST(a_source_that_is_stuck_holds_up_neither_cancel_nor_close)
{
    struct uva_blocking_source how;
    struct ArrowArrayStream plain;
    struct scene s;

    scene_init(&s, 10);
    loop_rig_open(&s.rig);
    s.fake.gate_at = 2;
    fake_source_plain(&s.fake, &plain);
    how = fake_source_how(&s.fake);
    how.interrupt = NULL; /* nobody can help it */
    s.stream = uva_stream_from_blocking_cpu(s.rig.runtime, &plain, &how);
    scene_start(&s);
    await_gate(&s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.batches, 2); /* each was announced before the wait */
    if (_i == 0) {
        uva_stream_cancel(s.stream, 0, NULL);
        loop_rig_until(&s.rig, is_done, &s);
    }
    uva_stream_release(s.stream);
    s.stream = NULL;
    loop_rig_close_runtime(&s.rig, 0);
    ck_assert_int_eq(s.done, 1);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(atomic_load(&s.fake.freed), 0); /* it is still inside */
    fake_source_open_gate(&s.fake);
    scene_end(&s);
    while (faulty_allocator_live(&s.rig.memory) > 0)
        sched_yield();
    loop_rig_close(&s.rig);
    fake_source_fini(&s.fake);
}
END_TEST

START_TEST(an_interrupt_reaches_a_source_that_is_stuck)
{
    struct scene s;

    scene_open(&s, 10);
    s.fake.gate_at = _i;
    scene_start(&s);
    await_gate(&s);
    uva_stream_cancel(s.stream, 0, NULL);
    loop_rig_until(&s.rig, is_done, &s);
    scene_close(&s); /* the gate was opened by nobody else */
    ck_assert_int_ge(atomic_load(&s.fake.interrupts), 1);
}
END_TEST

/* ---- windows ------------------------------------------------------------ */

START_TEST(AP29_the_source_is_read_no_further_ahead_than_the_window)
{
    struct scene s;

    scene_init(&s, 1000);
    loop_rig_open(&s.rig);
    s.window.batches = _i;
    scene_source(&s, s.rig.runtime);
    s.at = 4;
    s.answer = EAGAIN;
    scene_start(&s);
    loop_rig_until(&s.rig, has_met, &s);
    loop_rig_settle(&s.rig);
    loop_rig_settle(&s.rig);
    ck_assert_int_le(atomic_load(&s.fake.given), 5 + _i);
    uva_stream_cancel(s.stream, 0, NULL);
    loop_rig_until(&s.rig, is_done, &s);
    scene_close(&s);
}
END_TEST

START_TEST(a_window_of_bytes_pauses_the_reader_and_lets_it_go_on)
{
    struct scene s;

    scene_init(&s, 200);
    loop_rig_open(&s.rig);
    s.window = (struct uva_window){.batches = 64, .bytes = 50};
    s.on_loop = _i == 1;
    scene_source(&s, s.rig.runtime);
    s.at = 7;
    s.answer = EAGAIN;
    scene_start(&s);
    loop_rig_until(&s.rig, has_met, &s);
    loop_rig_settle(&s.rig);
    loop_rig_settle(&s.rig);
    /* 24 bytes a batch: three of them are over the budget */
    ck_assert_int_le(atomic_load(&s.fake.given), 8 + 3);
    uva_stream_resume(s.stream);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 200);
    scene_close(&s);
}
END_TEST

START_TEST(a_quick_source_runs_on_the_loop_and_ends)
{
    struct scene s;

    scene_init(&s, 500);
    loop_rig_open(&s.rig);
    s.on_loop = true;
    scene_source(&s, s.rig.runtime);
    s.at = _i;
    s.answer = EAGAIN;
    s.hook = resume;
    scene_start(&s);
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.batches, 500);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    scene_close(&s);
}
END_TEST

static void other_is_not_ahead(struct scene *s)
{
    ck_assert_int_gt(s->other->batches, 0);
    ck_assert_int_eq(atomic_load(&s->other->fake.given), s->other->batches);
}

START_TEST(a_quick_source_is_not_read_ahead_while_others_have_their_turn)
{
    /* however slow, no visit is followed by a shorter one */
    const struct uva_runtime_options slow = {.turn_us = 100000000};
    struct scene first, second;

    scene_init(&first, 200);
    scene_init(&second, 200);
    loop_rig_open_with(&first.rig, &slow);
    first.on_loop = second.on_loop = true;
    second.at = _i;
    second.hook = other_is_not_ahead;
    second.other = &first;
    scene_source(&first, first.rig.runtime);
    scene_source(&second, first.rig.runtime);
    scene_start(&first);
    scene_start(&second);
    loop_rig_until(&first.rig, is_done, &first);
    loop_rig_until(&first.rig, is_done, &second);
    ck_assert_int_eq(first.batches, 200);
    ck_assert_int_eq(second.batches, 200);
    uva_stream_release(second.stream);
    scene_end(&second);
    fake_source_fini(&second.fake);
    scene_close(&first);
}
END_TEST

/* ---- next --------------------------------------------------------------- */

static void answered(void *ctx, struct uva_batch *batch,
                     const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    ck_assert((batch == NULL) != (outcome == NULL));
    ck_assert(!s->silent);
    s->answers++;
    if (batch != NULL) {
        ck_assert_int_eq(batch->ordinal, s->batches++);
        return;
    }
    s->done++;
    s->outcome = *outcome;
}

static bool has_answer(void *ctx)
{
    struct scene *s = ctx;

    return s->answers > s->again;
}

/* One call, one answer; the loop turns in between. */
static void pull(struct scene *s)
{
    s->again = s->answers;
    ck_assert_int_eq(uva_stream_next(s->stream, answered, s, NULL), 0);
    ck_assert_int_eq(s->answers, s->again); /* never inside the call */
    ck_assert_int_eq(uva_stream_next(s->stream, answered, s, NULL), EBUSY);
    loop_rig_until(&s->rig, has_answer, s);
    ck_assert_int_eq(s->answers, s->again + 1);
}

START_TEST(next_answers_once_a_call_and_repeats_the_end)
{
    struct scene s;
    int i;

    scene_open(&s, 3);
    for (i = 0; i < 5; i++)
        pull(&s);
    ck_assert_int_eq(s.batches, 3);
    ck_assert_int_eq(s.done, 2);
    ck_assert_int_eq(s.outcome.end, UVA_END_COMPLETE);
    scene_close(&s);
}
END_TEST

START_TEST(next_repeats_a_failure_with_its_text)
{
    struct scene s;

    scene_open(&s, 3);
    s.fake.fail_at = 1;
    pull(&s);
    pull(&s);
    pull(&s);
    ck_assert_int_eq(s.done, 2);
    ck_assert_int_eq(s.outcome.end, UVA_END_FAILED);
    ck_assert_str_eq(s.outcome.error.message, "the disk is on fire");
    scene_close(&s);
}
END_TEST

START_TEST(next_is_told_of_a_cancel_and_a_close)
{
    struct scene s;

    scene_open(&s, 10);
    s.fake.gate_at = 0;
    ck_assert_int_eq(uva_stream_next(s.stream, answered, &s, NULL), 0);
    await_gate(&s);
    if (_i == 0) {
        uva_stream_cancel(s.stream, 0, NULL);
        loop_rig_until(&s.rig, is_done, &s);
    }
    uva_stream_acquire(s.stream); /* outlives the runtime */
    loop_rig_close_runtime(&s.rig, 0);
    ck_assert_int_eq(s.done, 1);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(uva_stream_next(s.stream, answered, &s, NULL), ESHUTDOWN);
    uva_stream_release(s.stream);
    uva_stream_release(s.stream);
    scene_end(&s);
    while (faulty_allocator_live(&s.rig.memory) > 0)
        sched_yield();
    loop_rig_close(&s.rig);
    fake_source_fini(&s.fake);
}
END_TEST

START_TEST(next_is_cancelled_with_its_last_holder_and_told_so)
{
    struct scene s;

    scene_open(&s, 10);
    s.fake.gate_at = 0;
    ck_assert_int_eq(uva_stream_next(s.stream, answered, &s, NULL), 0);
    await_gate(&s);
    uva_stream_release(s.stream);
    s.stream = NULL;
    loop_rig_until(&s.rig, is_done, &s);
    ck_assert_int_eq(s.outcome.end, UVA_END_CANCELLED);
    scene_close(&s);
}
END_TEST

START_TEST(next_that_is_dropped_is_not_answered)
{
    struct scene s;

    scene_open(&s, 10);
    s.fake.gate_at = 1;
    pull(&s);
    s.again = s.answers;
    ck_assert_int_eq(uva_stream_next(s.stream, answered, &s, NULL), 0);
    drop(&s);
    loop_rig_settle(&s.rig);
    ck_assert_int_eq(s.answers, s.again);
    scene_close(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("consuming");
    TCase *tc = tcase_create("on the loop");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_pause_at_any_batch_loses_nothing, 0, 5);
    tcase_add_loop_test(tc, a_pause_that_took_its_batch_goes_on_with_the_next,
                        0, 5);
    tcase_add_test(tc, a_resume_inside_on_batch_counts);
    tcase_add_test(tc, a_resume_without_a_pause_has_no_effect);
    tcase_add_test(tc, an_error_waits_behind_a_paused_batch);
    tcase_add_loop_test(tc, a_cancel_inside_on_batch_is_the_last_of_it, 0, 70);
    tcase_add_test(tc, a_cancel_while_paused_is_told_at_once);
    tcase_add_loop_test(tc, a_drop_inside_on_batch_is_silent, 0, 20);
    tcase_add_loop_test(
        tc, a_stream_dropped_in_the_callback_of_another_is_silent_at_once, 0,
        20);
    tcase_add_test(tc, a_drop_before_anything_came_is_silent);
    tcase_add_loop_test(
        tc, a_source_that_is_stuck_holds_up_neither_cancel_nor_close, 0, 2);
    tcase_add_loop_test(tc, an_interrupt_reaches_a_source_that_is_stuck, 0, 4);
    tcase_add_loop_test(
        tc, AP29_the_source_is_read_no_further_ahead_than_the_window, 1, 9);
    tcase_add_loop_test(
        tc, a_window_of_bytes_pauses_the_reader_and_lets_it_go_on, 0, 2);
    tcase_add_loop_test(tc, a_quick_source_runs_on_the_loop_and_ends, 0, 40);
    tcase_add_loop_test(
        tc, a_quick_source_is_not_read_ahead_while_others_have_their_turn, 1,
        40);
    tcase_add_test(tc, next_answers_once_a_call_and_repeats_the_end);
    tcase_add_test(tc, next_repeats_a_failure_with_its_text);
    tcase_add_loop_test(tc, next_is_told_of_a_cancel_and_a_close, 0, 2);
    tcase_add_test(tc, next_is_cancelled_with_its_last_holder_and_told_so);
    tcase_add_test(tc, next_that_is_dropped_is_not_answered);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
