/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime offers in every way of hosting: calls posted to its loop,
 * which loop and thread are its own, a fair budget for each turn, and counts of
 * what it holds. */
#include <check.h>
#include <pthread.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/recording_consumer.h"
#include "uvarrow/runtime.h"

enum { BATCHES = 5 };

static uv_loop_t loop;
static struct uva_runtime *rt;
static struct fake_source fake;
static struct recording_consumer consumer;
static atomic_int closings;

static void set_up(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    fake_source_init(&fake, BATCHES);
    recording_init(&consumer);
    atomic_store(&closings, 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    fake_source_fini(&fake);
}

static void count_closing(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&closings, 1);
}

static struct uva_stream *make_stream(bool on_loop)
{
    struct uva_blocking_source options = fake_source_options(&fake);
    struct ArrowArrayStream source;

    options.on_loop = on_loop;
    fake_source_plain(&fake, &source);
    return uva_stream_from_blocking_cpu(rt, &source, &options);
}

static void start_stream(void)
{
    recording_consume(&consumer, make_stream(false));
}

static void open_guest(void)
{
    ck_assert_int_eq(uva_runtime_open(&loop, NULL, &rt, NULL), 0);
}

static void close_guest(void)
{
    ck_assert_int_eq(uva_runtime_close(rt, 0, count_closing, NULL), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&closings), 1);
}

static pthread_t run_thread(void *(*run)(void *), void *ctx)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, run, ctx), 0);
    return thread;
}

static void never(void *ctx)
{
    (void)ctx;
    ck_abort_msg("called after the runtime began to close");
}

static void count_handle(uv_handle_t *handle, void *ctx)
{
    (void)handle;
    ++*(int *)ctx;
}

/* ---- posts -------------------------------------------------------------- */

enum { POSTERS = 4, POSTS = 500 };

static int post_next[POSTERS];
static atomic_long posts_seen;

static void in_order(void *ctx)
{
    uintptr_t tag = (uintptr_t)ctx;
    int poster = (int)(tag / POSTS), number = (int)(tag % POSTS);

    ck_assert(uva_runtime_on_loop(rt));
    ck_assert_int_eq(number, post_next[poster]);
    post_next[poster]++;
    atomic_fetch_add(&posts_seen, 1);
}

static void *post_many(void *ctx)
{
    uintptr_t poster = (uintptr_t)ctx;

    for (uintptr_t i = 0; i < POSTS; i++)
        ck_assert_int_eq(
            uva_runtime_post(rt, in_order, (void *)(poster * POSTS + i)), 0);
    return NULL;
}

static void reset_posts(void)
{
    memset(post_next, 0, sizeof(post_next));
    atomic_store(&posts_seen, 0);
}

START_TEST(posts_of_each_thread_come_in_their_order)
{
    pthread_t threads[POSTERS];

    reset_posts();
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &rt, NULL), 0);
    for (uintptr_t i = 0; i < POSTERS; i++)
        threads[i] = run_thread(post_many, (void *)i);
    for (int i = 0; i < POSTERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(uva_runtime_join(rt), 0);
    ck_assert_int_eq(atomic_load(&posts_seen), POSTERS * POSTS);
}
END_TEST

START_TEST(a_post_on_the_loop_thread_comes_later_and_keeps_the_loop_alive)
{
    reset_posts();
    open_guest();
    (void)post_many((void *)(uintptr_t)0);
    ck_assert_int_eq(atomic_load(&posts_seen), 0);
    ck_assert_int_eq(uv_loop_alive(&loop), 1);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(atomic_load(&posts_seen), POSTS);
    close_guest();
}
END_TEST

static bool inside_post;

static void post_inner(void *ctx)
{
    (void)ctx;
    ck_assert(!inside_post);
    count_closing(NULL);
}

static void post_outer(void *ctx)
{
    (void)ctx;
    inside_post = true;
    ck_assert_int_eq(uva_runtime_post(rt, post_inner, NULL), 0);
    inside_post = false;
}

START_TEST(a_post_from_a_post_is_not_called_inside_it)
{
    open_guest();
    ck_assert_int_eq(uva_runtime_post(rt, post_outer, NULL), 0);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(atomic_load(&closings), 1);
    atomic_store(&closings, 0);
    close_guest();
}
END_TEST

START_TEST(posts_are_called_before_a_close_and_refused_after_it)
{
    reset_posts();
    open_guest();
    (void)post_many((void *)(uintptr_t)0);
    ck_assert_int_eq(uva_runtime_close(rt, 0, count_closing, NULL), 0);
    ck_assert_int_eq(uva_runtime_post(rt, never, NULL), ESHUTDOWN);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&posts_seen), POSTS);
    ck_assert_int_eq(atomic_load(&closings), 1);
}
END_TEST

static void *is_elsewhere(void *ctx)
{
    *(bool *)ctx = uva_runtime_on_loop(rt);
    return NULL;
}

