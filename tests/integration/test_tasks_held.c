/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics tasks_held and tasks_revoked: the tasks of the handlers of
 * uva_stream_drive(), at any time. Not the batches that streams have read ahead
 * or that are being discarded. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"

enum { BATCHES = 100, TASKS = 3 };

static struct fixture f;
static struct recording_handler handler;
static struct uva_drive options;
static int64_t in_callback; /* tasks_held in the last on_next_task */
static bool closed;

static int64_t held(void)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(f.loop.runtime, &stats);
    return stats.tasks_held;
}

static int64_t revoked(void)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(f.loop.runtime, &stats);
    return stats.tasks_revoked;
}

/* Does not wait: the event may come from another thread. */
static void turn(void)
{
    (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    (void)sched_yield();
}

static void note_held(struct recording_handler *h)
{
    (void)h;
    in_callback = held();
}

static void set_up(void)
{
    fixture_open(&f, BATCHES);
    options = (struct uva_drive){.on_done = recording_on_done, .ctx = &f.got};
    recording_handler_init(&handler, TASKS, 0);
    handler.hold = true;
    handler.on_task = note_held;
}

static void tear_down(void)
{
    fixture_close(&f);
    recording_handler_fini(&handler);
}

static struct uva_stream *source(bool lazy)
{
    return lazy ? fixture_tasks(&f) : fixture_blocking(&f);
}

/* Drives the handler until it has the tasks that it has requested. */
static void drive(struct uva_stream *stream)
{
    struct uva_error error = {0};

    f.stream = stream;
    ck_assert_msg(
        uva_stream_drive(stream, &handler.handler, &options, &error) == 0, "%s",
        error.message);
    while (recording_handler_tasks(&handler) < TASKS)
        turn();
    loop_settle(&f.loop);
}

static void extract(int64_t i)
{
    ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]), 0);
}

static void extract_elsewhere(int64_t i)
{
    ck_assert_int_eq(
        recording_handler_extract_elsewhere(&handler, &handler.held[i]), 0);
}

static void discard(int64_t i)
{
    struct ArrowAsyncTask *task = &handler.held[i];

    ck_assert_int_eq(task->extract_data(task, NULL), 0);
}

static void cancel(void)
{
    uva__consumer_state_note_cancel(&handler.rules, ECANCELED);
    uva__consumer_state_note_cancel_delivered(&handler.rules);
    handler.handler.producer->cancel(handler.handler.producer);
    while (!recording_handler_is_released(&handler))
        turn();
}

static void on_closed(void *ctx)
{
    *(int64_t *)ctx = revoked();
    ck_assert_int_eq(held(), 0);
    closed = true;
    f.loop.runtime = NULL;
}

static bool is_closed(void *ctx)
{
    (void)ctx;
    return closed;
}

/* Closes at once. Returns tasks_revoked, as the closed callback reads it. */
static int64_t close_runtime(void)
{
    int64_t count = -1;

    closed = false;
    ck_assert_int_eq(uva_runtime_close(f.loop.runtime, 0, on_closed, &count),
                     0);
    loop_until(&f.loop, is_closed, NULL);
    return count;
}

/* No turn of the loop comes between an extraction and the count. */
START_TEST(each_extraction_is_counted_at_once_on_any_thread)
{
    drive(source(_i == 1));
    ck_assert_int_eq(in_callback, TASKS);
    ck_assert_int_eq(held(), TASKS);
    extract(0);
    ck_assert_int_eq(held(), 2);
    extract_elsewhere(1);
    ck_assert_int_eq(held(), 1);
    discard(2);
    ck_assert_int_eq(held(), 0);
    cancel();
    ck_assert_int_eq(held(), 0);
    ck_assert_int_eq(revoked(), 0);
}
END_TEST

START_TEST(what_was_read_ahead_is_not_counted_when_it_is_discarded)
{
    drive(source(_i == 1));
    cancel();
    ck_assert_int_eq(held(), TASKS);
    loop_settle(&f.loop);
    ck_assert_int_eq(held(), TASKS);
    for (int64_t i = 0; i < TASKS; i++)
        extract(i);
    ck_assert_int_eq(held(), 0);
}
END_TEST

START_TEST(an_extraction_that_fails_ends_the_count)
{
    f.fake.extract_at = 1;
    drive(fixture_tasks(&f));
    ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[1]),
                     EIO);
    ck_assert_int_eq(held(), 2);
    extract(0);
    extract(2);
    ck_assert_int_eq(held(), 0);
}
END_TEST

