/* SPDX-License-Identifier: Apache-2.0 */
/* The services of a runtime in every way of hosting: calls posted to its loop,
 * its loop and its thread, a fair budget for each turn, and counts of its
 * objects. */
#include <check.h>
#include <pthread.h>
#include <string.h>
#include <uv.h>

#include "loop/runtime_impl.h"
#include "support/check_suite.h"
#include "support/hosting_fixture.h"

enum { BATCHES = HOSTING_BATCHES };

static struct hosting_fixture h;

static void set_up(void)
{
    hosting_init(&h);
}

static void tear_down(void)
{
    hosting_fini(&h);
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

    ck_assert(uva_runtime_on_loop(h.rt));
    ck_assert_int_eq(number, post_next[poster]);
    post_next[poster]++;
    atomic_fetch_add(&posts_seen, 1);
}

static void *post_many(void *ctx)
{
    uintptr_t poster = (uintptr_t)ctx;

    for (uintptr_t i = 0; i < POSTS; i++)
        ck_assert_int_eq(
            uva_runtime_post(h.rt, in_order, (void *)(poster * POSTS + i)), 0);
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
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    for (uintptr_t i = 0; i < POSTERS; i++)
        threads[i] = hosting_thread(post_many, (void *)i);
    for (int i = 0; i < POSTERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    ck_assert_int_eq(atomic_load(&posts_seen), POSTERS * POSTS);
}
END_TEST

START_TEST(a_post_on_the_loop_thread_comes_later_and_keeps_the_loop_alive)
{
    reset_posts();
    hosting_open_embedded(&h);
    (void)post_many((void *)(uintptr_t)0);
    ck_assert_int_eq(atomic_load(&posts_seen), 0);
    ck_assert_int_eq(uv_loop_alive(&h.loop), 1);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(atomic_load(&posts_seen), POSTS);
    hosting_close_embedded(&h);
}
END_TEST

static bool inside_post;

static void post_inner(void *ctx)
{
    (void)ctx;
    ck_assert(!inside_post);
    hosting_on_closed(&h);
}

static void post_outer(void *ctx)
{
    (void)ctx;
    inside_post = true;
    ck_assert_int_eq(uva_runtime_post(h.rt, post_inner, NULL), 0);
    inside_post = false;
}

START_TEST(a_post_from_a_post_is_not_called_inside_it)
{
    hosting_open_embedded(&h);
    ck_assert_int_eq(uva_runtime_post(h.rt, post_outer, NULL), 0);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    atomic_store(&h.closings, 0);
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(posts_are_called_before_a_close_and_refused_after_it)
{
    reset_posts();
    hosting_open_embedded(&h);
    (void)post_many((void *)(uintptr_t)0);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    ck_assert_int_eq(uva_runtime_post(h.rt, never, NULL), ESHUTDOWN);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&posts_seen), POSTS);
    ck_assert_int_eq(atomic_load(&h.closings), 1);
}
END_TEST

static void *is_elsewhere(void *ctx)
{
    *(bool *)ctx = uva_runtime_on_loop(h.rt);
    return NULL;
}

START_TEST(a_runtime_knows_its_loop_and_its_thread)
{
    bool elsewhere = true;

    hosting_open_embedded(&h);
    ck_assert_ptr_eq(uva_runtime_loop(h.rt), &h.loop);
    ck_assert(uva_runtime_on_loop(h.rt));
    ck_assert_int_eq(
        pthread_join(hosting_thread(is_elsewhere, &elsewhere), NULL), 0);
    ck_assert(!elsewhere);
    ck_assert_int_eq(uva_runtime_fd(h.rt), -1);
    ck_assert(!uva_runtime_turn(h.rt));
    hosting_close_embedded(&h);
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    ck_assert_ptr_nonnull(uva_runtime_loop(h.rt));
    ck_assert_ptr_ne(uva_runtime_loop(h.rt), &h.loop);
    ck_assert(!uva_runtime_on_loop(h.rt));
    ck_assert_int_eq(uva_runtime_fd(h.rt), -1);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
}
END_TEST

