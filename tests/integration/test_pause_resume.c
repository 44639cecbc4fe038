/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_pause() and uva_stream_resume(): what waits, and what does not.
 * test_consuming has pauses by EAGAIN alone, tests/model/test_pause.c all
 * orders of the calls of several threads. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/push_fixture.h"

static struct fixture f;      /* in the tests of sources that read */
static struct push_fixture p; /* in all others */

/* Time passes for the library only as a test lets it, so that no limit passes
 * because this machine is slow. */
static atomic_bool stands_still;
static atomic_ullong stood_ns;

uint64_t __real_uva__clock_ns(void);
uint64_t __wrap_uva__clock_ns(void);

uint64_t __wrap_uva__clock_ns(void)
{
    return atomic_load(&stands_still) ? (uint64_t)atomic_load(&stood_ns)
                                      : __real_uva__clock_ns();
}

static void stand_still(void)
{
    atomic_store(&stood_ns, __real_uva__clock_ns());
    atomic_store(&stands_still, true);
}

/* The timers of libuv have their own clock. */
static void pass(int64_t ms)
{
    loop_pass(&f.loop, ms);
    atomic_fetch_add(&stood_ns, (unsigned long long)ms * 1000000);
}

static void tear_down(void)
{
    if (p.loop.runtime != NULL)
        push_close(&p);
    fixture_close(&f);
    atomic_store(&stands_still, false);
}

/* Starts the stream, which requests a batch, and there is none. */
static void start(void)
{
    push_open(&p, 0, 0);
    push_start(&p);
    push_settles(&p, "schema");
}

static void end_with(int code, const char *text)
{
    struct uva_error error = {0};

    (void)uva_error_set(&error, code, "%s", text);
    uva_pusher_close(p.pusher, &error, NULL);
    p.pusher = NULL;
}

/* ---- batches ------------------------------------------------------------ */

START_TEST(a_pause_before_the_start_holds_all_batches)
{
    push_open(&p, 0, 0);
    push_batches(&p, 1, 3);
    uva_stream_pause(p.stream);
    push_start(&p);
    push_settles(&p, "schema");
    uva_stream_resume(p.stream);
    push_settles(&p, "schema 1 2 3");
}
END_TEST

START_TEST(a_resume_before_the_start_takes_its_pause_back)
{
    push_open(&p, 0, 0);
    push_batches(&p, 1, 2);
    uva_stream_pause(p.stream);
    uva_stream_resume(p.stream);
    push_start(&p);
    push_settles(&p, "schema 1 2");
}
END_TEST

START_TEST(a_batch_that_was_requested_before_the_pause_waits)
{
    start();
    uva_stream_pause(p.stream);
    push_batches(&p, 1, 2);
    push_settles(&p, "schema");
    uva_stream_resume(p.stream);
    push_settles(&p, "schema 1 2");
    ck_assert_int_eq(p.consumer.batches, 2);
}
END_TEST

START_TEST(the_last_of_several_calls_counts)
{
    start();
    uva_stream_pause(p.stream);
    uva_stream_pause(p.stream);
    uva_stream_resume(p.stream);
    push_batches(&p, 1, 1);
    push_settles(&p, "schema 1");
    uva_stream_resume(p.stream);
    uva_stream_resume(p.stream);
    uva_stream_pause(p.stream);
    push_batches(&p, 2, 2);
    push_settles(&p, "schema 1");
    loop_settle(&p.loop);
    uva_stream_resume(p.stream);
    push_settles(&p, "schema 1 2");
}
END_TEST

/* What on_batch does with the first batch: p pauses, r resumes; and then E
 * returns EAGAIN. */
static const char *acts;

static void act(struct recording_consumer *c, struct uva_batch *batch)
{
    if (batch->ordinal > 0)
        return;
    for (const char *at = acts; *at != '\0'; at++) {
        if (*at == 'p')
            uva_stream_pause(batch->stream);
        else if (*at == 'r')
            uva_stream_resume(batch->stream);
        else
            c->answer = EAGAIN;
    }
}

