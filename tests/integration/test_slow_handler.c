/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that is called on a worker and does not return: further callbacks
 * wait in a bounded queue, and a close abandons the handler after a time limit.
 */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum { BATCHES = 200, FEW = 3 };

static struct fixture f;
static struct ArrowAsyncDeviceStreamHandler handler;
static sem_t entered, leave; /* posted and awaited in the first task */
static struct ArrowAsyncTask first;
static bool elsewhere;       /* the test extracts `first`, not the handler */
static atomic_int tasks;     /* tasks that arrived */
static atomic_int extracted; /* the code of the last extraction */
static atomic_int ends;      /* how often the end came */
static atomic_int error;     /* the code of on_error; 0: it did not come */
static atomic_int released;  /* how often the handler was released */

/* ---- the handler -------------------------------------------------------- */

static int on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowSchema *schema)
{
    uva_schema_release(schema);
    self->producer->request(self->producer, BATCHES);
    return 0;
}

static int on_task(struct ArrowAsyncDeviceStreamHandler *self,
                   struct ArrowAsyncTask *task, const char *metadata)
{
    struct ArrowDeviceArray array;

    (void)self;
    (void)metadata;
    if (task == NULL) {
        atomic_fetch_add(&ends, 1);
        return 0;
    }
    if (atomic_fetch_add(&tasks, 1) == 0) {
        first = *task;
        sem_post(&entered);
        while (sem_wait(&leave) != 0)
            ;
        if (elsewhere)
            return 0;
    }
    atomic_store(&extracted, uva_task_extract(task, &array));
    if (atomic_load(&extracted) == 0)
        uva_array_release(&array);
    return 0;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)message;
    (void)metadata;
    ck_assert_int_ne(code, 0);
    ck_assert_int_eq(atomic_exchange(&error, code), 0);
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
    atomic_fetch_add(&released, 1);
}

/* ---- the fixture -------------------------------------------------------- */

/* Drives the handler; when this returns, it is inside its first task. */
static void drive(struct uva_stream *stream)
{
    const struct uva_drive options = {
        .on_done = recording_on_done, .ctx = &f.got, .on_worker = true};

    handler.on_schema = on_schema;
    handler.on_next_task = on_task;
    handler.on_error = on_error;
    handler.release = on_release;
    f.stream = stream;
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler, &options, NULL), 0);
    while (sem_trywait(&entered) != 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
}

/* Lets the queue take as many as it has room for. */
static void settle(void)
{
    for (int i = 0; i < BATCHES; i++)
        loop_settle(&f.loop);
}

/* As drive(), and the end is queued after the tasks. */
static void drive_to_the_end(void)
{
    f.fake.batches = FEW;
    drive(fixture_tasks(&f));
    settle();
}

static void set_up(void)
{
    tasks = extracted = ends = error = released = 0;
    elsewhere = false;
    fixture_open(&f, BATCHES);
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&released), 1);
    sem_destroy(&entered);
    sem_destroy(&leave);
}

/* Lets the handler go on until it is released. */
static void leave_it(void)
{
    sem_post(&leave);
    while (atomic_load(&released) == 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
}

/* ---- cases -------------------------------------------------------------- */

START_TEST(what_comes_meanwhile_waits_up_to_a_bound)
{
    struct uva_runtime_stats stats;

    drive(fixture_tasks(&f));
    settle();
    uva_runtime_get_stats(f.loop.runtime, &stats);
    ck_assert_int_lt(stats.tasks_held, BATCHES);
    sem_post(&leave);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&tasks), BATCHES);
    ck_assert_int_eq(atomic_load(&ends), 1);
}
END_TEST

START_TEST(a_close_leaves_it_behind_and_it_is_released_when_it_returns)
{
    drive(fixture_tasks(&f));
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&released), 0);
    leave_it();
    ck_assert_int_eq(atomic_load(&tasks), 1);
    ck_assert_int_eq(atomic_load(&ends), 0);
    ck_assert_int_eq(atomic_load(&error), ECANCELED);
}
END_TEST

START_TEST(a_close_before_a_queued_end_is_no_complete_end)
{
    drive_to_the_end();
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_CANCELLED);
    ck_assert_int_eq(f.got.outcome.error.code, ECANCELED);
    ck_assert_int_eq(f.got.outcome.batches, 1);
    leave_it();
    ck_assert_int_eq(atomic_load(&tasks), 1);
    ck_assert_int_eq(atomic_load(&ends), 0);
    ck_assert_int_eq(atomic_load(&error), ECANCELED);
}
END_TEST

