/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of streams: windows that count bytes, the budget of a runtime, the
 * sources that it opens, and the memory of a stream that waits. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/window.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/stages.h"

enum { ROWS = 1000, SIZE = 8 * ROWS, STREAMS = 8 };

static struct fixture f, more[STREAMS];
static int opened; /* fixtures of `more` that are open */

static int map_move(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static const struct uva_map mapping = {.batch = map_move};

static void open_more(const struct uva_runtime_options *options, int count,
                      int64_t batches)
{
    fixture_open_with(&f, batches, options);
    f.fake.rows = ROWS;
    for (opened = 0; opened < count; opened++) {
        fixture_open_beside(&more[opened], batches, &f);
        more[opened].fake.rows = ROWS;
    }
}

static void tear_down(void)
{
    while (opened > 0)
        fixture_close(&more[--opened]);
    fixture_close(&f);
}

/* All fixtures are on one loop. */
static int await_end(struct fixture *one)
{
    recording_await_done(&one->got, &f.loop);
    return one->got.outcome.error.code;
}

static bool is_at_gate(void *ctx)
{
    struct fixture *one = ctx;

    loop_nudge(&f.loop);
    return fake_source_is_waiting(&one->fake);
}

static struct uva_runtime_stats stats_now(void)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(f.loop.runtime, &stats);
    return stats;
}

static bool is_delivered(void *ctx)
{
    const struct fixture *one = ctx;

    return atomic_load(&one->got.batches) > 0;
}

/* ---- windows ------------------------------------------------------------ */

START_TEST(a_stage_counts_the_bytes_that_it_has_asked_for)
{
    open_more(&(struct uva_runtime_options){0}, 0, 1000);
    f.options.on_loop = true;
    f.options.window.bytes = 2 * SIZE;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_map(f.stream, &mapping), 0);
    ck_assert_int_eq(
        uva_stream_parallel(
            f.stream,
            &(struct uva_parallel){.workers = 1, .window.bytes = 4 * SIZE}),
        0);
    f.got.appetite = 1;
    fixture_start(&f);
    loop_until(&f.loop, is_delivered, &f);
    loop_settle(&f.loop);
    loop_settle(&f.loop);
    /* the windows, a batch too many in the source's, one on its way, one with
     * the worker, and the schemas */
    ck_assert_int_le(atomic_load(&f.fake.live), 2 + 1 + 4 + 1 + 1 + 4);
    uva_stream_cancel(f.stream, 0, NULL);
    await_end(&f);
}
END_TEST

START_TEST(a_window_that_is_not_valid_is_not_written)
{
    const struct uva_window bad = {.batches = -1};
    struct uva__window out = {.batches = 7};

    fixture_open(&f, 0);
    ck_assert_int_eq(uva__window_complete(&bad, &out), EINVAL);
    ck_assert_int_eq(out.batches, 7);
}
END_TEST

/* ---- sizes that are claimed ---------------------------------------------- */

/* An array of 2^62 bytes, as its lengths and its type claim. */
struct claim {
    struct ArrowArray child, *children;
    const void *no_buffer, *buffers[2];
};

static int claims; /* arrays to be given */

static void claim_release(struct ArrowArray *array)
{
    array->release = NULL;
    free(array->private_data);
}

static void child_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static int claim_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct claim *claim = calloc(1, sizeof(*claim));

    (void)stream;
    ck_assert_ptr_nonnull(claim);
    memset(out, 0, sizeof(*out));
    if (claims-- == 0) {
        free(claim);
        return 0;
    }
    claim->children = &claim->child;
    claim->buffers[1] = claim;
    claim->child = (struct ArrowArray){.length = (int64_t)1 << 32,
                                       .n_buffers = 2,
                                       .buffers = claim->buffers,
                                       .release = child_release};
    *out = (struct ArrowArray){.length = (int64_t)1 << 32,
                               .n_buffers = 1,
                               .buffers = &claim->no_buffer,
                               .n_children = 1,
                               .children = &claim->children,
                               .release = claim_release,
                               .private_data = claim};
    return 0;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int claim_schema(struct ArrowArrayStream *stream,
                        struct ArrowSchema *out)
{
    static struct ArrowSchema child, *children = &child;

