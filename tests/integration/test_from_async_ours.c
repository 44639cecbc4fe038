/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_from_async() with another stream of the library as the producer,
 * which has an expensive map. The loop thread that calls the handler runs no
 * map, and waits for no map. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "stream/stream_impl.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"

enum { BATCHES = 40, WINDOW = 8 };

/* Bits of the loop index. */
enum { CHECKED = 1, OTHER_RUNTIME = 2, WAYS = 4 };

/* The inner stream has the map and drives the handler of the outer one; the
 * outer one belongs to the fixture. */
static struct fixture f;
static struct uva_runtime *other; /* of the inner stream; NULL: the fixture's */
static struct faulty_allocator memory; /* of that runtime */
static struct uva_stream *inner;
static struct recording_handler handler; /* of the outer stream */
static struct uva_outcome outcome;       /* of the outer stream */
static sem_t entered, leave;             /* of the map, if it waits */
static bool waits;
static bool on_worker;    /* the handler of the outer stream */
static const char *about; /* metadata of the inner stream; or NULL */
static atomic_long freed, inner_done, outer_done, answers;
static atomic_long maps;         /* calls of the map */
static atomic_long maps_in_turn; /* of these, on a loop thread */

static struct uva_runtime *runtime_of_inner(void)
{
    return other != NULL ? other : f.loop.runtime;
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    if (uva_runtime_on_loop(runtime_of_inner()))
        atomic_fetch_add(&maps_in_turn, 1);
    if (atomic_fetch_add(&maps, 1) == 0 && waits) {
        ck_assert_int_eq(sem_post(&entered), 0);
        while (sem_wait(&leave) != 0)
            ;
    }
    uva_array_move(&in->data, out);
    return 0;
}

static void count(void *ctx)
{
    atomic_fetch_add((atomic_long *)ctx, 1);
    loop_nudge(&f.loop);
}

static void on_inner_done(void *ctx, const struct uva_outcome *end)
{
    (void)end;
    count(ctx);
}

static void on_outer_done(void *ctx, const struct uva_outcome *end)
{
    outcome = *end;
    count(ctx);
}

static int start(void *ctx, struct ArrowAsyncDeviceStreamHandler *to,
                 struct uva_error *error)
{
    const struct uva_drive options = {
        .on_done = on_inner_done, .ctx = &inner_done, .metadata = about};

    (void)ctx;
    return uva_stream_drive(inner, to, &options, error);
}

static void open_both(int way)
{
    struct uva_runtime_options options = {.check = (way & CHECKED) != 0};

    fixture_open_with(&f, BATCHES, &options);
    faulty_allocator_init(&memory, 0);
    options.allocator = faulty_allocator_table(&memory);
    other = NULL;
    if (way & OTHER_RUNTIME)
        ck_assert_int_eq(uva_runtime_open(NULL, &options, &other, NULL), 0);
    ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&leave, 0, 0), 0);
    waits = on_worker = false;
    about = NULL;
    freed = inner_done = outer_done = answers = maps = maps_in_turn = 0;
    memset(&outcome, 0, sizeof(outcome));
    recording_handler_init(&handler, WINDOW, 0);
    handler.hold = true;
}

/* Makes `stream` the inner one, and drives a handler with the outer one. */
static void drive(struct uva_stream *stream)
{
    const struct uva_async_source source = {.start = start,
                                            .free_ctx = count,
                                            .ctx = &freed,
                                            .window = {.batches = WINDOW}};
    const struct uva_drive options = {
        .on_done = on_outer_done, .ctx = &outer_done, .on_worker = on_worker};

    inner = stream;
    f.stream = uva_stream_from_async(f.loop.runtime, &source);
    ck_assert_int_eq(
        uva_stream_drive(f.stream, &handler.handler, &options, NULL), 0);
}

static struct uva_stream *mapped(struct uva_stream *stream)
{
    const struct uva_map map = {.batch = map_batch};

    ck_assert_int_eq(uva_stream_map(stream, &map), 0);
    return stream;
}

/* A stream of the fake source on the runtime of the inner stream. */
static struct uva_stream *blocking(void)
{
    const struct uva_arrow_source options = fake_source_options(&f.fake);
    struct ArrowArrayStream source;

    fake_source_plain(&f.fake, &source);
    return uva_stream_from_arrow_stream(runtime_of_inner(), &source, &options);
}

static bool has_tasks(void *ctx)
{
    return recording_handler_tasks(&handler) >= *(int64_t *)ctx;
}

static void await_tasks(int64_t n)
{
    loop_until(&f.loop, has_tasks, &n);
}

static bool is_counted(void *ctx)
{
    return atomic_load((atomic_long *)ctx) > 0;
}

static void await(atomic_long *counter)
{
    loop_until(&f.loop, is_counted, counter);
}

