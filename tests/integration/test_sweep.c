/* SPDX-License-Identifier: Apache-2.0 */
/* Every scenario again and again, with the first allocation failing, then the
 * second, and so on until no allocation fails: each time an error is reported,
 * no batch is lost, and every block is freed. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "stage/limit.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"

enum { BATCHES = 70, FAILURES_MAX = 2000 };

static struct fixture f;
static struct recording_handler handler;
static char metadata[256]; /* of the batches: larger than a slot */
static char column[256];   /* name of the column: larger than a reader's room */
static atomic_long freed;  /* how often the ctx of a map was freed */
static int64_t maps;       /* maps that were given away */

/* ---- stages ------------------------------------------------------------- */

static int pass(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static void pass_free(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&freed, 1);
}

static void joining_stages(void)
{
    (void)uva_stream_rebatch(
        f.stream, &(struct uva_rebatch){.rows = f.fake.rows * 3 / 2});
    maps = 0;
}

/* Cut into slices, which are passed on one after the other. */
static void splitting_stages(void)
{
    (void)uva_stream_rebatch(
        f.stream, &(struct uva_rebatch){.rows = (f.fake.rows + 3) / 4});
    maps = 0;
}

static void no_stage(void)
{
}

static void all_stages(void)
{
    struct uva_map map = {
        .batch = pass, .free_ctx = pass_free, .on_loop = true};

    (void)uva_stream_set_name(f.stream, "swept");
    (void)uva_stream_map(f.stream, &map);
    (void)uva_stream_parallel(f.stream, &(struct uva_parallel){.workers = 2});
    (void)uva_stream_map(f.stream, &map);
    (void)uva__stream_limit(f.stream, BATCHES - 1);
    maps = 2;
}

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)error;
    if (batch->ordinal >= 0)
        memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

/* Fills a window of one, and is called again with an empty batch. */
static int emit_once(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                     void *emitter, struct uva_error *error)
{
    const int code = uva_array_is_live(&in->data) ? emit(emitter, in) : 0;

    (void)ctx;
    (void)error;
    return code == EAGAIN ? EINPROGRESS : code;
}

/* Each leaves the batches as they are. */
static void row_stages(void)
{
    const struct uva_filter filter = {
        .keep = keep_all, .free_ctx = pass_free, .on_loop = true};

    (void)uva_stream_filter(f.stream, &filter);
    (void)uva_stream_transform(
        f.stream, &(struct uva_transform){.batch = emit_once,
                                          .on_loop = true,
                                          .window = {.batches = 1}});
    (void)uva_stream_rebatch(
        f.stream,
        &(struct uva_rebatch){.rows = f.fake.rows, .bytes = f.fake.rows * 8});
    (void)uva_stream_limit_rows(f.stream, BATCHES * f.fake.rows - 1);
    (void)uva_stream_without_offsets(f.stream);
    maps = 1;
}

static int begin_pass(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    struct ArrowDeviceArray taken;

    (void)ctx;
    uva_array_move(&in->data, &taken);
    uva_reply_give(reply, &taken, NULL);
    return 0;
}

static void async_stages(void)
{
    struct uva_async_map map = {
        .begin = begin_pass, .free_ctx = pass_free, .at_once = 4};

    (void)uva_stream_map_async(f.stream, &map);
    map.unordered = true;
    (void)uva_stream_map_async(f.stream, &map);
    maps = 2;
}

/* The only attempt after a failure opens the source. The rates are high. */
static struct uva_stream *real;

static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    struct uva_stream *given = real;

    (void)ctx;
    (void)failed;
    (void)attempt;
    ck_assert_int_eq(passed + rows, 0);
    real = NULL;
    return given;
}

static void real_free(void *ctx)
{
    pass_free(ctx);
    uva_stream_release(real);
}

