/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of streams: which stages there are, their counts, their waits, and
 * times where they are measured. Sources wait at gates, so the tests do not
 * depend on how long a step takes. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { STAGES = 16 };

static struct fixture f;
static struct uva_stage_stats stages[STAGES];
static size_t count;

static void open_with(int64_t batches, bool measure)
{
    fixture_open_with(&f, batches,
                      &(struct uva_runtime_options){.measure = measure});
}

static void read_stats(const struct uva_stream *stream)
{
    count = STAGES;
    memset(stages, 0x5a, sizeof(stages));
    ck_assert_int_eq(uva_stream_get_stats(stream, stages, &count), 0);
    ck_assert_uint_le(count, STAGES);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 7; k++)
            ck_assert_int_eq(stages[i].reserved[k], 0);
}

/* Checks the names, each followed by the index of the next stage. */
static void stages_are(const char *expected)
{
    char text[512] = "";

    for (size_t i = 0; i < count; i++)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       "%s%s>%d", i > 0 ? " " : "", stages[i].name,
                       (int)stages[i].next);
    ck_assert_str_eq(text, expected);
}

static void counted(size_t i, int64_t requested, int64_t batches, int64_t rows,
                    int64_t bytes)
{
    ck_assert_int_eq(stages[i].requested, requested);
    ck_assert_int_eq(stages[i].batches, batches);
    ck_assert_int_eq(stages[i].rows, rows);
    ck_assert_int_eq(stages[i].bytes, bytes);
}