/* Refused in the last of the tasks, which it has not extracted. */
START_TEST(a_task_that_is_refused_is_neither_held_nor_revoked)
{
    handler.task_code = EDOM;
    handler.task_code_at = TASKS - 1;
    drive(source(_i == 1));
    ck_assert_int_eq(in_callback, TASKS);
    ck_assert_int_eq(held(), TASKS - 1);
    ck_assert_int_eq(revoked(), 0);
    extract(0);
    extract(1);
    ck_assert_int_eq(held(), 0);
}
END_TEST

START_TEST(a_drop_revokes_what_is_held)
{
    drive(source(_i == 1));
    extract(0);
    fixture_drop(&f);
    loop_settle(&f.loop);
    ck_assert_int_eq(held(), 0);
    ck_assert_int_eq(revoked(), 2);
    ck_assert_int_eq(close_runtime(), 2);
}
END_TEST

START_TEST(a_close_tells_how_many_it_has_revoked)
{
    drive(source(_i == 1));
    extract(2);
    ck_assert_int_eq(close_runtime(), 2);
    discard(0);
    discard(1);
}
END_TEST

/* Our own consumers have no user's handler. */
START_TEST(tasks_of_our_own_consumers_are_not_counted)
{
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_parallel(f.stream, NULL), 0);
    fixture_start(&f);
    while (f.got.taken < BATCHES / 2) {
        turn();
        ck_assert_int_eq(held(), 0);
    }
}
END_TEST

/* ---- on a worker ----------------------------------------------------------
 */

static sem_t entered, leave;

static void block(struct recording_handler *h)
{
    note_held(h);
    ck_assert_int_eq(sem_post(&entered), 0);
    while (sem_wait(&leave) != 0)
        ;
}

static void drive_on_worker(void)
{
    ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&leave, 0, 0), 0);
    handler.on_task = block;
    options.on_worker = true;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_drive(f.stream, &handler.handler, &options, NULL), 0);
    while (sem_trywait(&entered) != 0)
        turn();
    loop_settle(&f.loop);
}

/* The handler is inside its first task, and others wait to be passed on. */
START_TEST(what_waits_for_a_slow_handler_is_not_counted)
{
    drive_on_worker();
    ck_assert_int_eq(in_callback, 1);
    ck_assert_int_eq(held(), 1);
    for (int i = 0; i < TASKS; i++)
        ck_assert_int_eq(sem_post(&leave), 0);
    while (recording_handler_tasks(&handler) < TASKS)
        turn();
    extract_elsewhere(0);
    extract_elsewhere(1);
    extract_elsewhere(2);
    ck_assert_int_eq(held(), 0);
}
END_TEST

/* A drop takes back the handler's tasks, and the tasks that wait for it. */
START_TEST(what_waits_for_a_slow_handler_is_not_revoked)
{
    drive_on_worker();
    fixture_drop(&f);
    loop_settle(&f.loop);
    ck_assert_int_eq(held(), 0);
    ck_assert_int_eq(revoked(), 1);
    for (int i = 0; i < TASKS; i++)
        ck_assert_int_eq(sem_post(&leave), 0);
    while (!recording_handler_is_released(&handler))
        turn();
    ck_assert_int_eq(held(), 0);
}
END_TEST

static void refuse(struct recording_handler *h)
{
    note_held(h);
    h->task_code_at = (int)h->tasks - 1;
}

START_TEST(a_refusal_on_a_worker_ends_the_count)
{
    handler.on_task = refuse;
    handler.task_code = EDOM;
    options.on_worker = true;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_drive(f.stream, &handler.handler, &options, NULL), 0);
    while (!recording_handler_is_released(&handler))
        turn();
    ck_assert_int_eq(in_callback, 1);
    ck_assert_int_eq(held(), 0);
    ck_assert_int_eq(revoked(), 0);
}
END_TEST

int main(void)
{
    TCase *any = tcase_create("any source"), *worker = tcase_create("worker");

    suite_add_loops(any, 0, 2, each_extraction_is_counted_at_once_on_any_thread,
                    what_was_read_ahead_is_not_counted_when_it_is_discarded,
                    a_task_that_is_refused_is_neither_held_nor_revoked,
                    a_drop_revokes_what_is_held,
                    a_close_tells_how_many_it_has_revoked, NULL);
    suite_add(any, an_extraction_that_fails_ends_the_count,
              tasks_of_our_own_consumers_are_not_counted, NULL);
    suite_add(worker, what_waits_for_a_slow_handler_is_not_counted,
              what_waits_for_a_slow_handler_is_not_revoked,
              a_refusal_on_a_worker_ends_the_count, NULL);
    return suite_main("tasks_held", set_up, tear_down, any, worker, NULL);
}