START_TEST(in_on_batch_the_last_call_counts_and_EAGAIN_comes_first)
{
    static const struct {
        const char *acts;
        bool pauses;
    } cases[] = {{"", false},   {"E", true},   {"p", true},    {"r", false},
                 {"rE", false}, {"pE", true},  {"pr", false},  {"prE", false},
                 {"rp", true},  {"rpE", true}, {"rprE", false}};

    acts = cases[_i].acts;
    start();
    p.consumer.on_batch = act;
    push_batches(&p, 1, 2);
    push_settles(&p, cases[_i].pauses ? "schema 1" : "schema 1 2");
    uva_stream_resume(p.stream);
    push_settles(&p, "schema 1 2");
}
END_TEST

static void *pause_it(void *ctx)
{
    uva_stream_pause(ctx);
    return NULL;
}

static void *resume_it(void *ctx)
{
    uva_stream_resume(ctx);
    return NULL;
}

static void elsewhere(void *(*call)(void *))
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, call, p.stream), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* A pause counts once its call has returned, before the loop had a turn. */
START_TEST(other_threads_pause_and_resume_it)
{
    start();
    push_batches(&p, 1, 1);
    elsewhere(pause_it);
    push_settles(&p, "schema");
    elsewhere(resume_it);
    push_settles(&p, "schema 1");
    elsewhere(pause_it);
    push_batches(&p, 2, 2);
    push_settles(&p, "schema 1");
    elsewhere(resume_it);
    push_settles(&p, "schema 1 2");
}
END_TEST

/* ---- what does not wait ------------------------------------------------- */

START_TEST(the_end_is_told_while_it_is_paused)
{
    start();
    uva_stream_pause(p.stream);
    loop_settle(&p.loop);
    if (_i == 0)
        push_end(&p);
    else
        end_with(EIO, "cut");
    push_ends(&p, _i == 0 ? "schema complete" : "schema failed");
}
END_TEST

START_TEST(the_end_of_a_stream_without_a_request_is_told)
{
    push_open(&p, 0, 0);
    uva_stream_pause(p.stream);
    push_end(&p);
    push_start(&p);
    push_ends(&p, "schema complete");
}
END_TEST

START_TEST(the_end_waits_behind_a_batch_that_waits)
{
    start();
    uva_stream_pause(p.stream);
    push_batches(&p, 1, 1);
    if (_i == 0)
        push_end(&p);
    else
        end_with(EIO, "cut");
    push_settles(&p, "schema");
    uva_stream_resume(p.stream);
    push_ends(&p, _i == 0 ? "schema 1 complete" : "schema 1 failed");
}
END_TEST

/* The last batch is taken with EAGAIN: there is no need to resume. */
START_TEST(the_end_behind_the_batch_of_a_pause_is_told)
{
    push_open(&p, 0, 0);
    push_batches(&p, 1, 2);
    push_end(&p);
    p.consumer.appetite = 2;
    push_start(&p);
    push_ends(&p, "schema 1 2 complete");
    ck_assert_int_eq(p.consumer.outcome.batches, 2);
}
END_TEST

START_TEST(a_cancel_is_told_while_a_batch_waits)
{
    start();
    uva_stream_pause(p.stream);
    push_batches(&p, 1, 1);
    push_settles(&p, "schema");
    uva_stream_cancel(p.stream, 0, NULL);
    push_ends(&p, "schema cancelled gone");
}
END_TEST

START_TEST(a_drop_while_a_batch_waits_is_silent)
{
    start();
    uva_stream_pause(p.stream);
    push_batches(&p, 1, 1);
    loop_settle(&p.loop);
    p.consumer.silent = true;
    uva_stream_drop(p.stream);
    p.stream = NULL;
    push_settles(&p, "schema gone");
}
END_TEST

START_TEST(a_close_ends_a_stream_that_is_paused)
{
    start();
    uva_stream_pause(p.stream);
    push_batches(&p, 1, 1);
    loop_close_runtime(&p.loop, 0);
    ck_assert_str_eq(p.consumer.transcript, "schema cancelled gone");
    uva_stream_pause(p.stream); /* allowed after the close, too */
    uva_stream_resume(p.stream);
    uva_stream_cancel(p.stream, 0, NULL);
    push_end(&p);
    push_release(&p);
    loop_close(&p.loop);
    p.loop.runtime = NULL;
}
END_TEST

START_TEST(calls_for_no_stream_and_after_the_end_have_no_effect)
{
    uva_stream_pause(NULL);
    uva_stream_resume(NULL);
    uva_stream_cancel(NULL, 0, NULL);
    start();
    push_end(&p);
    push_ends(&p, "schema complete");
    uva_stream_pause(p.stream);
    uva_stream_resume(p.stream);
    push_settles(&p, "schema complete");
}
END_TEST