static int map_same(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static int transform_same(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                          void *emitter, struct uva_error *error)
{
    const int code = emit(emitter, in);

    (void)ctx;
    (void)error;
    return code == EAGAIN ? 0 : code;
}

static void add_map(struct uva_stream *stream, bool on_loop)
{
    ck_assert_int_eq(
        uva_stream_map(
            stream, &(struct uva_map){.batch = map_same, .on_loop = on_loop}),
        0);
}

static void add_transform(struct uva_stream *stream, bool on_loop)
{
    ck_assert_int_eq(
        uva_stream_transform(stream,
                             &(struct uva_transform){.batch = transform_same,
                                                     .on_loop = on_loop}),
        0);
}

/* Runs a merged stream, in which batches have other ordinals than the source
 * gave them. */
static void run_merged(void)
{
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    ck_assert_int_eq(f.got.outcome.error.code, 0);
    f.got.wrong = 0;
}

static bool consumer_waits(void *ctx)
{
    return atomic_load(&f.got.batches) >= *(const long *)ctx;
}

/* ---- which stages there are --------------------------------------------- */

START_TEST(stages_are_listed_from_the_source_on)
{
    open_with(3, false);
    f.stream = fixture_blocking(&f);
    add_map(f.stream, true);
    add_map(f.stream, true);
    (void)uva__stream_limit(f.stream, 100);
    add_transform(f.stream, true);
    read_stats(f.stream);
    stages_are("arrow_stream>1 map>2 map>3 transform>-1");
    ck_assert_int_eq(fixture_run(&f), 0);
    read_stats(f.stream);
    stages_are("arrow_stream>1 map>2 map>3 transform>-1");
    fixture_close(&f);
}
END_TEST

START_TEST(stages_that_the_start_adds_are_there)
{
    open_with(3, false);
    f.stream = fixture_tasks(&f);
    read_stats(f.stream);
    stages_are("tasks>-1");
    ck_assert_int_eq(fixture_run(&f), 0);
    read_stats(f.stream);
    stages_are("tasks>1 parallel>-1");
    counted(0, stages[0].requested, 3, 3 * f.fake.rows, -1);
    counted(1, 4, 3, 3 * f.fake.rows, stages[1].bytes);
    ck_assert_int_gt(stages[1].bytes, 0);
    fixture_close(&f);
}
END_TEST

static struct uva_stream *arrays_of(int n)
{
    struct ArrowDeviceArray arrays[4];

    for (int i = 0; i < n; i++)
        fake_source_batch(&f.fake, i, &arrays[i]);
    return fixture_arrays(&f, arrays, n);
}

START_TEST(streams_that_are_merged_are_there)
{
    struct uva_stream *others[2];

    open_with(0, false);
    others[0] = arrays_of(2);
    add_map(others[0], true);
    others[1] = arrays_of(1);
    ck_assert_int_eq(uva_stream_concat(others[0], others + 1, 1, NULL), 0);
    f.stream = arrays_of(1);
    add_map(f.stream, true);
    ck_assert_int_eq(uva_stream_merge(f.stream, others, 1, NULL), 0);
    add_transform(f.stream, true);
    read_stats(f.stream);
    stages_are("arrays>1 map>6 arrays>3 map>5 arrays>5 "
               "concat>6 merge>7 transform>-1");
    fixture_release(&f);
    fixture_close(&f);
}
END_TEST

START_TEST(a_merge_has_its_inputs_counts)
{
    struct uva_stream *other;

    open_with(0, false);
    other = arrays_of(2);
    f.stream = arrays_of(1);
    ck_assert_int_eq(uva_stream_merge(f.stream, &other, 1, NULL), 0);
    run_merged();
    read_stats(f.stream);
    stages_are("arrays>2 arrays>2 merge>-1");
    ck_assert_int_eq(stages[0].batches, 1);
    ck_assert_int_eq(stages[1].batches, 2);
    ck_assert_int_gt(stages[0].bytes, 0);
    counted(2, 4, 3, 3 * f.fake.rows, stages[0].bytes + stages[1].bytes);
    ck_assert_int_ge(stages[2].queued_max, 1);
    ck_assert_int_eq(stages[2].queued, 0);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(stages[i].waiting, UVA_WAITING_OVER);
    fixture_close(&f);
}
END_TEST

/* ---- counts ------------------------------------------------------------- */

START_TEST(a_stream_that_has_ended_has_its_counts)
{
    int64_t bytes;

    open_with(5, false);
    f.fake.gate_at = 0;
    f.stream = fixture_blocking(&f);
    add_map(f.stream, true);
    add_transform(f.stream, _i == 0);
    fixture_start(&f);
    fixture_await_gate(&f);
    loop_settle(&f.loop); /* the next event has to wake it */
    fake_source_open_gate(&f.fake);
    ck_assert_int_eq(fixture_await(&f), 0);
    do { /* a worker counts a wake-up after it has made it */
        (void)sched_yield();
        read_stats(f.stream);
    } while (stages[0].wakeups < 1);
    bytes = stages[0].bytes;
    ck_assert_int_gt(bytes, 0);
    ck_assert_int_ge(stages[0].requested, 5);
    counted(0, stages[0].requested, 5, 5 * f.fake.rows, bytes);
    counted(1, stages[0].requested, 5, 5 * f.fake.rows, -1);
    counted(2, 6, 5, 5 * f.fake.rows, bytes);
    ck_assert_int_ge(stages[0].queued_max, 1);
    ck_assert_int_gt(stages[0].queued_bytes_max, 0);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(stages[i].waiting, UVA_WAITING_OVER);
        ck_assert_int_eq(stages[i].queued, 0);
        ck_assert_int_eq(stages[i].queued_bytes, 0);
        ck_assert_int_eq(stages[i].dropped, 0);
        ck_assert_int_eq(stages[i].busy_ns, 0);
        ck_assert_int_eq(stages[i].busy_max_ns, 0);
        ck_assert_int_eq(stages[i].starved_ns, 0);
        ck_assert_int_eq(stages[i].idle_ns, 0);
        ck_assert_int_eq(stages[i].worker_wait_ns, 0);
    }
    fixture_close(&f);
}
END_TEST

/* Makes each batch a row shorter. */
static int map_shorter(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    const int code = map_same(ctx, in, out, error);

    out->array.length--;
    return code;
}

/* Fails at the third batch. */
static int map_fails(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    return in->ordinal == 2 ? EIO : map_same(ctx, in, out, error);
}

static void add_maps(int (*batch)(void *ctx, struct uva_batch *in,
                                  struct ArrowDeviceArray *out,
                                  struct uva_error *error),
                     bool on_loop)
{
    ck_assert_int_eq(
        uva_stream_map(f.stream,
                       &(struct uva_map){.batch = batch, .on_loop = on_loop}),
        0);
}