/* ---- turns and counts --------------------------------------------------- */

/* Counts the iterations of the loop between one batch and the next. */
static struct {
    uv_check_t check;
    int rounds;
    int at_last;      /* the iteration of the last batch */
    int side_by_side; /* batches in the iteration of the batch before */
    int64_t ahead;    /* the first batch waits until this many have been read */
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
        await_count(&h.fake.given, rounds.ahead);
    rounds.at_last = rounds.rounds;
}

static void run_counting_rounds(int32_t turn_batches, bool on_loop)
{
    const struct uva_runtime_options options = {.turn_us = 1000000};

    memset(&rounds, 0, sizeof(rounds));
    h.fake.batches = 64;
    rounds.ahead = on_loop ? 1 : 64;
    h.consumer.on_batch = note_round;
    ck_assert_int_eq(uv_check_init(&h.loop, &rounds.check), 0);
    ck_assert_int_eq(uv_check_start(&rounds.check, count_round), 0);
    uv_unref((uv_handle_t *)&rounds.check);
    ck_assert_int_eq(uva_runtime_open(&h.loop, &options, &h.rt, NULL), 0);
    h.rt->turn_batches = turn_batches;
    recording_consume(&h.consumer, hosting_stream(&h, on_loop));
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(atomic_load(&h.consumer.batches), 64);
    await_count(&h.fake.freed, 1);
    uv_close((uv_handle_t *)&rounds.check, NULL);
    hosting_close_embedded(&h);
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

    hosting_open_embedded(&h);
    uva_runtime_get_stats(h.rt, &stats);
    for (size_t i = 0; i < sizeof(stats) / sizeof(int64_t); i++)
        ck_assert_int_eq(((const int64_t *)&stats)[i], 0);
    hosting_start_stream(&h);
    uva_runtime_get_stats(h.rt, &stats);
    ck_assert_int_eq(stats.streams_open, 1);
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    await_count(&h.fake.freed, 1);
    uva_runtime_get_stats(h.rt, &stats);
    ck_assert_int_eq(stats.streams_open, 0);
    ck_assert_int_eq(stats.streams_held, 0);
    ck_assert_int_eq(stats.tasks_held, 0);
    ck_assert_int_eq(stats.calls_stuck, 0);
    ck_assert_int_eq(stats.peer_breaches, 0);
    ck_assert_int_eq(stats.late_calls, 0);
    ck_assert_int_gt(stats.turns, 0);
    hosting_close_embedded(&h);
    uva_runtime_get_stats(NULL, &stats);
    ck_assert_int_eq(stats.turns, 0);
}
END_TEST

START_TEST(another_version_of_libuv_is_refused)
{
    struct uva_runtime_options options = {.uv_version = uv_version() + 256};
    struct uva_error error = {0};
    int handles = 0;

    ck_assert_int_eq(uva_runtime_open(&h.loop, &options, &h.rt, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "libuv"));
    uv_walk(&h.loop, count_handle, &handles);
    ck_assert_int_eq(handles, 0);
    options.uv_version = uv_version();
    ck_assert_int_eq(uva_runtime_open(&h.loop, &options, &h.rt, NULL), 0);
    hosting_close_embedded(&h);
}
END_TEST

int main(void)
{
    TCase *c = suite_tests(
        "runtime", posts_of_each_thread_come_in_their_order,
        a_post_on_the_loop_thread_comes_later_and_keeps_the_loop_alive,
        a_post_from_a_post_is_not_called_inside_it,
        posts_are_called_before_a_close_and_refused_after_it,
        a_runtime_knows_its_loop_and_its_thread,
        with_a_budget_of_one_the_loop_comes_round_between_batches,
        with_a_large_budget_batches_come_side_by_side,
        a_quick_source_has_the_same_budget,
        with_nothing_open_all_counts_are_zero,
        another_version_of_libuv_is_refused, NULL);
    return suite_main("runtime", set_up, tear_down, c, NULL);
}