static void retry_stages(void)
{
    struct uva_pusher *pusher;
    struct uva_error error;

    (void)uva_error_set(&error, ENOMEM, "failed");
    real = f.stream;
    f.stream = uva_stream_from_pusher(f.loop.runtime, NULL, &pusher);
    if (pusher != NULL)
        uva_pusher_close(pusher, &error, NULL);
    (void)uva_stream_retry(f.stream, &(struct uva_retry){.again = again,
                                                         .free_ctx = real_free,
                                                         .times = 1,
                                                         .delay_ms = 1});
    (void)uva_stream_throttle(
        f.stream, &(struct uva_throttle){.batches_per_s = 1000000,
                                         .bytes_per_s = 1000000000});
    maps = 1;
}

/* The limits do not pass. */
static void time_stages(void)
{
    const struct uva_timeout timeout = {.open_ms = 3600000,
                                        .between_ms = 3600000};

    (void)uva_stream_timeout(f.stream, &timeout);
    (void)uva_stream_parallel(f.stream, NULL);
    (void)uva_stream_timeout(f.stream, &timeout);
    maps = 0;
}

static struct uva_stream *empty_stream(void)
{
    return fixture_arrays(&f, NULL, 0);
}

/* An empty stream before the batches, and one after them. */
static void merge_stages(void)
{
    struct uva_stream *others[2] = {f.stream, empty_stream()};

    f.stream = empty_stream();
    (void)uva_stream_merge(f.stream, others, 2, NULL);
    maps = 0;
}

static void concat_stages(void)
{
    struct uva_stream *others[2] = {f.stream, empty_stream()};

    f.stream = empty_stream();
    (void)uva_stream_map(
        others[0], &(struct uva_map){.batch = pass, .free_ctx = pass_free});
    (void)uva_stream_concat(f.stream, others, 2,
                            &(struct uva_merge){.open_at_once = 2});
    maps = 1;
}

/* Of three branches, two are not wanted; the last one is added after a limit.
 */
static void tee_stages(void)
{
    for (int i = 0; i < 3; i++) {
        uva_stream_release(uva_stream_tee(f.stream, NULL));
        if (i == 1)
            (void)uva__stream_limit(f.stream, BATCHES);
    }
    maps = 0;
}

/* ---- consumers ---------------------------------------------------------- */

/* At every seventh batch it is full for a moment. */
static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)batch;
    if (atomic_load(&c->batches) % 7 != 0)
        return;
    uva_stream_resume(f.stream);
    c->answer = EAGAIN;
}

static int to_for_each(struct uva_error *error)
{
    struct uva_consumer consumer = recording_table(&f.got);

    f.got.on_batch = on_batch;
    return uva_stream_for_each(f.stream, &consumer, error);
}

static void take(void *ctx)
{
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    while ((code = uva_stream_take(f.stream, &batch, &outcome)) == 0)
        uva_array_release(&batch.data);
    if (code == ENOENT)
        recording_on_done(ctx, &outcome);
}

static int to_take(struct uva_error *error)
{
    const int code = uva_stream_start_take(f.stream, NULL, take, &f.got, error);

    if (code == 0)
        ck_assert_int_eq(uva_stream_take(f.stream, NULL, NULL), EAGAIN);
    return code;
}

static void collected(void *ctx, const struct uva_stream_info *info,
                      struct ArrowDeviceArray *batches, size_t count,
                      const struct uva_outcome *outcome)
{
    (void)info;
    (void)batches;
    (void)count;
    recording_on_done(ctx, outcome);
}

static int to_collect(struct uva_error *error)
{
    return uva_stream_collect(f.stream, 0, collected, &f.got, error);
}

static int drive(bool on_worker, struct uva_error *error)
{
    struct uva_drive options = {
        .on_done = recording_on_done, .ctx = &f.got, .on_worker = on_worker};

    return uva_stream_drive(f.stream, &handler.handler, &options, error);
}

static int to_handler(struct uva_error *error)
{
    return drive(false, error);
}

static int to_worker(struct uva_error *error)
{
    return drive(true, error);
}

/* ---- the sweep ---------------------------------------------------------- */

