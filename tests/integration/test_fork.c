/* SPDX-License-Identifier: Apache-2.0 */
/* A process that forks while streams run: the child may release its objects,
 * and every other call returns EPERM; the parent is not affected. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/forked_child.h"
#include "support/recording_handler.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { BATCHES = 6 };

static struct fixture f;         /* its source feeds the running stream */
static struct fake_source idle;  /* of the stream that is not started */
static struct fake_source tasks; /* of the stream with tasks that are held */
static struct uva_stream *running, *built;
static struct recording_handler handler;
static struct recording_consumer driven;
static struct uva_runtime *threaded, *turned; /* hosted in other ways */
static struct uva_workers *workers;           /* the workers of `turned` */
static struct ArrowDeviceArray array;         /* made by the program */
static struct ArrowDeviceArray batch; /* delivered by the running stream */
static int wrong;                     /* failed checks in the child */

static void keep_first(struct recording_consumer *o, struct uva_batch *given)
{
    if (atomic_load(&o->batches) == 1)
        uva_array_move(&given->data, &batch);
}

/* Opens a stream with a handler that keeps its tasks, so that the stream stays
 * open. */
static void open_driven(void)
{
    const struct uva_task_source source = fake_source_tasks(&tasks);
    const struct uva_drive options = {.on_done = recording_on_done,
                                      .ctx = &driven};
    struct uva_stream *stream = uva_stream_from_tasks(f.loop.runtime, &source);

    recording_init(&driven);
    recording_handler_init(&handler, 2, 0);
    handler.hold = true;
    ck_assert_int_eq(uva_stream_drive(stream, &handler.handler, &options, NULL),
                     0);
    uva_stream_release(stream);
    while (handler.held_count < 2)
        loop_turn(&f.loop);
}

static void open_others(void)
{
    struct uva_runtime_options options = {0};

    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &threaded, NULL), 0);
    ck_assert_int_eq(uva_workers_new(NULL, &workers, NULL), 0);
    options.workers = workers;
    ck_assert_int_eq(
        uva_runtime_open_turned(NULL, NULL, &options, &turned, NULL), 0);
}

/* All streams run, and the source of the running stream waits at batch 2. */
static void set_up(void)
{
    const struct uva_arrow_source options = fake_source_options(&idle);
    struct ArrowArrayStream source;

    fixture_open(&f, BATCHES);
    fake_source_init(&idle, 1);
    fake_source_init(&tasks, 4);
    fake_source_batch(&idle, 0, &array);
    fake_source_plain(&idle, &source);
    built = uva_stream_from_arrow_stream(f.loop.runtime, &source, &options);
    open_others();
    open_driven();
    f.fake.gate_at = 2;
    f.got.on_batch = keep_first;
    running = fixture_blocking(&f);
    recording_consume(&f.got, uva_stream_acquire(running));
    while (atomic_load(&f.got.batches) < 2)
        loop_turn(&f.loop);
    fake_source_await(&f.fake);
    wrong = 0;
}

/* Checks that the remaining tasks arrive, and that all tasks can be extracted.
 */
static void ck_handler_goes_on(void)
{
    recording_handler_request(&handler, 3);
    while (strcmp(handler.transcript, "schema task task task task end") != 0)
        loop_turn(&f.loop);
    for (int i = 0; i < handler.held_count; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
    ck_assert_int_eq(handler.rows, 4 * 3);
    while (atomic_load(&driven.done) == 0)
        loop_turn(&f.loop);
    ck_assert(handler.released);
    ck_assert_int_eq(driven.outcome.end, UVA_END_COMPLETE);
}

/* Checks that the fork has not affected the parent. */
static void tear_down(void)
{
    ck_assert_int_eq(atomic_load(&idle.freed), 0);
    ck_handler_goes_on();
    fake_source_open_gate(&f.fake);
    fixture_await(&f);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.batches, BATCHES);
    ck_assert_int_eq(f.got.rows, BATCHES * 3);
    uva_array_release(&array);
    uva_array_release(&batch);
    uva_stream_release(running);
    uva_stream_release(built);
    await_count(&idle.freed, 1);
    ck_assert_int_eq(uva_runtime_join(threaded, UVA_FOREVER), 0);
    uva_workers_release(workers);
    ck_assert_int_eq(uva_runtime_close(turned, 0, NULL, NULL), 0);
    while (uva_runtime_turn(turned))
        ;
    fixture_close_counted(&f, 1, 1);
    await_count(&tasks.freed, 1);
    fake_source_fini(&idle);
    fake_source_fini(&tasks);
}

