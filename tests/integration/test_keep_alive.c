/* SPDX-License-Identifier: Apache-2.0 */
/* uva_runtime_keep_alive(): with it a stream that runs does not keep the loop
 * of the host alive; a close, a drain and posted calls do. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/hosting_fixture.h"

static struct hosting_fixture h;
static int calls; /* of on_call() */

static void set_up(void)
{
    hosting_init(&h);
    calls = 0;
}

static void tear_down(void)
{
    hosting_fini(&h);
}

static void run_loop(void)
{
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
}

/* Runs the loop until the stream has ended, with a handle that keeps it alive.
 */
static void run_beside_another_handle(void)
{
    uv_async_t other;

    ck_assert_int_eq(uv_async_init(&h.loop, &other, NULL), 0);
    while (atomic_load(&h.consumer.done) == 0)
        (void)uv_run(&h.loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&other, NULL);
    (void)uv_run(&h.loop, UV_RUN_NOWAIT);
}

/* Starts a stream that waits at its first batch, and lets it go. */
static void start_waiting(void)
{
    h.fake.gate_at = 0;
    hosting_open_embedded(&h);
    uva_runtime_keep_alive(h.rt, false);
    hosting_start_stream(&h);
}

static void on_call(void *ctx)
{
    (void)ctx;
    calls++;
}

/* ---- streams ------------------------------------------------------------ */

START_TEST(a_loop_ends_while_a_stream_runs)
{
    start_waiting();
    run_loop();
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    fake_source_open_gate(&h.fake);
    uva_runtime_keep_alive(h.rt, true);
    run_loop();
    hosting_completed(&h);
    await_count(&h.fake.freed, 1);
    hosting_close_embedded(&h);
}
END_TEST

/* It is not lost for the loop that something else keeps alive. */
START_TEST(a_stream_that_was_let_go_goes_on)
{
    start_waiting();
    fake_source_open_gate(&h.fake);
    run_beside_another_handle();
    hosting_completed(&h);
    await_count(&h.fake.freed, 1);
    hosting_close_embedded(&h);
}
END_TEST

static void let_go(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)batch;
    if (atomic_load(&c->batches) == 2)
        uva_runtime_keep_alive(h.rt, false);
}

START_TEST(a_callback_may_let_the_loop_end)
{
    h.fake.gate_at = 3;
    h.consumer.on_batch = let_go;
    hosting_open_embedded(&h);
    hosting_start_stream(&h);
    run_loop();
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    ck_assert_int_ge(atomic_load(&h.consumer.batches), 2);
    hosting_close_embedded(&h);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
}
END_TEST

START_TEST(a_stream_that_starts_later_is_let_go_as_well)
{
    start_waiting();
    run_loop();
    fake_source_open_gate(&h.fake);
    run_beside_another_handle();
    await_count(&h.fake.freed, 1);
    atomic_store(&h.fake.given, 0);
    recording_init(&h.consumer);
    hosting_start_stream(&h);
    run_loop();
    uva_runtime_keep_alive(h.rt, true);
    run_loop();
    hosting_completed(&h);
    await_count(&h.fake.freed, 2);
    hosting_close_embedded(&h);
}
END_TEST

/* Without a stream there is nothing that a loop could be kept alive for. */
START_TEST(an_idle_runtime_keeps_no_loop_alive)
{
    hosting_open_embedded(&h);
    uva_runtime_keep_alive(h.rt, _i == 1);
    run_loop();
    hosting_close_embedded(&h);
}
END_TEST

/* A turn that was cut short is work of streams, and is not forgotten. */
START_TEST(a_turn_that_was_cut_short_goes_on_later)
{
    const struct uva_runtime_options hasty = {.turn_us = 1};

    ck_assert_int_eq(uva_runtime_open(&h.loop, &hasty, &h.rt, NULL), 0);
    h.consumer.on_batch = let_go;
    hosting_start_stream(&h);
    for (int runs = 0; atomic_load(&h.consumer.done) == 0; runs++) {
        run_loop();
        uva_runtime_keep_alive(h.rt, runs % 2 == 0);
    }
    hosting_completed(&h);
    await_count(&h.fake.freed, 1);
    hosting_close_embedded(&h);
}
END_TEST