/* ---- other consumers ---------------------------------------------------- */

static int64_t collected;

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    (void)ctx;
    (void)info;
    (void)batches;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    collected = (int64_t)count;
}

static bool is_collected(void *ctx)
{
    (void)ctx;
    return collected > 0;
}

START_TEST(a_consumer_that_requests_by_itself_is_not_paused)
{
    fixture_open(&f, 20);
    f.stream = fixture_blocking(&f);
    uva_stream_pause(f.stream);
    collected = 0;
    ck_assert_int_eq(uva_stream_collect(f.stream, 0, on_collected, NULL, NULL),
                     0);
    uva_stream_pause(f.stream);
    loop_until(&f.loop, is_collected, NULL);
    ck_assert_int_eq(collected, 20);
}
END_TEST

/* ---- time and statistics ------------------------------------------------ */

static void open_with_request(void)
{
    fixture_open_with(&f, 3, &(struct uva_runtime_options){.measure = true});
    f.fake.gate_at = 0;
    f.stream = fixture_blocking(&f);
}

START_TEST(time_in_which_it_is_paused_does_not_count)
{
    const struct uva_timeout limits = {.between_ms = 40};

    stand_still();
    open_with_request();
    uva_stream_timeout(f.stream, &limits);
    fixture_start(&f);
    fixture_await_gate(&f);
    loop_settle(&f.loop); /* the wait for a batch has begun */
    uva_stream_pause(f.stream);
    loop_settle(&f.loop);
    pass(60);
    for (int i = 0; i < 50; i++) /* more than a limit that passes needs */
        loop_settle(&f.loop);
    ck_assert_int_eq(f.got.done, 0);
    if (_i == 0) {
        fake_source_open_gate(&f.fake);
        uva_stream_resume(f.stream);
        ck_assert_int_eq(fixture_await(&f), 0);
        return;
    }
    uva_stream_resume(f.stream);
    loop_settle(&f.loop);
    pass(60);
    ck_assert_int_eq(fixture_await(&f), ETIMEDOUT);
    fake_source_open_gate(&f.fake);
}
END_TEST

START_TEST(a_batch_that_waits_counts_as_idle_time)
{
    struct uva_stage_stats stats;
    size_t count = 1;

    open_with_request();
    fixture_start(&f);
    fixture_await_gate(&f);
    uva_stream_pause(f.stream);
    fake_source_open_gate(&f.fake);
    await_count(&f.fake.given, 3);
    loop_settle(&f.loop);
    loop_pass(&f.loop, 30);
    ck_assert_int_eq(uva_stream_get_stats(f.stream, &stats, &count), 0);
    ck_assert_int_eq(stats.waiting, UVA_WAITING_CONSUMER);
    ck_assert_int_eq(f.got.batches, 0);
    uva_stream_resume(f.stream);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(uva_stream_get_stats(f.stream, &stats, &count), 0);
    ck_assert_int_ge(stats.idle_ns, 20000000);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pause and resume");

    tcase_set_timeout(tc, 60);
    suite_add(tc, a_pause_before_the_start_holds_all_batches,
              a_resume_before_the_start_takes_its_pause_back,
              a_batch_that_was_requested_before_the_pause_waits,
              the_last_of_several_calls_counts,
              other_threads_pause_and_resume_it,
              the_end_of_a_stream_without_a_request_is_told,
              the_end_behind_the_batch_of_a_pause_is_told,
              a_cancel_is_told_while_a_batch_waits,
              a_drop_while_a_batch_waits_is_silent,
              a_close_ends_a_stream_that_is_paused,
              calls_for_no_stream_and_after_the_end_have_no_effect,
              a_consumer_that_requests_by_itself_is_not_paused,
              a_batch_that_waits_counts_as_idle_time, NULL);
    tcase_add_loop_test(
        tc, in_on_batch_the_last_call_counts_and_EAGAIN_comes_first, 0, 11);
    tcase_add_loop_test(tc, the_end_is_told_while_it_is_paused, 0, 2);
    tcase_add_loop_test(tc, the_end_waits_behind_a_batch_that_waits, 0, 2);
    tcase_add_loop_test(tc, time_in_which_it_is_paused_does_not_count, 0, 2);
    return suite_main("pause_resume", NULL, tear_down, tc, NULL);
}