START_TEST(a_runtime_knows_its_loop_and_its_thread)
{
    bool elsewhere = true;

    open_guest();
    ck_assert_ptr_eq(uva_runtime_loop(rt), &loop);
    ck_assert(uva_runtime_on_loop(rt));
    ck_assert_int_eq(pthread_join(run_thread(is_elsewhere, &elsewhere), NULL),
                     0);
    ck_assert(!elsewhere);
    ck_assert_int_eq(uva_runtime_fd(rt), -1);
    ck_assert(!uva_runtime_turn(rt));
    close_guest();
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &rt, NULL), 0);
    ck_assert_ptr_nonnull(uva_runtime_loop(rt));
    ck_assert_ptr_ne(uva_runtime_loop(rt), &loop);
    ck_assert(!uva_runtime_on_loop(rt));
    ck_assert_int_eq(uva_runtime_fd(rt), -1);
    ck_assert_int_eq(uva_runtime_join(rt), 0);
}
END_TEST

/* ---- turns and counts --------------------------------------------------- */

/* Counts the rounds of the loop between one batch and the next. */
static struct {
    uv_check_t check;
    int rounds;
    int at_last;      /* at the last batch */
    int side_by_side; /* batches in the same round as the one before */
    int64_t ahead;    /* the first batch waits until so many are read */
} rounds;

static void count_round(uv_check_t *check)
{
    (void)check;
    rounds.rounds++;
}

static void note_round(struct recording_consumer *o, struct uva_batch *batch)
{
    (void)batch;
    if (atomic_load(&o->batches) > 1)
        rounds.side_by_side += rounds.at_last == rounds.rounds;
    else
        await_count(&fake.given, rounds.ahead);
    rounds.at_last = rounds.rounds;
}

static void run_counting_rounds(int32_t turn_batches, bool on_loop)
{
    const struct uva_runtime_options options = {.turn_batches = turn_batches,
                                                .turn_us = 1000000};

    memset(&rounds, 0, sizeof(rounds));
    fake.batches = 64;
    rounds.ahead = on_loop ? 1 : 64;
    consumer.on_batch = note_round;
    ck_assert_int_eq(uv_check_init(&loop, &rounds.check), 0);
    ck_assert_int_eq(uv_check_start(&rounds.check, count_round), 0);
    uv_unref((uv_handle_t *)&rounds.check);
    ck_assert_int_eq(uva_runtime_open(&loop, &options, &rt, NULL), 0);
    recording_consume(&consumer, make_stream(on_loop));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&consumer.batches), 64);
    await_count(&fake.freed, 1);
    uv_close((uv_handle_t *)&rounds.check, NULL);
    close_guest();
}

START_TEST(with_a_budget_of_one_the_loop_comes_round_between_batches)
{
    run_counting_rounds(1, false);
    ck_assert_int_le(rounds.side_by_side, 1);
}
END_TEST

START_TEST(with_a_large_budget_batches_come_side_by_side)
{
    run_counting_rounds(1000, false);
    ck_assert_int_ge(rounds.side_by_side, 60);
}
END_TEST

START_TEST(a_quick_source_has_the_same_budget)
{
    run_counting_rounds(1, true);
    ck_assert_int_le(rounds.side_by_side, 1);
}
END_TEST

START_TEST(with_nothing_open_all_counts_are_zero)
{
    struct uva_runtime_stats stats;

    open_guest();
    uva_runtime_get_stats(rt, &stats);
    for (size_t i = 0; i < sizeof(stats) / sizeof(int64_t); i++)
        ck_assert_int_eq(((const int64_t *)&stats)[i], 0);
    start_stream();
    uva_runtime_get_stats(rt, &stats);
    ck_assert_int_eq(stats.streams_open, 1);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    await_count(&fake.freed, 1);
    uva_runtime_get_stats(rt, &stats);
    ck_assert_int_eq(stats.streams_open, 0);
    ck_assert_int_eq(stats.streams_held, 0);
    ck_assert_int_eq(stats.tasks_held, 0);
    ck_assert_int_eq(stats.calls_stuck, 0);
    ck_assert_int_eq(stats.peer_breaches, 0);
    ck_assert_int_eq(stats.late_calls, 0);
    ck_assert_int_gt(stats.turns, 0);
    close_guest();
    uva_runtime_get_stats(NULL, &stats);
    ck_assert_int_eq(stats.turns, 0);
}
END_TEST

START_TEST(another_version_of_libuv_is_refused)
{
    struct uva_runtime_options options = {.uv_version = uv_version() + 256};
    struct uva_error error = {0};
    int handles = 0;

    ck_assert_int_eq(uva_runtime_open(&loop, &options, &rt, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "libuv"));
    uv_walk(&loop, count_handle, &handles);
    ck_assert_int_eq(handles, 0);
    options.uv_version = uv_version();
    ck_assert_int_eq(uva_runtime_open(&loop, &options, &rt, NULL), 0);
    close_guest();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("runtime");

    tcase_add_test(c, posts_of_each_thread_come_in_their_order);
    tcase_add_test(
        c, a_post_on_the_loop_thread_comes_later_and_keeps_the_loop_alive);
    tcase_add_test(c, a_post_from_a_post_is_not_called_inside_it);
    tcase_add_test(c, posts_are_called_before_a_close_and_refused_after_it);
    tcase_add_test(c, a_runtime_knows_its_loop_and_its_thread);
    tcase_add_test(c,
                   with_a_budget_of_one_the_loop_comes_round_between_batches);
    tcase_add_test(c, with_a_large_budget_batches_come_side_by_side);
    tcase_add_test(c, a_quick_source_has_the_same_budget);
    tcase_add_test(c, with_nothing_open_all_counts_are_zero);
    tcase_add_test(c, another_version_of_libuv_is_refused);
    return suite_main("runtime", set_up, tear_down, c, NULL);
}