static const struct scenario {
    int source; /* index in fixture_sources */
    void (*stages)(void);
    int (*start)(struct uva_error *error);
} SCENARIOS[] = {
    {SOURCE_BLOCKING, no_stage, to_for_each},
    {SOURCE_BLOCKING, all_stages, to_for_each},
    {SOURCE_HOOK, no_stage, to_take},
    {SOURCE_ON_LOOP, no_stage, to_for_each},
    {SOURCE_ON_LOOP, all_stages, to_handler},
    {SOURCE_TASKS, no_stage, to_for_each},
    {SOURCE_TASKS, all_stages, to_collect},
    {SOURCE_TASKS, no_stage, to_handler},
    {SOURCE_TASKS, all_stages, to_worker},
    {SOURCE_BLOCKING, row_stages, to_for_each},
    {SOURCE_BLOCKING, no_stage, to_take},
    {SOURCE_TASKS, all_stages, to_take},
    {SOURCE_TASKS, no_stage, to_take},
    {SOURCE_TASKS, no_stage, to_collect},
    {SOURCE_TASKS, row_stages, to_take},
    {SOURCE_BLOCKING, merge_stages, to_for_each},
    {SOURCE_TASKS, merge_stages, to_take},
    {SOURCE_TASKS, concat_stages, to_for_each},
    {SOURCE_BLOCKING, async_stages, to_for_each},
    {SOURCE_TASKS, async_stages, to_take},
    {SOURCE_BLOCKING, joining_stages, to_take},
    {SOURCE_TASKS, joining_stages, to_collect},
    {SOURCE_BLOCKING, splitting_stages, to_take},
    {SOURCE_TASKS, splitting_stages, to_collect},
    {SOURCE_BLOCKING, merge_stages, to_collect},
    {SOURCE_TASKS, time_stages, to_for_each},
    {SOURCE_BLOCKING, retry_stages, to_for_each},
    {SOURCE_TASKS, retry_stages, to_take},
    {SOURCE_BLOCKING, tee_stages, to_for_each},
    {SOURCE_TASKS, tee_stages, to_take},
};

enum { SCENARIO_COUNT = sizeof(SCENARIOS) / sizeof(SCENARIOS[0]) };

/* A runtime with limits, which is drained once its stream has started, and
 * reports that it is quiet. */
static bool is_limited, is_drained;
static atomic_int quiet; /* reports of a runtime that is quiet */

static void on_drained(void *ctx)
{
    (void)ctx;
    ck_assert(!is_drained);
    is_drained = true;
}

static void on_quiet(void *ctx)
{
    (void)ctx;
    quiet++;
}

static const struct uva_runtime_options limits = {.memory_bytes = 1000,
                                                  .on_quiet = on_quiet};

static void drain(void)
{
    ck_assert_int_eq(
        uva_runtime_drain(f.loop.runtime, UVA_FOREVER, on_drained, NULL), 0);
}

static bool drain_is_over(void *ctx)
{
    (void)ctx;
    return is_drained;
}

static void await_drain(void)
{
    fixture_release(&f);
    loop_until(&f.loop, drain_is_over, NULL);
}

static void await_quiet(void)
{
    while (atomic_load(&quiet) == 0)
        sched_yield();
    ck_assert_int_eq(atomic_load(&quiet), 1);
}

static void set_up(bool tasks)
{
    static const char value[200] = "much";
    const struct uva_pair pair[] = {
        {.key = "k", .value = value, .value_size = sizeof(value)}, {0}};
    size_t size = sizeof(metadata);

    if (is_limited) {
        fixture_open_with(&f, BATCHES, &limits);
        ck_assert_int_eq(
            uva_permits_new(f.loop.runtime, 1, 0, &f.options.permits, NULL), 0);
    } else
        fixture_open(&f, BATCHES);
    is_drained = false;
    atomic_store(&quiet, 0);
    recording_handler_init(&handler, 3, 1);
    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &size), 0);
    f.fake.metadata = tasks ? metadata : NULL;
    f.fake.column = memset(column, 'c', sizeof(column) - 1);
    atomic_store(&freed, 0);
    maps = 0;
}