    (void)stream;
    child = (struct ArrowSchema){
        .format = "w:1073741824", .name = "c", .release = schema_release};
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = &children,
                                .release = schema_release};
    return 0;
}

static const char *no_text(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void claim_end(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static struct uva_stream *claim_stream(struct uva_runtime *runtime)
{
    struct ArrowArrayStream source = {claim_schema, claim_next, no_text,
                                      claim_end, NULL};

    claims = 20;
    return uva_stream_from_arrow_stream(runtime, &source, NULL);
}

static int count_batch(void *ctx, struct uva_batch *batch)
{
    (void)batch;
    ++*(int *)ctx;
    return 0;
}

START_TEST(sizes_that_overflow_a_sum_are_limited_in_every_window)
{
    struct uva_runtime *runtime;
    struct uva_stream *stream;
    struct ArrowArrayStream out;
    struct ArrowArray array;
    int count = 0;

    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &runtime, NULL), 0);
    stream = claim_stream(runtime);
    ck_assert_int_eq(uva_stream_to_arrow_stream(stream, NULL, &out, NULL), 0);
    uva_stream_release(stream);
    for (; out.get_next(&out, &array) == 0 && array.release != NULL; count++)
        array.release(&array);
    out.release(&out);
    ck_assert_int_eq(count, 20);
    stream = claim_stream(runtime);
    ck_assert_int_eq(uva_stream_ready(stream, NULL), 0);
    ck_assert_int_eq(uva_stream_map(stream, &mapping), 0);
    ck_assert_int_eq(
        uva_stream_for_each(
            stream,
            &(struct uva_consumer){.on_batch = count_batch, .ctx = &count},
            NULL),
        0);
    uva_stream_release(stream);
    ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
    ck_assert_int_eq(count, 40);
}
END_TEST

/* ---- the budget of a runtime --------------------------------------------- */

START_TEST(a_budget_bounds_what_all_streams_hold)
{
    const struct uva_runtime_options options = {.memory_bytes = 4 * SIZE};
    struct uva_runtime_stats stats;
    long live = 0;

    open_more(&options, STREAMS, 1000);
    for (int i = 0; i < STREAMS; i++) {
        more[i].options.on_loop = true;
        more[i].stream = fixture_blocking(&more[i]);
        ck_assert_int_eq(uva_stream_map(more[i].stream, &mapping), 0);
        more[i].got.appetite = 1;
        fixture_start(&more[i]);
    }
    for (int i = 0; i < STREAMS; i++)
        loop_until(&f.loop, is_delivered, &more[i]);
    loop_settle(&f.loop);
    loop_settle(&f.loop);
    for (int i = 0; i < STREAMS; i++)
        live += atomic_load(&more[i].fake.live) - 4; /* schemas */
    stats = stats_now();
    ck_assert_int_le(live, 3 * STREAMS);
    ck_assert_int_ge(stats.memory_held, STREAMS * SIZE);
    ck_assert_int_ge(stats.memory_excess,
                     stats.memory_held - options.memory_bytes);
    for (int i = 0; i < STREAMS; i++) {
        uva_stream_cancel(more[i].stream, 0, NULL);
        await_end(&more[i]);
    }
    ck_assert_int_eq(stats_now().memory_held, 0);
}
END_TEST