/* Where each of several maps stands: 's' for a map that makes batches shorter.
 */
static const char *const shapes[] = {"---", "s--", "-s-", "--s", "s-s", "sss"};

START_TEST(each_map_has_the_rows_that_it_has_made)
{
    const char *shape = shapes[_i / 2];
    int64_t rows;

    open_with(5, false);
    f.stream = fixture_blocking(&f);
    for (int i = 0; i < 3; i++)
        add_maps(shape[i] == 's' ? map_shorter : map_same, _i % 2 == 0);
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    f.got.wrong = 0; /* which looks at the rows */
    read_stats(f.stream);
    rows = 5 * f.fake.rows;
    for (size_t i = 0; i < 3; i++) {
        rows -= shape[i] == 's' ? 5 : 0;
        counted(i + 1, stages[0].requested, 5, rows, -1);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(the_rows_of_maps_before_one_that_fails_count)
{
    open_with(5, false);
    f.stream = fixture_on_loop(&f);
    add_maps(_i == 0 ? map_same : map_shorter, true);
    add_maps(_i == 2 ? map_shorter : map_same, true);
    add_maps(map_fails, true);
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    ck_assert_int_eq(f.got.outcome.error.code, EIO);
    f.got.wrong = 0;
    read_stats(f.stream);
    counted(1, stages[0].requested, 2, 3 * (f.fake.rows - (_i > 0)), -1);
    counted(2, stages[0].requested, 2, 3 * (f.fake.rows - (_i > 0) - (_i == 2)),
            -1);
    counted(3, stages[0].requested, 2, 2 * (f.fake.rows - (_i > 0) - (_i == 2)),
            -1);
    fixture_close(&f);
}
END_TEST

static int on_schema_unbounded(struct ArrowAsyncDeviceStreamHandler *handler,
                               struct ArrowSchema *schema)
{
    uva_schema_release(schema);
    for (int i = 0; i < 2; i++)
        handler->producer->request(handler->producer, INT64_MAX);
    return 0;
}

static int on_task_extract(struct ArrowAsyncDeviceStreamHandler *handler,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct ArrowDeviceArray array;

    (void)handler;
    (void)metadata;
    if (task == NULL)
        return 0;
    ck_assert_int_eq(uva_task_extract(task, &array), 0);
    uva_array_release(&array);
    return 0;
}

static void on_error_none(struct ArrowAsyncDeviceStreamHandler *handler,
                          int code, const char *message, const char *metadata)
{
    (void)handler;
    (void)code;
    (void)message;
    (void)metadata;
}

static void on_release_done(struct ArrowAsyncDeviceStreamHandler *handler)
{
    handler->release = NULL;
}

static bool handler_is_released(void *ctx)
{
    return ((struct ArrowAsyncDeviceStreamHandler *)ctx)->release == NULL;
}

START_TEST(a_request_without_a_limit_is_the_largest_number)
{
    struct ArrowAsyncDeviceStreamHandler handler = {
        .on_schema = on_schema_unbounded,
        .on_next_task = on_task_extract,
        .on_error = on_error_none,
        .release = on_release_done};

    open_with(4, _i == 1);
    f.stream = fixture_on_loop(&f);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler, NULL, NULL), 0);
    loop_until(&f.loop, handler_is_released, &handler);
    read_stats(f.stream);
    ck_assert_int_eq(stages[0].requested, INT64_MAX);
    ck_assert_int_eq(stages[0].batches, 4);
    fixture_close(&f);
}
END_TEST

/* ---- the wait of a stage ------------------------------------------------ */