/* The handler is in its first task, which the drop revokes, so that its
 * extraction fails; the queue is full when the producer ends. */
START_TEST(AT08_no_task_comes_behind_one_that_a_drop_has_revoked)
{
    drive(fixture_tasks(&f));
    settle();
    fixture_drop(&f);
    loop_settle(&f.loop);
    leave_it();
    ck_assert_int_eq(atomic_load(&extracted), ECANCELED);
    ck_assert_int_eq(atomic_load(&tasks), 1);
    ck_assert_int_eq(atomic_load(&ends), 0);
    ck_assert_int_eq(atomic_load(&error), ECANCELED);
}
END_TEST

START_TEST(AT08_a_drop_makes_an_error_of_a_queued_end)
{
    drive_to_the_end();
    fixture_drop(&f);
    loop_settle(&f.loop);
    leave_it();
    ck_assert_int_eq(atomic_load(&extracted), ECANCELED);
    ck_assert_int_eq(atomic_load(&tasks), 1);
    ck_assert_int_eq(atomic_load(&ends), 0);
    ck_assert_int_eq(atomic_load(&error), ECANCELED);
}
END_TEST

START_TEST(AP16_a_handler_that_has_cancelled_gets_only_its_release)
{
    drive_to_the_end();
    handler.producer->cancel(handler.producer);
    fixture_drop(&f);
    loop_settle(&f.loop);
    leave_it();
    ck_assert_int_eq(atomic_load(&tasks), 1);
    ck_assert_int_eq(atomic_load(&ends), 0);
    ck_assert_int_eq(atomic_load(&error), 0);
}
END_TEST

/* The cancel of the owner ends the wait for the tasks after the end, so the
 * producer does not report the failure. */
START_TEST(AT08_a_failed_extraction_makes_an_error_of_a_queued_end)
{
    f.fake.extract_at = 0;
    f.fake.fail_code = EDOM;
    drive_to_the_end();
    uva_stream_cancel(f.stream, 0, "seen enough");
    loop_settle(&f.loop);
    leave_it();
    ck_assert_int_eq(atomic_load(&extracted), EDOM);
    ck_assert_int_eq(atomic_load(&tasks), 1);
    ck_assert_int_eq(atomic_load(&ends), 0);
    ck_assert_int_eq(atomic_load(&error), EIO);
    ck_assert_int_eq(fixture_await(&f), EIO);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    fixture_release(&f);
}
END_TEST

/* On the loop, between the drop and the failure. */
static void let_the_error_come(void *ctx)
{
    (void)ctx;
    sem_post(&leave);
    while (atomic_load(&error) == 0)
        (void)sched_yield();
}

/* The drop makes an error of the end, and the handler has got it when the
 * producer learns of the extraction. */
START_TEST(AT08_an_extraction_that_fails_during_a_drop_is_no_second_error)
{
    struct ArrowDeviceArray array;

    f.fake.extract_at = 0;
    f.fake.fail_code = EDOM;
    elsewhere = true;
    drive_to_the_end();
    fixture_drop(&f);
    ck_assert_int_eq(uva_runtime_post(f.loop.runtime, let_the_error_come, NULL),
                     0);
    ck_assert_int_eq(uva_task_extract(&first, &array), EDOM);
    while (atomic_load(&released) == 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(atomic_load(&tasks), 1);
    ck_assert_int_eq(atomic_load(&ends), 0);
    ck_assert_int_eq(atomic_load(&error), ECANCELED);
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "slow handler", what_comes_meanwhile_waits_up_to_a_bound,
        a_close_leaves_it_behind_and_it_is_released_when_it_returns,
        a_close_before_a_queued_end_is_no_complete_end,
        AT08_no_task_comes_behind_one_that_a_drop_has_revoked,
        AT08_a_drop_makes_an_error_of_a_queued_end,
        AP16_a_handler_that_has_cancelled_gets_only_its_release,
        AT08_a_failed_extraction_makes_an_error_of_a_queued_end,
        AT08_an_extraction_that_fails_during_a_drop_is_no_second_error, NULL);
    return suite_main("slow_handler", set_up, tear_down, tc, NULL);
}