START_TEST(a_full_budget_stops_no_stream)
{
    const struct uva_runtime_options options = {.memory_bytes = 1};
    const int kind = _i % FIXTURE_SOURCES, stage = _i / FIXTURE_SOURCES;

    open_more(&options, 1, 50);
    for (struct fixture *one = &f; one != NULL;
         one = one == &f ? &more[0] : NULL) {
        one->stream = fixture_sources[kind].make(one);
        if (stage == 1)
            ck_assert_int_eq(uva_stream_map(one->stream, &mapping), 0);
        if (stage == 2)
            ck_assert_int_eq(uva_stream_ready(one->stream, NULL), 0);
        if (stage == 3)
            ck_assert_int_eq(
                uva_stream_parallel(one->stream,
                                    &(struct uva_parallel){.workers = 2}),
                0);
        fixture_start(one);
    }
    ck_assert_int_eq(await_end(&f), 0);
    ck_assert_int_eq(await_end(&more[0]), 0);
    ck_assert_int_eq(f.got.taken, 50);
    ck_assert_int_eq(more[0].got.taken, 50);
    ck_assert_int_eq(stats_now().memory_held, 0);
    if (kind != SOURCE_TASKS || stage != 0)
        ck_assert_int_gt(stats_now().memory_excess, 0);
}
END_TEST

START_TEST(a_full_budget_stops_no_reader)
{
    const struct uva_runtime_options options = {.memory_bytes = 1 + _i * SIZE};
    struct uva_runtime *runtime;
    struct fake_source fake;
    struct ArrowArrayStream source, out;
    struct ArrowArray array;
    struct uva_runtime_stats stats;
    struct uva_stream *stream;
    int count = 0;

    fake_source_init(&fake, 200);
    fake.rows = ROWS;
    fake_source_plain(&fake, &source);
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, NULL), 0);
    stream = uva_stream_from_arrow_stream(runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_to_arrow_stream(stream, NULL, &out, NULL), 0);
    uva_stream_release(stream);
    for (; out.get_next(&out, &array) == 0 && array.release != NULL; count++)
        array.release(&array);
    out.release(&out);
    ck_assert_int_eq(count, 200);
    do
        uva_runtime_get_stats(runtime, &stats);
    while (stats.streams_open > 0);
    ck_assert_int_eq(stats.memory_held, 0);
    ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
    fake_source_fini(&fake);
}
END_TEST

enum { MERGED = 3 };

/* Joins the streams of the first fixtures into the first one's, by merge, or by
 * concat. */
static void join_streams(bool merge)
{
    struct uva_stream *others[MERGED - 1];

    for (int i = 1; i < MERGED; i++) {
        others[i - 1] = more[i].stream;
        more[i].stream = NULL;
    }
    ck_assert_int_eq(
        merge ? uva_stream_merge(more[0].stream, others, MERGED - 1, NULL)
              : uva_stream_concat(more[0].stream, others, MERGED - 1,
                                  &(struct uva_merge){.open_at_once = 2}),
        0);
}

static bool sources_are_freed(void *ctx)
{
    bool all = true;

    (void)ctx;
    loop_nudge(&f.loop);
    for (int i = 0; i < MERGED; i++)
        all = all && atomic_load(&more[i].fake.live) == 0 &&
              atomic_load(&more[i].fake.freed) == more[i].contexts;
    return all;
}

/* The stream is over: turns the loop until its sources are gone. The ordinals
 * were the merge's. */
static void await_sources(void)
{
    fixture_release(&more[0]);
    loop_until(&f.loop, sources_are_freed, NULL);
    more[0].got.wrong = 0;
}

static bool each_holds_one(void *ctx)
{
    (void)ctx;
    return stats_now().memory_held >= MERGED * SIZE;
}

START_TEST(a_budget_bounds_what_a_merge_holds)
{
    const struct uva_runtime_options options = {.memory_bytes = 4 * SIZE};
    long live = 0;

    open_more(&options, MERGED, 1000);
    for (int i = 0; i < MERGED; i++) {
        more[i].options.on_loop = _i == 0;
        more[i].stream =
            _i == 0 ? fixture_blocking(&more[i]) : fixture_tasks(&more[i]);
    }
    join_streams(true);
    more[0].got.appetite = 1;
    fixture_start(&more[0]);
    loop_until(&f.loop, is_delivered, &more[0]);
    loop_until(&f.loop, each_holds_one, NULL);
    loop_settle(&f.loop);
    loop_settle(&f.loop);
    for (int i = 0; i < MERGED; i++)
        live += atomic_load(&more[i].fake.given);
    if (_i == 0)
        ck_assert_int_le(live, 4 + 3 * MERGED);
    uva_stream_cancel(more[0].stream, 0, NULL);
    await_end(&more[0]);
    await_sources();
    ck_assert_int_eq(stats_now().memory_held, 0);
}
END_TEST