START_TEST(inside_the_source_it_works_and_the_others_wait_for_it)
{
    open_with(3, false);
    f.fake.gate_at = 1;
    f.stream = fixture_blocking(&f);
    add_map(f.stream, true);
    add_transform(f.stream, true);
    fixture_start(&f);
    fixture_await_gate(&f);
    loop_until(&f.loop, consumer_waits, &(long){1});
    read_stats(f.stream);
    ck_assert_int_eq(stages[0].waiting, UVA_WAITING_NONE);
    ck_assert_int_eq(stages[1].waiting, UVA_WAITING_SOURCE);
    ck_assert_int_eq(stages[2].waiting, UVA_WAITING_SOURCE);
    fake_source_open_gate(&f.fake);
    ck_assert_int_eq(fixture_await(&f), 0);
    fixture_close(&f);
}
END_TEST

/* A turn may end after any batch: the last one of four is in the transform. */
static bool two_are_held(void *ctx)
{
    (void)ctx;
    read_stats(f.stream);
    return stages[0].batches == 4 && stages[2].queued == 2;
}

START_TEST(without_a_request_it_waits_for_the_consumer)
{
    open_with(20, _i == 1);
    f.got.appetite = 2;
    f.stream = arrays_of(4);
    add_map(f.stream, true);
    (void)uva_stream_transform(f.stream,
                               &(struct uva_transform){.batch = transform_same,
                                                       .on_loop = true,
                                                       .window.batches = 64});
    read_stats(f.stream);
    ck_assert_int_eq(stages[0].waiting, UVA_WAITING_CONSUMER);
    fixture_start(&f);
    loop_until(&f.loop, two_are_held, NULL);
    ck_assert_int_eq(stages[0].waiting, UVA_WAITING_OVER); /* all was taken */
    ck_assert_int_eq(stages[2].waiting, UVA_WAITING_CONSUMER);
    ck_assert_int_eq(atomic_load(&f.got.batches), 2);
    ck_assert_int_ge(stages[2].queued_max, 2);
    ck_assert_int_le(stages[2].queued_max, 4);
    recording_feed(&f.got, 10);
    ck_assert_int_eq(fixture_await(&f), 0);
    read_stats(f.stream);
    ck_assert(_i == 0 ? stages[2].idle_ns == 0 : stages[2].idle_ns > 0);
    fixture_close(&f);
}
END_TEST

START_TEST(without_a_thread_or_its_turn_it_waits)
{
    const enum uva_waiting wanted =
        _i == 0 ? UVA_WAITING_WORKER : UVA_WAITING_PERMIT;
    struct uva_workers *workers;
    struct fixture other;
    struct uva_permits *permits = NULL;
    struct uva_runtime_options options = {.measure = true};

    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.blocking_threads = 1},
                        &workers, NULL),
        0);
    options.workers = workers;
    fixture_open_with(&f, 2, &options);
    uva_workers_release(workers);
    fixture_open_beside(&other, 2, &f);
    if (_i == 1) {
        ck_assert_int_eq(uva_permits_new(f.loop.runtime, 1, 0, &permits, NULL),
                         0);
        f.options.permits = other.options.permits = permits;
    }
    f.fake.gate_at = 0;
    f.stream = fixture_blocking(&f);
    fixture_start(&f);
    fixture_await_gate(&f);
    other.stream = fixture_blocking(&other);
    fixture_start(&other);
    while (uv_run(&f.loop.uv, UV_RUN_NOWAIT) != 0) {
        read_stats(other.stream);
        if (stages[0].waiting == wanted)
            break;
    }
    ck_assert_int_eq(stages[0].waiting, wanted);
    fake_source_open_gate(&f.fake);
    ck_assert_int_eq(fixture_await(&f), 0);
    recording_await_done(&other.got, &f.loop);
    read_stats(other.stream);
    ck_assert_int_gt(stages[0].worker_wait_ns, 0);
    uva_permits_release(permits);
    fixture_close(&other);
    fixture_close(&f);
}
END_TEST

START_TEST(behind_an_event_it_waits_for_the_device)
{
    fixture_open_device(&f, SOFT_POLLS, 2);
    fixture_ready(&f, fixture_device_stream(&f), NULL);
    fixture_start(&f);
    do {
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
        read_stats(f.stream);
    } while (stages[1].waiting != UVA_WAITING_DEVICE);
    stages_are("device_stream>1 ready>-1");
    soft_event_end(&f.device, 0, 0);
    soft_event_end(&f.device, 1, 0);
    ck_assert_int_eq(fixture_await(&f), 0);
    read_stats(f.stream);
    counted(1, stages[1].requested, 2, 2 * f.fake.rows, stages[0].bytes);
    fixture_close(&f);
}
END_TEST