static void close_other(void)
{
    uva_stream_release(inner);
    inner = NULL;
    if (other == NULL)
        return;
    ck_assert_int_eq(uva_runtime_close(other, 0, NULL, NULL), 0);
    ck_assert_int_eq(uva_runtime_join(other, UVA_FOREVER), 0);
    other = NULL;
}

/* Both runtimes close; no object is left. */
static void close_both(void)
{
    uva_stream_release(f.stream);
    f.stream = NULL;
    if (f.loop.runtime != NULL)
        loop_close_runtime(&f.loop, 0);
    close_other();
    while (atomic_load(&freed) == 0 || faulty_allocator_live(&memory) != 0)
        (void)sched_yield();
    ck_assert_int_eq(atomic_load(&maps_in_turn), 0);
    fixture_close_counted(&f, 1, 1);
    recording_handler_fini(&handler);
}

static void *extract_first(void *ctx)
{
    (void)ctx;
    (void)recording_handler_extract(&handler, &handler.held[0]);
    return NULL;
}

static void discard_from(int64_t first)
{
    handler.discard = true;
    for (int64_t i = first; i < handler.held_count; i++)
        (void)recording_handler_extract(&handler, &handler.held[i]);
}

/* ---- a cancel ----------------------------------------------------------- */

START_TEST(a_cancel_waits_for_no_extraction_that_runs)
{
    pthread_t extractor;

    open_both(_i);
    waits = true;
    drive(mapped(blocking()));
    await_tasks(WINDOW);
    ck_assert_int_eq(pthread_create(&extractor, NULL, extract_first, NULL), 0);
    while (sem_wait(&entered) != 0)
        ;
    uva_stream_cancel(f.stream, 0, "seen enough");
    await(&outer_done);
    await(&inner_done); /* it has released the handler */
    ck_assert_int_eq(uva_runtime_post(runtime_of_inner(), count, &answers), 0);
    await(&answers);
    ck_assert_int_eq(atomic_load(&maps), 1);
    ck_assert_int_eq(sem_post(&leave), 0);
    ck_assert_int_eq(pthread_join(extractor, NULL), 0);
    discard_from(1);
    close_both();
    ck_assert_int_eq(atomic_load(&maps), 1);
}
END_TEST

START_TEST(a_cancel_makes_nothing_of_tasks_that_are_not_wanted)
{
    open_both(_i);
    handler.request_first = 2;
    drive(mapped(blocking()));
    await_tasks(2); /* others wait in the outer stream */
    uva_stream_cancel(f.stream, 0, "seen enough");
    await(&outer_done);
    await(&inner_done);
    discard_from(0);
    close_both();
    ck_assert_int_eq(atomic_load(&maps), 0);
}
END_TEST

START_TEST(a_close_makes_nothing_of_tasks_that_are_not_wanted)
{
    open_both(_i);
    handler.request_first = 2;
    drive(mapped(blocking()));
    await_tasks(2);
    loop_close_runtime(&f.loop, 0);
    for (int64_t i = 0; i < 2; i++)
        uva_task_discard(&handler.held[i]);
    close_both();
    ck_assert_int_eq(atomic_load(&maps), 0);
}
END_TEST

/* ---- a release before the extraction ------------------------------------ */