/* A stream that is opened by a hook may fail before its source is opened. Then
 * there may be no release, so the number of releases is not checked. */
static void tear_down(void)
{
    if (is_limited)
        await_drain();
    fixture_release(&f);
    loop_fail(&f.loop, 0);
    uva_permits_release(f.options.permits);
    loop_close_runtime(&f.loop, 0);
    fixture_close_counted(&f, ANY_COUNT, 1);
    recording_handler_fini(&handler);
    ck_assert_int_eq(atomic_load(&freed), maps);
    if (is_limited)
        await_quiet();
}

/* Plays one scenario. Returns whether no allocation failed. */
static bool play(const struct scenario *scenario, long fail_at)
{
    const struct fixture_source *source = &fixture_sources[scenario->source];
    struct uva_error error = {0};
    int code;
    bool whole;

    set_up(scenario->source == SOURCE_TASKS);
    loop_fail(&f.loop, fail_at);
    f.stream = source->make(&f);
    scenario->stages();
    code = scenario->start(&error);
    if (is_limited)
        drain();
    if (code == 0)
        fixture_await(&f);
    whole = !faulty_allocator_has_failed(&f.loop.memory);
    if (code != 0) {
        ck_assert_msg(error.message[0] != 0, "%s", source->name);
        ck_assert_int_eq(f.got.done, 0);
    } else if (whole) {
        ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    } else if (f.got.outcome.end != UVA_END_COMPLETE) {
        ck_assert_int_eq(f.got.outcome.error.code, ENOMEM);
    }
    tear_down();
    return whole;
}

static void sweep(const struct scenario *scenario, bool limited)
{
    long i = 1;

    is_limited = limited;
    while (!play(scenario, i))
        ck_assert_int_lt(i++, FAILURES_MAX);
    ck_assert_int_gt(i, 5); /* it did allocate */
}

START_TEST(every_allocation_may_fail)
{
    sweep(&SCENARIOS[_i], false);
}
END_TEST

/* One for each stage and each consumer: more take too long in a sanitizer. */
static const struct scenario LIMITED[] = {
    {SOURCE_BLOCKING, all_stages, to_for_each},
    {SOURCE_ON_LOOP, no_stage, to_handler},
    {SOURCE_TASKS, no_stage, to_worker},
    {SOURCE_HOOK, row_stages, to_take},
    {SOURCE_TASKS, joining_stages, to_take},
    {SOURCE_BLOCKING, merge_stages, to_collect},
    {SOURCE_TASKS, concat_stages, to_for_each},
};

enum { LIMITED_COUNT = sizeof(LIMITED) / sizeof(LIMITED[0]) };

START_TEST(every_allocation_may_fail_in_a_limited_runtime_that_drains)
{
    sweep(&LIMITED[_i], true);
}
END_TEST

START_TEST(opening_a_runtime_may_fail_at_every_allocation)
{
    struct faulty_allocator memory;
    struct uva_runtime_options options = {0};
    struct uva_runtime *runtime = NULL;
    struct uva_error error = {0};
    uv_loop_t loop;
    long i;

    ck_assert_int_eq(uv_loop_init(&loop), 0);
    for (i = 1; runtime == NULL; i++) {
        faulty_allocator_init(&memory, i);
        options.allocator = faulty_allocator_table(&memory);
        if (uva_runtime_open(&loop, &options, &runtime, &error) == 0)
            break;
        ck_assert_int_eq(error.code, ENOMEM);
        ck_assert_int_ne(error.message[0], 0);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(faulty_allocator_live(&memory), 0);
    }
    ck_assert_int_gt(i, 2);
    uva_runtime_close(runtime, 0, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("allocations");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, opening_a_runtime_may_fail_at_every_allocation);
    tcase_add_loop_test(tc, every_allocation_may_fail, 0, SCENARIO_COUNT);
    tcase_add_loop_test(
        tc, every_allocation_may_fail_in_a_limited_runtime_that_drains, 0,
        LIMITED_COUNT);
    return suite_main("sweep", NULL, NULL, tc, NULL);
}