START_TEST(without_its_share_it_waits_for_memory)
{
    struct fixture other;

    fixture_open_with(&f, 50, &(struct uva_runtime_options){.memory_bytes = 1});
    fixture_open_beside(&other, 50, &f);
    f.got.appetite = 1;
    other.got.appetite = 1;
    f.stream = fixture_blocking(&f);
    fixture_start(&f);
    other.stream = fixture_blocking(&other);
    fixture_start(&other);
    do {
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
        read_stats(f.stream);
    } while (stages[0].waiting != UVA_WAITING_MEMORY);
    recording_feed(&f.got, 100);
    recording_feed(&other.got, 100);
    ck_assert_int_eq(fixture_await(&f), 0);
    recording_await_done(&other.got, &f.loop);
    fixture_close(&other);
    fixture_close(&f);
}
END_TEST

/* ---- inside the user's functions ----------------------------------------- */

static enum uva_waiting seen[3];

static int map_looks(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct uva_stage_stats now[8];
    size_t n = 8;

    (void)error;
    ck_assert_int_eq(uva_stream_get_stats(f.stream, now, &n), 0);
    seen[0] = now[0].waiting;
    seen[1] = now[*(int *)ctx].waiting;
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(inside_a_map_it_works)
{
    int at = 1;
    const struct uva_map options = {
        .batch = map_looks, .ctx = &at, .on_loop = _i == 0};

    open_with(1, false);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_map(f.stream, &options), 0);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(seen[1], UVA_WAITING_NONE);
    fixture_close(&f);
}
END_TEST

static int transform_looks(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                           void *emitter, struct uva_error *error)
{
    struct uva_stage_stats now[8];
    size_t n = 8;

    ck_assert_int_eq(uva_stream_get_stats(f.stream, now, &n), 0);
    seen[2] = now[n - 1].waiting;
    return transform_same(ctx, in, emit, emitter, error);
}

START_TEST(inside_a_transform_it_works)
{
    const struct uva_transform options = {.batch = transform_looks,
                                          .on_loop = _i == 0};

    open_with(1, false);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_transform(f.stream, &options), 0);
    seen[2] = UVA_WAITING_MEMORY;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(seen[2], UVA_WAITING_NONE);
    fixture_close(&f);
}
END_TEST

static atomic_bool held, holding;

/* Keeps its thread until the test goes on. */
static int map_holds(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    atomic_store(&holding, true);
    while (atomic_load(&held))
        (void)sched_yield();
    return map_same(ctx, in, out, error);
}

START_TEST(a_map_without_a_thread_waits_for_a_worker)
{
    const struct uva_map holds = {.batch = map_holds};
    struct uva_runtime_options options = {0};
    struct uva_workers *workers;
    struct fixture other;

    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.compute_threads = 1},
                        &workers, NULL),
        0);
    options.workers = workers;
    fixture_open_with(&f, 1, &options);
    uva_workers_release(workers);
    fixture_open_beside(&other, 1, &f);
    atomic_store(&held, true);
    other.stream = fixture_blocking(&other);
    ck_assert_int_eq(uva_stream_map(other.stream, &holds), 0);
    fixture_start(&other);
    while (!atomic_load(&holding))
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    read_stats(other.stream);
    ck_assert_int_eq(stages[1].waiting, UVA_WAITING_NONE);
    ck_assert_int_eq(stages[2].waiting, UVA_WAITING_NONE);
    f.stream = fixture_blocking(&f);
    add_map(f.stream, false);
    fixture_start(&f);
    do {
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
        read_stats(f.stream);
    } while (stages[2].waiting != UVA_WAITING_WORKER);
    ck_assert_int_eq(stages[1].waiting, UVA_WAITING_WORKER);
    stages_are("arrow_stream>1 map>2 parallel>-1");
    atomic_store(&held, false);
    recording_await_done(&other.got, &f.loop);
    ck_assert_int_eq(fixture_await(&f), 0);
    read_stats(f.stream);
    counted(1, stages[0].requested, 1, f.fake.rows, -1);
    fixture_close(&other);
    fixture_close(&f);
}
END_TEST