static void *extract_all(void *ctx)
{
    (void)ctx;
    for (int64_t i = 0; i < handler.held_count; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
    return NULL;
}

/* The producer releases at once after an error: the batches before it are
 * extracted later, and delivered. */
START_TEST(tasks_outlive_the_release_that_follows_an_error)
{
    pthread_t extractor;

    open_both(_i);
    f.fake.fail_at = 5;
    handler.request_first = 2;
    drive(mapped(blocking()));
    await(&inner_done);
    ck_assert_int_eq(atomic_load(&maps), 0);
    await_tasks(2);
    recording_handler_request(&handler, 10);
    await_tasks(5);
    ck_assert_int_eq(pthread_create(&extractor, NULL, extract_all, NULL), 0);
    await(&outer_done);
    ck_assert_int_eq(pthread_join(extractor, NULL), 0);
    ck_assert_int_eq(handler.rows, 15);
    ck_assert_str_eq(handler.transcript,
                     "schema task task task task task error release");
    ck_assert_int_eq(outcome.error.code, EIO);
    close_both();
}
END_TEST

static bool drain_is_timed(void *ctx)
{
    (void)ctx;
    return inner->tail->loop->drain.running;
}

static void end_drain(void *ctx)
{
    uva__producer_end_drain(inner->tail);
    count(ctx);
}

/* The producer has ended, and releases when it has waited for long enough: its
 * maps still do not run on the loop thread. */
START_TEST(tasks_outlive_the_release_that_follows_a_long_wait)
{
    pthread_t extractor;

    open_both(_i);
    f.fake.batches = 5;
    handler.request_first = 2;
    drive(mapped(blocking()));
    await_tasks(2);
    loop_until(&f.loop, drain_is_timed, NULL);
    ck_assert_int_eq(uva_runtime_post(f.loop.runtime, end_drain, &answers), 0);
    await(&answers);
    await(&inner_done);
    ck_assert_int_eq(atomic_load(&maps), 0);
    recording_handler_request(&handler, 10);
    await_tasks(5);
    ck_assert_int_eq(pthread_create(&extractor, NULL, extract_all, NULL), 0);
    await(&outer_done);
    ck_assert_int_eq(pthread_join(extractor, NULL), 0);
    ck_assert_int_eq(handler.rows, 15);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
    close_both();
}
END_TEST

/* Tasks that only move an array are moved in release: the runtime may close
 * before they are wanted. */
START_TEST(what_needs_no_map_survives_the_runtime_of_its_producer)
{
    open_both(_i | OTHER_RUNTIME);
    f.fake.batches = 5;
    handler.request_first = 2;
    drive(blocking());
    await(&inner_done);
    close_other();
    await_tasks(2);
    recording_handler_request(&handler, 10);
    await_tasks(5);
    for (int64_t i = 0; i < 5; i++)
        ck_assert_int_eq(recording_handler_extract(&handler, &handler.held[i]),
                         0);
    await(&outer_done);
    ck_assert_int_eq(handler.sum, 0 + 10 + 20 + 30 + 40);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
    close_both();
}
END_TEST

/* Its other tasks cannot be extracted any more, and are given back. */
START_TEST(what_needs_a_map_is_lost_with_the_runtime_of_its_producer)
{
    struct ArrowDeviceArray out;

    open_both(_i | OTHER_RUNTIME);
    handler.request_first = 2;
    drive(mapped(blocking()));
    await_tasks(2);
    close_other();
    ck_assert_int_gt(faulty_allocator_live(&memory), 0);
    ck_assert_int_eq(uva_task_extract(&handler.held[0], &out), ECANCELED);
    await(&outer_done);
    ck_assert_int_eq(outcome.error.code, ECANCELED);
    ck_assert_int_eq(uva_task_extract(&handler.held[1], &out), ECANCELED);
    while (faulty_allocator_live(&memory) != 0)
        (void)sched_yield();
    close_both();
    ck_assert_int_eq(atomic_load(&maps), 0);
}
END_TEST

static int (*record_schema)(struct ArrowAsyncDeviceStreamHandler *self,
                            struct ArrowSchema *schema);

static int wait_in_schema(struct ArrowAsyncDeviceStreamHandler *self,
                          struct ArrowSchema *schema)
{
    ck_assert_int_eq(sem_post(&entered), 0);
    while (sem_wait(&leave) != 0)
        ;
    return record_schema(self, schema);
}

/* The producer has ended on the loop thread while the worker that calls the
 * handler is still inside on_schema, and reads its metadata after that. */
START_TEST(metadata_outlives_a_producer_that_is_called_by_a_worker)
{
    struct uva_pair pair[] = {{.key = "key", .value = "value"}, {0}};
    char block[64];
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    open_both(_i);
    about = block;
    on_worker = true;
    f.fake.batches = 0;
    record_schema = handler.handler.on_schema;
    handler.handler.on_schema = wait_in_schema;
    drive(blocking());
    while (sem_trywait(&entered) != 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    await(&inner_done);
    while (atomic_load(&freed) == 0)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    for (int i = 0; i < 10; i++)
        loop_settle(&f.loop);
    ck_assert_int_eq(sem_post(&leave), 0);
    await(&outer_done);
    ck_assert_str_eq(handler.about, "key=value");
    close_both();
}
END_TEST

int main(void)
{
    TCase *cancels = tcase_create("cancels"), *ends = tcase_create("ends");

    suite_add_loops(cancels, 0, WAYS,
                    a_cancel_waits_for_no_extraction_that_runs,
                    a_cancel_makes_nothing_of_tasks_that_are_not_wanted,
                    a_close_makes_nothing_of_tasks_that_are_not_wanted, NULL);
    suite_add_loops(ends, 0, WAYS,
                    tasks_outlive_the_release_that_follows_an_error, NULL);
    suite_add_loops(ends, 0, 2,
                    tasks_outlive_the_release_that_follows_a_long_wait, NULL);
    suite_add_loops(
        ends, 0, 2, what_needs_no_map_survives_the_runtime_of_its_producer,
        what_needs_a_map_is_lost_with_the_runtime_of_its_producer, NULL);
    suite_add_loops(ends, 0, WAYS,
                    metadata_outlives_a_producer_that_is_called_by_a_worker,
                    NULL);
    if (setenv("UVA_CHECK", "0", 1) != 0) /* the options decide */
        return 1;
    return suite_main("from_async_ours", NULL, NULL, cancels, ends, NULL);
}
