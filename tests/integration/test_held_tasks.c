/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that a driven handler holds for long: they keep the loop alive while
 * the stream is open. */
#include <check.h>
#include <sched.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"

enum { TASKS = 3, ROUNDS = 100 };

static struct fixture f;
static struct recording_handler handler;
static struct uva_drive options;

/* Drives a handler that requests all batches, and keeps their tasks. */
static void drive(struct uva_stream *stream)
{
    struct uva_error error = {0};

    recording_handler_init(&handler, TASKS, 0);
    handler.hold = true;
    f.stream = stream;
    ck_assert_msg(
        uva_stream_drive(stream, &handler.handler, &options, &error) == 0, "%s",
        error.message);
}

static void set_up(void)
{
    fixture_open(&f, TASKS);
    options = (struct uva_drive){.on_done = recording_on_done, .ctx = &f.got};
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(f.got.done, !f.got.silent);
    ck_assert(handler.released);
    recording_handler_fini(&handler);
}

static void turn(void)
{
    (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    (void)sched_yield();
}

static void turn_until_seen(const char *word)
{
    while (!recording_handler_saw(&handler, word))
        turn();
}

/* Runs the loop as a program does that waits for its streams. */
static void run_until_nothing_is_left(void)
{
    uv_unref((uv_handle_t *)&f.loop.keep);
    (void)uv_run(&f.loop.uv, UV_RUN_DEFAULT);
    uv_ref((uv_handle_t *)&f.loop.keep);
}

/* ---- the loop stays alive ----------------------------------------------- */

/* Runs in every round of the loop, and does not keep the loop alive. */
struct rounds {
    uv_idle_t idle;
    int left; /* rounds until the tasks are extracted */
};

static void extract_held(void)
{
    for (int64_t i = 0; i < handler.held_count; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
}

static void round_end(uv_idle_t *idle)
{
    struct rounds *rounds = idle->data;

    if (recording_handler_saw(&handler, "end") && --rounds->left == 0)
        extract_held();
}

START_TEST(the_loop_runs_until_the_handler_is_released)
{
    struct rounds rounds = {.left = ROUNDS};

    drive(fixture_tasks(&f));
    ck_assert_int_eq(uv_idle_init(&f.loop.uv, &rounds.idle), 0);
    rounds.idle.data = &rounds;
    ck_assert_int_eq(uv_idle_start(&rounds.idle, round_end), 0);
    uv_unref((uv_handle_t *)&rounds.idle);
    run_until_nothing_is_left();
    uv_close((uv_handle_t *)&rounds.idle, NULL);
    turn();
    ck_assert_str_eq(handler.transcript, "schema task task task end release");
    ck_assert_int_eq(f.got.done, 1);
    ck_assert_int_eq(handler.rows, 9);
}
END_TEST

/* A handler that was released may hold tasks that cannot fail: no stream is
 * open any more. */
START_TEST(tasks_of_an_ended_stream_do_not_keep_the_loop_alive)
{
    drive(fixture_blocking(&f));
    run_until_nothing_is_left();
    ck_assert_str_eq(handler.transcript, "schema task task task end release");
    ck_assert_int_eq(f.got.done, 1);
    extract_held();
}
END_TEST

START_TEST(a_cancel_between_two_runs_of_the_loop_ends_the_stream)
{
    drive(fixture_tasks(&f));
    turn_until_seen("end");
    ck_assert(!handler.released);
    uva_stream_cancel(f.stream, 0, "seen enough");
    run_until_nothing_is_left();
    ck_assert_int_eq(f.got.done, 1);
    ck_assert(handler.released);
    loop_close_runtime(&f.loop, 0);
    for (int64_t i = 0; i < TASKS; i++)
        uva_task_discard(&handler.held[i]);
}
END_TEST

int main(void)
{
    TCase *alive =
        suite_tests("alive", the_loop_runs_until_the_handler_is_released,
                    a_cancel_between_two_runs_of_the_loop_ends_the_stream,
                    tasks_of_an_ended_stream_do_not_keep_the_loop_alive, NULL);

    return suite_main("held_tasks", set_up, tear_down, alive, NULL);
}