START_TEST(a_full_budget_stops_no_merge)
{
    const struct uva_runtime_options options = {.memory_bytes = 1};
    const int kind = _i % FIXTURE_SOURCES;

    open_more(&options, MERGED, 20);
    for (int i = 0; i < MERGED; i++)
        more[i].stream = fixture_sources[kind].make(&more[i]);
    join_streams(_i < FIXTURE_SOURCES);
    fixture_start(&more[0]);
    ck_assert_int_eq(await_end(&more[0]), 0);
    ck_assert_int_eq(more[0].got.taken, 20 * MERGED);
    await_sources();
    ck_assert_int_eq(stats_now().memory_held, 0);
    ck_assert_int_gt(stats_now().memory_excess, 0);
}
END_TEST

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    (void)info;
    (void)batches;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    *(size_t *)ctx = count;
}

static bool is_collected(void *ctx)
{
    return *(size_t *)ctx > 0;
}

START_TEST(what_is_collected_counts_and_stops_no_stream)
{
    const struct uva_runtime_options options = {.memory_bytes = 4 * SIZE};
    struct uva_runtime_stats stats;
    size_t count = 0;

    open_more(&options, 1, 40);
    f.fake.gate_at = 20;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_collect(f.stream, 0, on_collected, &count, NULL), 0);
    loop_until(&f.loop, is_at_gate, &f);
    loop_settle(&f.loop);
    stats = stats_now();
    ck_assert_int_ge(stats.memory_held, 20 * SIZE);
    ck_assert_int_ge(stats.memory_excess, 16 * SIZE);
    more[0].stream = fixture_blocking(&more[0]);
    fixture_start(&more[0]);
    ck_assert_int_eq(await_end(&more[0]), 0);
    ck_assert_int_eq(more[0].got.taken, 40);
    fake_source_open_gate(&f.fake);
    loop_until(&f.loop, is_collected, &count);
    ck_assert_int_eq((int)count, 40);
    ck_assert_int_eq(stats_now().memory_held, 0);
}
END_TEST

static int (*fake_next)(struct ArrowArrayStream *self, struct ArrowArray *out);
static int64_t held; /* when the source was called last */

static int next_looks(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    held = stats_now().memory_held;
    return fake_next(self, out);
}

/* A source on the loop thread pauses at a window full of bytes, and goes on in
 * the same run in which the budget gives it no more memory. */
START_TEST(batches_behind_a_pause_on_the_loop_thread_count)
{
    const struct uva_runtime_options options = {.memory_bytes = 8 * SIZE};
    struct ArrowArrayStream source;
    size_t count = 0;

    open_more(&options, 0, 40);
    f.options.on_loop = true;
    f.options.window.bytes = SIZE;
    f.readers = f.contexts = 1;
    fake_source_plain(&f.fake, &source);
    fake_next = source.get_next;
    source.get_next = next_looks;
    f.stream =
        uva_stream_from_arrow_stream(f.loop.runtime, &source, &f.options);
    ck_assert_int_eq(
        uva_stream_collect(f.stream, 0, on_collected, &count, NULL), 0);
    loop_until(&f.loop, is_collected, &count);
    ck_assert_int_eq((int)count, 40);
    ck_assert_int_eq(held, 40 * SIZE);
    ck_assert_int_eq(stats_now().memory_held, 0);
}
END_TEST

START_TEST(a_full_budget_admits_one_push_at_a_time)
{
    const struct uva_runtime_options options = {.memory_bytes = 1};
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    struct uva_pusher *pusher;

    open_more(&options, 0, 4);
    f.got.appetite = 0;
    f.stream = uva_stream_from_pusher(f.loop.runtime, NULL, &pusher);
    fake_source_schema(&f.fake, &schema);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    fixture_start(&f);
    for (int i = 0; i < 2; i++) { /* the first fills the budget */
        fake_source_batch(&f.fake, i, &array);
        ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0),
                         i == 0 ? 0 : EAGAIN);
        loop_settle(&f.loop);
    }
    uva_pusher_close(pusher, NULL, NULL);
    uva_stream_cancel(f.stream, 0, NULL);
    await_end(&f);
}
END_TEST

