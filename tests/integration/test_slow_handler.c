/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that is called on a worker and does not return: further callbacks
 * wait in a bounded queue, and a close abandons the handler after a time limit.
 */
#include <check.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum { BATCHES = 200 };

static struct fixture f;
static struct ArrowAsyncDeviceStreamHandler handler;
static sem_t entered, leave; /* posted and awaited in the first task */
static atomic_int tasks;     /* tasks that arrived */
static atomic_int over;      /* ends and errors */
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
    (void)self;
    (void)metadata;
    if (task == NULL) {
        atomic_fetch_add(&over, 1);
        return 0;
    }
    if (atomic_fetch_add(&tasks, 1) == 0) {
        sem_post(&entered);
        while (sem_wait(&leave) != 0)
            ;
    }
    uva_task_discard(task);
    return 0;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
    atomic_fetch_add(&over, 1);
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
    atomic_fetch_add(&released, 1);
}

/* ---- the fixture -------------------------------------------------------- */

/* When this returns, the handler is inside its first task. */
static void set_up(void)
{
    const struct uva_drive options = {
        .on_done = recording_on_done, .ctx = &f.got, .on_worker = true};

    tasks = over = released = 0;
    fixture_open(&f, BATCHES);
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    handler.on_schema = on_schema;
    handler.on_next_task = on_task;
    handler.on_error = on_error;
    handler.release = on_release;
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler, &options, NULL), 0);
    fixture_release(&f);
    while (sem_trywait(&entered) != 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
}

static void tear_down(void)
{
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&released), 1);
    sem_destroy(&entered);
    sem_destroy(&leave);
}

/* ---- cases -------------------------------------------------------------- */

START_TEST(what_comes_meanwhile_waits_up_to_a_bound)
{
    struct uva_runtime_stats stats;

    for (int i = 0; i < BATCHES; i++)
        loop_settle(&f.loop);
    uva_runtime_get_stats(f.loop.runtime, &stats);
    ck_assert_int_lt(stats.tasks_held, BATCHES);
    sem_post(&leave);
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&tasks), BATCHES);
    ck_assert_int_eq(atomic_load(&over), 1);
}
END_TEST

START_TEST(a_close_leaves_it_behind_and_it_is_released_when_it_returns)
{
    loop_close_runtime(&f.loop, 0);
    ck_assert_int_eq(atomic_load(&released), 0);
    sem_post(&leave);
    while (atomic_load(&released) == 0)
        (void)sched_yield();
    ck_assert_int_eq(atomic_load(&over), 1);
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "slow handler", what_comes_meanwhile_waits_up_to_a_bound,
        a_close_leaves_it_behind_and_it_is_released_when_it_returns, NULL);
    return suite_main("slow_handler", set_up, tear_down, tc, NULL);
}
