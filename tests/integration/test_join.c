/* SPDX-License-Identifier: Apache-2.0 */
/* uva_runtime_join() of a runtime that its host turns, and what it refuses. A
 * join of a runtime with a thread of its own is tested in test_hosting.c. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/hosting_fixture.h"

/* Without post, and with it. */
enum { TURNED, POSTED, WAYS };

static struct hosting_fixture h;
static atomic_int posts, late; /* calls of on_post(); those after the join */
static atomic_bool joined;     /* the join has returned */
static int refused;            /* the code of a join inside a callback */

static void on_post(void *ctx)
{
    ck_assert_ptr_eq(ctx, &h);
    atomic_fetch_add(&posts, 1);
    if (atomic_load(&joined))
        atomic_fetch_add(&late, 1);
}

static void set_up(void)
{
    hosting_init(&h);
    atomic_store(&posts, 0);
    atomic_store(&late, 0);
    atomic_store(&joined, false);
    refused = -1;
}

static void tear_down(void)
{
    hosting_fini(&h);
}

static void open_turned(int way)
{
    ck_assert_int_eq(uva_runtime_open_turned(way == POSTED ? on_post : NULL, &h,
                                             NULL, &h.rt, NULL),
                     0);
}

static void join(int64_t grace_ms)
{
    ck_assert_int_eq(uva_runtime_join(h.rt, grace_ms), 0);
    atomic_store(&joined, true);
}

/* ---- what it does ------------------------------------------------------- */

START_TEST(a_join_lets_the_streams_finish)
{
    open_turned(_i);
    hosting_start_stream(&h);
    join(UVA_FOREVER);
    hosting_completed(&h);
    ck_assert(pthread_equal(h.consumer.thread, pthread_self()));
    await_count(&h.fake.freed, 1);
    ck_assert_int_eq(atomic_load(&late), 0);
}
END_TEST

START_TEST(a_join_without_grace_cancels_the_streams)
{
    h.fake.gate_at = 0;
    open_turned(_i);
    hosting_start_stream(&h);
    while (!fake_source_is_waiting(&h.fake))
        ck_assert(uva_runtime_turn(h.rt));
    join(0);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 1);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* The source waits for its interrupt, which comes when the grace is over. */
START_TEST(a_join_ends_with_its_grace)
{
    h.fake.gate_at = 0;
    open_turned(_i);
    hosting_start_stream(&h);
    join(1);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
}
END_TEST

START_TEST(a_join_after_a_close_waits_for_its_callback)
{
    h.fake.gate_at = 0;
    open_turned(_i);
    hosting_start_stream(&h);
    ck_assert_int_eq(
        uva_runtime_close(h.rt, UVA_FOREVER, hosting_on_closed, &h), 0);
    for (int turns = 0; turns < 3; turns++)
        ck_assert(uva_runtime_turn(h.rt));
    ck_assert_int_eq(atomic_load(&h.closings), 0);
    join(0); /* the shorter grace */
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
}
END_TEST

static void *turn_and_join(void *ctx)
{
    ck_assert(uva_runtime_turn(h.rt));
    join(0);
    return ctx;
}

START_TEST(the_thread_of_the_last_turn_joins)
{
    open_turned(_i);
    ck_assert_int_eq(pthread_join(hosting_thread(turn_and_join, NULL), NULL),
                     0);
}
END_TEST

static void note_ring(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
    uv_close((uv_handle_t *)timer, NULL);
}