/* ---- options ------------------------------------------------------------- */

START_TEST(options_that_are_negative_are_named)
{
    const struct uva_runtime_options bad[] = {{.memory_bytes = -1},
                                              {.turn_us = -1}};
    const char *const names[] = {"memory_bytes", "turn_us"};
    struct uva_runtime *runtime;
    struct uva_error error = {0};

    fixture_open(&f, 0);
    ck_assert_int_eq(uva_runtime_open(NULL, &bad[_i], &runtime, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, names[_i]));
}
END_TEST

/* ---- the memory of a stream ---------------------------------------------- */

static int64_t heap; /* bytes allocated now */

static void *heap_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    heap += (int64_t)size;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void heap_dealloc(void *ctx, void *block, size_t size)
{
    (void)ctx;
    heap -= (int64_t)size;
    free(block);
}

START_TEST(a_stopped_stream_holds_little)
{
    enum { COUNT = 64 };
    struct uva_stream *streams[COUNT];
    struct recording_consumer got = {.appetite = 0};
    const struct uva_consumer consumer = recording_table(&got);
    const struct uva_arrow_source on_loop = {.on_loop = true};
    struct uva_runtime *runtime;
    struct fake_source fakes[COUNT];
    struct ArrowArrayStream source;
    int64_t before;

    fixture_open(&f, 0);
    ck_assert_int_eq(
        uva_runtime_open(&f.loop.uv,
                         &(struct uva_runtime_options){
                             .allocator = {heap_alloc, heap_dealloc, NULL}},
                         &runtime, NULL),
        0);
    before = heap;
    for (int i = 0; i < COUNT; i++) {
        fake_source_init(&fakes[i], 2);
        fake_source_plain(&fakes[i], &source);
        streams[i] = uva_stream_from_arrow_stream(runtime, &source, &on_loop);
        ck_assert_int_eq(uva_stream_for_each(streams[i], &consumer, NULL), 0);
    }
    while (atomic_load(&got.schemas) < COUNT)
        loop_turn(&f.loop);
    ck_assert_int_le((heap - before) / COUNT, 4096);
    for (int i = 0; i < COUNT; i++) {
        uva_stream_drop(streams[i]);
        while (atomic_load(&fakes[i].released) == 0)
            (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    }
    ck_assert_int_eq(uva_runtime_close(runtime, 0, NULL, NULL), 0);
    for (int i = 0; i < 100 && heap > 0; i++)
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    for (int i = 0; i < COUNT; i++)
        fake_source_fini(&fakes[i]);
    ck_assert_int_eq(heap, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("memory");

    tcase_set_timeout(tc, 60);
    suite_add(tc, a_stage_counts_the_bytes_that_it_has_asked_for,
              a_window_that_is_not_valid_is_not_written,
              sizes_that_overflow_a_sum_are_limited_in_every_window,
              a_budget_bounds_what_all_streams_hold,
              what_is_collected_counts_and_stops_no_stream,
              batches_behind_a_pause_on_the_loop_thread_count,
              a_full_budget_admits_one_push_at_a_time,
              a_stopped_stream_holds_little, NULL);
    tcase_add_loop_test(tc, a_full_budget_stops_no_stream, 0,
                        4 * FIXTURE_SOURCES);
    tcase_add_loop_test(tc, a_full_budget_stops_no_reader, 0, 8);
    tcase_add_loop_test(tc, a_budget_bounds_what_a_merge_holds, 0, 2);
    tcase_add_loop_test(tc, a_full_budget_stops_no_merge, 0,
                        2 * FIXTURE_SOURCES);
    tcase_add_loop_test(tc, options_that_are_negative_are_named, 0, 2);
    return suite_main("memory", NULL, tear_down, tc, NULL);
}