/* ---- in the child ------------------------------------------------------- */

/* Check's own assertions would act for the parent. */
static void expect(bool good, const char *what)
{
    if (good)
        return;
    wrong++;
    (void)fprintf(stderr, "in the child: %s\n", what);
}

static int child_run(void *run)
{
    (*(void (**)(void))run)();
    return wrong;
}

static void in_a_child(void (*run)(void))
{
    forked_child_run(child_run, &run);
}

static void never(void *ctx)
{
    (void)ctx;
    expect(false, "a callback of the parent's");
}

static void use_runtimes(void)
{
    struct uva_runtime_options options = {0};
    struct uva_runtime *const all[] = {f.loop.runtime, threaded, turned};
    struct uva_runtime_stats stats;
    struct uva_error error = {0};
    struct uva_runtime *out;

    for (int i = 0; i < 3; i++) {
        expect(uva_runtime_post(all[i], never, NULL) == EPERM, "post");
        expect(uva_runtime_run(all[i], UVA_LANE_BLOCKING, never, NULL, NULL) ==
                   EPERM,
               "run");
        expect(uva_runtime_close(all[i], 0, never, NULL) == EPERM, "close");
        uva_runtime_get_stats(all[i], &stats);
        expect(stats.streams_open == (i == 0 ? 2 : 0), "stats");
    }
    expect(uva_runtime_join(threaded, UVA_FOREVER) == EPERM, "join");
    expect(uva_runtime_turn(turned), "turn");
    expect(uva_runtime_join(turned, 0) == EPERM, "join of a turned one");
    options.workers = workers;
    expect(uva_runtime_open_turned(NULL, NULL, &options, &out, &error) == EPERM,
           "open");
    expect(error.message[0] != '\0', "open says nothing");
    uva_workers_release(workers);
}

START_TEST(a_child_cannot_use_the_parents_runtimes)
{
    in_a_child(use_runtimes);
}
END_TEST

static void ck_failed(struct uva_stream *stream, const char *what)
{
    const struct uva_consumer table = recording_table(&driven);
    struct uva_error error = {0};

    expect(uva_stream_status(stream, NULL) == EPERM, what);
    expect(uva_stream_for_each(stream, &table, &error) == EPERM, what);
    expect(error.code == EPERM && error.message[0] != '\0', what);
    uva_stream_release(stream);
}

static int start_never(void *ctx, struct ArrowAsyncDeviceStreamHandler *given,
                       struct uva_error *error)
{
    (void)given;
    (void)error;
    never(ctx);
    return EIO;
}

