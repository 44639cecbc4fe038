/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that is called on a worker and does not return: what is told to it
 * meanwhile waits, up to a bound; a close leaves it behind after a while. */
#include <check.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 200 };

struct scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct ArrowAsyncDeviceStreamHandler handler;
    sem_t entered, leave; /* of the first task */
    atomic_int tasks;     /* that came */
    atomic_int over;      /* the end or an error was told */
    atomic_int released;  /* times the handler was */
    int done;
    struct uva_outcome outcome;
};

static struct scene scene;

/* ---- the handler -------------------------------------------------------- */

static int on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                     struct ArrowSchema *schema)
{
    uva_schema_release(schema);
    handler->producer->request(handler->producer, BATCHES);
    return 0;
}

static int on_task(struct ArrowAsyncDeviceStreamHandler *handler,
                   struct ArrowAsyncTask *task, const char *metadata)
{
    (void)handler;
    (void)metadata;
    if (task == NULL) {
        atomic_fetch_add(&scene.over, 1);
        return 0;
    }
    if (atomic_fetch_add(&scene.tasks, 1) == 0) {
        sem_post(&scene.entered);
        while (sem_wait(&scene.leave) != 0)
            ;
    }
    uva_task_discard(task);
    return 0;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *handler, int code,
                     const char *message, const char *metadata)
{
    (void)handler;
    (void)code;
    (void)message;
    (void)metadata;
    atomic_fetch_add(&scene.over, 1);
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    handler->release = NULL;
    atomic_fetch_add(&scene.released, 1);
}

/* ---- the scene ---------------------------------------------------------- */

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct scene *s = ctx;

    s->done++;
    s->outcome = *outcome;
}

static bool is_done(void *ctx)
{
    return ((struct scene *)ctx)->done > 0;
}

/* The handler is inside its first task when this returns. */
static void set_up(void)
{
    const struct uva_drive how = {
        .on_done = on_done, .ctx = &scene, .on_worker = true};
    struct uva_task_source source;
    struct uva_stream *stream;

    memset(&scene, 0, sizeof(scene));
    loop_rig_open(&scene.rig);
    fake_source_init(&scene.fake, BATCHES);
    sem_init(&scene.entered, 0, 0);
    sem_init(&scene.leave, 0, 0);
    scene.handler.on_schema = on_schema;
    scene.handler.on_next_task = on_task;
    scene.handler.on_error = on_error;
    scene.handler.release = on_release;
    source = fake_source_tasks(&scene.fake);
    stream = uva_stream_from_tasks(scene.rig.runtime, &source);
    ck_assert_int_eq(uva_stream_drive(stream, &scene.handler, &how, NULL), 0);
    uva_stream_release(stream);
    while (sem_trywait(&scene.entered) != 0)
        (void)uv_run(&scene.rig.loop, UV_RUN_NOWAIT);
}

static void tear_down(void)
{
    if (scene.rig.runtime != NULL)
        loop_rig_close_runtime(&scene.rig, 0);
    while (faulty_allocator_live(&scene.rig.memory) > 0)
        (void)sched_yield();
    loop_rig_close(&scene.rig);
    ck_assert_int_eq(atomic_load(&scene.released), 1);
    ck_assert_int_eq(atomic_load(&scene.fake.freed), 1);
    ck_assert_int_eq(atomic_load(&scene.fake.live), 0);
    fake_source_fini(&scene.fake);
    sem_destroy(&scene.entered);
    sem_destroy(&scene.leave);
}

/* ---- cases -------------------------------------------------------------- */

START_TEST(what_comes_meanwhile_waits_up_to_a_bound)
{
    struct uva_runtime_stats stats;

    for (int i = 0; i < BATCHES; i++)
        loop_rig_settle(&scene.rig);
    uva_runtime_get_stats(scene.rig.runtime, &stats);
    ck_assert_int_lt(stats.tasks_held, BATCHES);
    sem_post(&scene.leave);
    loop_rig_until(&scene.rig, is_done, &scene);
    ck_assert_int_eq(scene.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(atomic_load(&scene.tasks), BATCHES);
    ck_assert_int_eq(atomic_load(&scene.over), 1);
}
END_TEST

START_TEST(a_close_leaves_it_behind_and_it_is_released_when_it_returns)
{
    loop_rig_close_runtime(&scene.rig, 0);
    ck_assert_int_eq(atomic_load(&scene.released), 0);
    sem_post(&scene.leave);
    while (atomic_load(&scene.released) == 0)
        (void)sched_yield();
    ck_assert_int_eq(atomic_load(&scene.over), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slow_handler");
    TCase *tc = tcase_create("slow handler");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_comes_meanwhile_waits_up_to_a_bound);
    tcase_add_test(tc,
                   a_close_leaves_it_behind_and_it_is_released_when_it_returns);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