/* ---- what keeps the loop alive in either case --------------------------- */

START_TEST(a_close_keeps_the_loop_alive)
{
    start_waiting();
    run_loop();
    hosting_close_embedded(&h);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 1);
    await_count(&h.fake.freed, 1);
}
END_TEST

START_TEST(a_loop_cannot_be_let_go_during_a_close)
{
    start_waiting();
    uva_runtime_keep_alive(h.rt, true);
    ck_assert_int_eq(uva_runtime_close(h.rt, 10, hosting_on_closed, &h), 0);
    uva_runtime_keep_alive(h.rt, false);
    run_loop();
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    await_count(&h.fake.freed, 1);
}
END_TEST

START_TEST(a_drain_keeps_the_loop_alive)
{
    start_waiting();
    ck_assert_int_eq(uva_runtime_drain(h.rt, 10, on_call, NULL), 0);
    run_loop();
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
    hosting_close_embedded(&h);
}
END_TEST

START_TEST(posted_calls_keep_the_loop_alive)
{
    start_waiting();
    ck_assert_int_eq(uva_runtime_post(h.rt, on_call, NULL), 0);
    run_loop();
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(
        uva_runtime_run(h.rt, UVA_LANE_BLOCKING, on_call, on_call, NULL), 0);
    run_loop();
    ck_assert_int_eq(calls, 3);
    ck_assert_int_eq(atomic_load(&h.consumer.done), 0);
    hosting_close_embedded(&h);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* ---- no effect ---------------------------------------------------------- */

START_TEST(other_runtimes_are_not_changed)
{
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &h.rt, NULL), 0);
    uva_runtime_keep_alive(h.rt, false);
    hosting_start_stream(&h);
    ck_assert_int_eq(uva_runtime_join(h.rt, UVA_FOREVER), 0);
    hosting_completed(&h);
    await_count(&h.fake.freed, 1);
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &h.rt, NULL), 0);
    uva_runtime_keep_alive(h.rt, false);
    ck_assert_int_eq(uva_runtime_join(h.rt, 0), 0);
    uva_runtime_keep_alive(NULL, true);
}
END_TEST

/* A finalizer may come late. */
START_TEST(a_runtime_that_has_closed_is_not_changed)
{
    hosting_open_embedded(&h);
    (void)uva_runtime_acquire(h.rt);
    hosting_close_embedded(&h);
    uva_runtime_keep_alive(h.rt, true);
    uva_runtime_keep_alive(h.rt, false);
    uva_runtime_release(h.rt);
}
END_TEST

int main(void)
{
    TCase *streams = tcase_create("streams"), *kept = tcase_create("kept"),
          *others = tcase_create("no effect");

    suite_add(streams, a_loop_ends_while_a_stream_runs,
              a_stream_that_was_let_go_goes_on, a_callback_may_let_the_loop_end,
              a_stream_that_starts_later_is_let_go_as_well,
              a_turn_that_was_cut_short_goes_on_later, NULL);
    suite_add_loops(streams, 0, 2, an_idle_runtime_keeps_no_loop_alive, NULL);
    suite_add(kept, a_close_keeps_the_loop_alive,
              a_loop_cannot_be_let_go_during_a_close,
              a_drain_keeps_the_loop_alive, posted_calls_keep_the_loop_alive,
              NULL);
    suite_add(others, other_runtimes_are_not_changed,
              a_runtime_that_has_closed_is_not_changed, NULL);
    return suite_main("keep alive", set_up, tear_down, streams, kept, others,
                      NULL);
}