/* ---- times -------------------------------------------------------------- */

START_TEST(times_are_measured_where_that_is_asked_for)
{
    open_with(3, true);
    f.fake.gate_at = 1;
    f.stream = fixture_blocking(&f);
    add_map(f.stream, false);
    add_transform(f.stream, false);
    fixture_start(&f);
    recording_await(&f.got, &f.loop, 1);
    fixture_await_gate(&f);
    do { /* until all stages wait for the second batch, and know it */
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
        read_stats(f.stream);
    } while (stages[2].waiting != UVA_WAITING_SOURCE);
    (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    fake_source_open_gate(&f.fake);
    ck_assert_int_eq(fixture_await(&f), 0);
    read_stats(f.stream);
    stages_are("arrow_stream>1 map>2 transform>-1");
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_gt(stages[i].busy_ns, 0);
        ck_assert_int_gt(stages[i].busy_max_ns, 0);
        ck_assert_int_le(stages[i].busy_max_ns, stages[i].busy_ns);
        ck_assert_int_eq(stages[i].bytes, stages[0].bytes);
    }
    ck_assert_int_gt(stages[0].starved_ns, 0);
    ck_assert_int_gt(stages[2].starved_ns, 0);
    ck_assert_int_gt(stages[0].worker_wait_ns, 0);
    ck_assert_int_gt(stages[2].worker_wait_ns, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(sizes_of_lazy_batches_are_measured_too)
{
    open_with(3, true);
    f.stream = fixture_tasks(&f);
    if (_i == 1)
        add_map(f.stream, false);
    ck_assert_int_eq(fixture_run(&f), 0);
    read_stats(f.stream);
    ck_assert_int_gt(stages[0].bytes, 0);
    ck_assert_int_eq(stages[1].bytes, stages[0].bytes);
    ck_assert_int_gt(stages[0].busy_ns, 0);
    fixture_close(&f);
}
END_TEST

/* ---- calls -------------------------------------------------------------- */

START_TEST(arguments_are_checked)
{
    open_with(0, false);
    f.stream = fixture_blocking(&f);
    count = 1;
    ck_assert_int_eq(uva_stream_get_stats(NULL, stages, &count), EINVAL);
    ck_assert_int_eq(uva_stream_get_stats(f.stream, stages, NULL), EINVAL);
    ck_assert_int_eq(uva_stream_get_stats(f.stream, NULL, &count), EINVAL);
    ck_assert_uint_eq(count, 1);
    count = 0;
    ck_assert_int_eq(uva_stream_get_stats(f.stream, NULL, &count), 0);
    ck_assert_uint_eq(count, 1);
    add_map(f.stream, true);
    stages[1].name = NULL;
    ck_assert_int_eq(uva_stream_get_stats(f.stream, stages, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(stages[0].next, 1); /* which had no room */
    ck_assert_ptr_null(stages[1].name);
    fixture_release(&f);
    fixture_close(&f);
}
END_TEST

START_TEST(a_failed_stream_has_no_stages)
{
    struct uva_stream *nothing = uva_stream_from_arrays(NULL, NULL, NULL, 0);

    open_with(0, false);
    read_stats(nothing);
    ck_assert_uint_eq(count, 0);
    uva_stream_release(nothing);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva__stream_limit(f.stream, -1), EINVAL);
    read_stats(f.stream);
    ck_assert_uint_eq(count, 0);
    fixture_release(&f);
    fixture_close(&f);
}
END_TEST

/* ---- other threads ------------------------------------------------------ */

static atomic_bool over;

/* Reads the statistics until the stream is over. */
static void *reader_run(void *ctx)
{
    struct uva_stage_stats now[STAGES] = {0}, before[STAGES] = {0};
    struct uva_stream *stream = ctx;
    size_t n;

    do {
        n = STAGES;
        ck_assert_int_eq(uva_stream_get_stats(stream, now, &n), 0);
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_ge(now[i].batches, before[i].batches);
            ck_assert_int_ge(now[i].rows, before[i].rows);
            ck_assert_int_ge(now[i].requested, before[i].requested);
            ck_assert_int_ge(now[i].queued_max, before[i].queued_max);
            ck_assert_int_ge(now[i].waiting, UVA_WAITING_NONE);
            ck_assert_int_le(now[i].waiting, UVA_WAITING_OVER);
        }
        memcpy(before, now, sizeof(before));
    } while (!atomic_load(&over));
    uva_stream_release(stream);
    return NULL;
}

START_TEST(any_thread_reads_them_while_the_stream_runs)
{
    struct uva_stream *other;
    pthread_t thread;

    open_with(3000, _i == 1);
    other = arrays_of(3);
    f.stream = fixture_blocking(&f);
    atomic_store(&over, false);
    ck_assert_int_eq(
        pthread_create(&thread, NULL, reader_run, uva_stream_acquire(f.stream)),
        0);
    add_map(f.stream, false);
    ck_assert_int_eq(
        uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2}), 0);
    ck_assert_int_eq(uva_stream_merge(f.stream, &other, 1, NULL), 0);
    add_transform(f.stream, false);
    run_merged();
    read_stats(f.stream);
    stages_are("arrow_stream>1 map>2 parallel>4 arrays>4 merge>5 "
               "transform>-1");
    ck_assert_int_eq(stages[1].batches, 3000);
    ck_assert_int_eq(stages[5].batches, 3003);
    fixture_release(&f);
    atomic_store(&over, true);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    fixture_close(&f);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Builds and runs a stream; its k-th allocation fails. */
static int run_with_fault(long k, bool measure)
{
    int code;

    open_with(3, measure);
    f.got.in_order = true;
    loop_fail(&f.loop, k);
    f.stream = fixture_blocking(&f);
    (void)uva_stream_map(f.stream,
                         &(struct uva_map){.batch = map_same, .on_loop = true});
    (void)uva_stream_transform(
        f.stream,
        &(struct uva_transform){.batch = transform_same, .on_loop = true});
    code = fixture_try(&f, NULL);
    if (code == 0)
        code = fixture_await(&f);
    loop_fail(&f.loop, 0);
    count = STAGES;
    ck_assert_int_eq(uva_stream_get_stats(f.stream, stages, &count), 0);
    fixture_release(&f);
    fixture_close(&f);
    return code;
}

START_TEST(each_allocation_may_fail)
{
    long k = 1;
    int code;

    while ((code = run_with_fault(k++, _i == 1)) != 0)
        ck_assert_int_eq(code, ENOMEM);
    ck_assert_int_gt(k, 6);
    ck_assert_uint_eq(count, 3);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("statistics");

    suite_add(tests, stages_are_listed_from_the_source_on,
              stages_that_the_start_adds_are_there,
              streams_that_are_merged_are_there, a_merge_has_its_inputs_counts,
              inside_the_source_it_works_and_the_others_wait_for_it,
              behind_an_event_it_waits_for_the_device,
              without_its_share_it_waits_for_memory,
              a_map_without_a_thread_waits_for_a_worker,
              times_are_measured_where_that_is_asked_for, arguments_are_checked,
              a_failed_stream_has_no_stages, NULL);
    suite_add_loops(tests, 0, 2, a_stream_that_has_ended_has_its_counts,
                    a_request_without_a_limit_is_the_largest_number,
                    without_a_request_it_waits_for_the_consumer,
                    without_a_thread_or_its_turn_it_waits,
                    inside_a_map_it_works, inside_a_transform_it_works,
                    sizes_of_lazy_batches_are_measured_too,
                    any_thread_reads_them_while_the_stream_runs,
                    each_allocation_may_fail, NULL);
    suite_add_loops(tests, 0, 12, each_map_has_the_rows_that_it_has_made, NULL);
    suite_add_loops(tests, 0, 3, the_rows_of_maps_before_one_that_fails_count,
                    NULL);
    return suite_main("stats", NULL, NULL, tests, NULL);
}