/* A join runs the whole loop, as a turn does. */
START_TEST(handles_of_the_host_are_called)
{
    uv_timer_t timer;
    bool rang = false;

    h.fake.gate_at = 0;
    open_turned(_i);
    hosting_start_stream(&h);
    (void)uv_timer_init(uva_runtime_loop(h.rt), &timer);
    timer.data = &rang;
    (void)uv_timer_start(&timer, note_ring, 1, 0);
    join(50);
    ck_assert(rang);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* The memory stays for the users that have acquired it. */
START_TEST(a_runtime_that_is_acquired_outlives_its_join)
{
    struct uva_runtime_stats stats;

    open_turned(_i);
    (void)uva_runtime_acquire(h.rt);
    join(UVA_FOREVER);
    uva_runtime_get_stats(h.rt, &stats);
    ck_assert_int_gt(stats.turns, 0);
    ck_assert_int_eq(uva_runtime_post(h.rt, hosting_on_closed, &h), ESHUTDOWN);
    uva_runtime_release(h.rt);
}
END_TEST

/* ---- what it refuses ---------------------------------------------------- */

static void *join_elsewhere(void *ctx)
{
    *(int *)ctx = uva_runtime_join(h.rt, 0);
    return NULL;
}

START_TEST(only_the_loop_thread_may_join)
{
    open_turned(_i);
    ck_assert_int_eq(
        pthread_join(hosting_thread(join_elsewhere, &refused), NULL), 0);
    ck_assert_int_eq(refused, EPERM);
    join(0);
}
END_TEST

static void join_inside(void *ctx)
{
    (void)ctx;
    refused = uva_runtime_join(h.rt, 0);
    ck_assert_int_eq(uva_runtime_turn(h.rt), UVA_TURN_IDLE);
}

START_TEST(a_posted_call_cannot_join)
{
    open_turned(_i);
    ck_assert_int_eq(uva_runtime_post(h.rt, join_inside, NULL), 0);
    ck_assert(uva_runtime_turn(h.rt));
    ck_assert_int_eq(refused, EDEADLK);
    join(0);
}
END_TEST

START_TEST(the_callback_of_the_close_cannot_join)
{
    open_turned(_i);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, join_inside, NULL), 0);
    while (uva_runtime_turn(h.rt))
        ;
    ck_assert_int_eq(refused, EDEADLK);
}
END_TEST

static void join_on_timer(uv_timer_t *timer)
{
    join_inside(NULL);
    uv_close((uv_handle_t *)timer, NULL);
}

START_TEST(a_handle_of_the_host_cannot_join)
{
    uv_timer_t timer;

    open_turned(_i);
    (void)uv_timer_init(uva_runtime_loop(h.rt), &timer);
    (void)uv_timer_start(&timer, join_on_timer, 0, 0);
    while (refused < 0)
        ck_assert(uva_runtime_turn(h.rt));
    ck_assert_int_eq(refused, EDEADLK);
    join(0);
}
END_TEST

START_TEST(a_callback_of_another_runtime_cannot_join)
{
    struct uva_runtime *other;

    open_turned(_i);
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &other, NULL),
                     0);
    ck_assert_int_eq(uva_runtime_post(other, join_inside, NULL), 0);
    (void)uva_runtime_turn(other);
    ck_assert_int_eq(refused, EDEADLK);
    ck_assert_int_eq(uva_runtime_join(other, 0), 0);
    join(0);
}
END_TEST

/* A negative time is no limit, but a mistake, in each call that ends. */
START_TEST(a_negative_time_is_refused)
{
    static const int64_t bad[] = {-1, INT64_MIN};

    open_turned(_i);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(uva_runtime_join(h.rt, bad[i]), EINVAL);
        ck_assert_int_eq(uva_runtime_close(h.rt, bad[i], NULL, NULL), EINVAL);
        ck_assert_int_eq(uva_runtime_drain(h.rt, bad[i], NULL, NULL), EINVAL);
    }
    join(0);
}
END_TEST

int main(void)
{
    TCase *joins = tcase_create("join"), *refuses = tcase_create("refused");

    suite_add_loops(
        joins, 0, WAYS, a_join_lets_the_streams_finish,
        a_join_without_grace_cancels_the_streams, a_join_ends_with_its_grace,
        a_join_after_a_close_waits_for_its_callback,
        the_thread_of_the_last_turn_joins, handles_of_the_host_are_called,
        a_runtime_that_is_acquired_outlives_its_join, NULL);
    suite_add_loops(refuses, 0, WAYS, only_the_loop_thread_may_join,
                    a_posted_call_cannot_join,
                    the_callback_of_the_close_cannot_join,
                    a_handle_of_the_host_cannot_join,
                    a_callback_of_another_runtime_cannot_join,
                    a_negative_time_is_refused, NULL);
    return suite_main("join", set_up, tear_down, joins, refuses, NULL);
}