static void count_freed(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void make_other_streams(void)
{
    struct ArrowSchema schema;
    struct uva_pusher *pusher = NULL;
    atomic_int freed = 0;
    const struct uva_async_source async = {
        .start = start_never, .free_ctx = count_freed, .ctx = &freed};
    const struct uva_push_source push = {.free_ctx = count_freed,
                                         .ctx = &freed};

    fake_source_schema(&idle, &schema);
    ck_failed(uva_stream_from_arrays(f.loop.runtime, &schema, &array, 1),
              "from_arrays");
    expect(schema.release == NULL && !uva_array_is_live(&array), "arrays");
    ck_failed(uva_stream_from_async(f.loop.runtime, &async), "from_async");
    ck_failed(uva_stream_from_pusher(f.loop.runtime, &push, &pusher),
              "from_pusher");
    ck_failed(uva_stream_from_pusher(f.loop.runtime, NULL, &pusher),
              "from_pusher with nothing");
    expect(pusher == NULL && atomic_load(&freed) == 2, "what came with them");
}

static void make_streams(void)
{
    const struct uva_arrow_source options = fake_source_options(&idle);
    const struct uva_task_source source = fake_source_tasks(&idle);
    struct ArrowArrayStream stream;

    fake_source_plain(&idle, &stream);
    ck_failed(uva_stream_from_arrow_stream(f.loop.runtime, &stream, &options),
              "from_blocking_cpu");
    ck_failed(uva_stream_from_tasks(f.loop.runtime, &source), "from_tasks");
    expect(atomic_load(&idle.released) == 1, "the source is given back");
    expect(atomic_load(&idle.freed) == 2, "what was put in is given back");
    make_other_streams();
}

START_TEST(a_child_cannot_make_streams_and_has_its_own_back)
{
    in_a_child(make_streams);
}
END_TEST

static void start_streams(void)
{
    const struct uva_consumer table = recording_table(&driven);
    struct recording_handler other;
    struct uva_error error = {0};

    recording_handler_init(&other, 1, 1);
    expect(uva_stream_for_each(built, &table, &error) == EPERM, "for_each");
    expect(strstr(error.message, "fork") != NULL, "for_each's text");
    expect(uva_stream_start_take(built, NULL, NULL, NULL, &error) == EPERM,
           "start_take");
    expect(uva_stream_drive(built, &other.handler, NULL, &error) == EPERM,
           "drive");
    expect(other.transcript[0] == '\0', "the handler is untouched");
    expect(uva_stream_for_each(running, &table, &error) == EPERM, "again");
    expect(uva_stream_start_take(running, NULL, NULL, NULL, &error) == EPERM,
           "take of one that runs");
    uva_stream_cancel(running, EIO, "the child says so");
    uva_stream_resume(running);
    expect(uva_stream_status(running, NULL) == 0, "status");
}

START_TEST(a_child_can_neither_start_nor_stop_the_parents_streams)
{
    in_a_child(start_streams);
}
END_TEST

static int map_never(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)in;
    (void)out;
    (void)error;
    never(ctx);
    return EIO;
}

static void add_stages(void)
{
    const struct uva_map map = {.batch = map_never};

    expect(uva_stream_map(built, &map) == EPERM, "map");
    expect(uva__stream_limit(built, 1) == EPERM, "limit");
    expect(uva_stream_set_name(built, "child") == EPERM, "set_name");
    expect(uva_stream_parallel(built, NULL) == EPERM, "parallel");
}

START_TEST(a_child_cannot_add_stages)
{
    in_a_child(add_stages);
}
END_TEST

static void give_back(void)
{
    struct uva_stream *acquired = uva_stream_acquire(running);

    uva_array_release(&array);
    uva_array_release(&batch);
    expect(!uva_array_is_live(&array) && !uva_array_is_live(&batch), "arrays");
    expect(atomic_load(&idle.live) == 0, "the program's own array");
    uva_stream_release(acquired);
    uva_stream_release(running);
    uva_stream_release(built);
}

START_TEST(a_child_may_give_back_arrays_and_streams)
{
    in_a_child(give_back);
}
END_TEST

static void drop(void)
{
    uva_stream_drop(built);
    uva_stream_drop(running);
}

START_TEST(a_child_may_drop_streams)
{
    in_a_child(drop);
}
END_TEST

static void use_tasks(void)
{
    struct ArrowAsyncProducer *producer = handler.handler.producer;
    struct ArrowDeviceArray out;

    producer->request(producer, 2);
    producer->request(producer, -1);
    producer->cancel(producer);
    uva_task_discard(&handler.held[0]);
    expect(uva_task_extract(&handler.held[1], &out) == 0, "extract");
    uva_array_release(&out);
    expect(handler.tasks == 2, "a task of the parent's");
}

START_TEST(a_child_may_settle_tasks_and_its_requests_are_not_heard)
{
    in_a_child(use_tasks);
    ck_assert_int_eq(handler.tasks, 2);
}
END_TEST

int main(void)
{
    TCase *c = suite_tests(
        "fork", a_child_cannot_use_the_parents_runtimes,
        a_child_cannot_make_streams_and_has_its_own_back,
        a_child_can_neither_start_nor_stop_the_parents_streams,
        a_child_cannot_add_stages, a_child_may_give_back_arrays_and_streams,
        a_child_may_drop_streams,
        a_child_may_settle_tasks_and_its_requests_are_not_heard, NULL);
    return suite_main("fork", set_up, tear_down, c, NULL);
}
