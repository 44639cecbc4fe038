/* SPDX-License-Identifier: Apache-2.0 */
/* Throttles: how many batches pass at once, that further ones wait for a timer,
 * and how many are requested. How long a batch waits is tested in the
 * simulator; the timers that these tests see would fire after hours. Batches
 * have as many bytes as rows. */
#include <check.h>
#include <errno.h>

#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"

static struct asking asking;

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct uva_stream *stream;
static struct uva_pusher *pusher;

/* ---- the fixture -------------------------------------------------------- */

static void set_up(void)
{
    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open(&loop);
    stream = NULL;
    pusher = NULL;
}

static void tear_down(void)
{
    if (pusher != NULL)
        uva_pusher_close(pusher, NULL, NULL);
    uva_stream_release(stream);
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

/* Makes a stream of `count` batches of `length` rows each. */
static void open_arrays(int count, int64_t length)
{
    struct ArrowDeviceArray arrays[64];
    struct ArrowSchema schema;

    batch_schema(&schema);
    for (int i = 0; i < count; i++)
        batch_make(&arrays[i], length);
    stream =
        uva_stream_from_arrays(loop.runtime, &schema, arrays, (size_t)count);
}

static void start(int64_t batches_per_s, int64_t bytes_per_s)
{
    const struct uva_throttle options = {.batches_per_s = batches_per_s,
                                         .bytes_per_s = bytes_per_s};

    ck_assert_int_eq(uva_stream_throttle(stream, &options), 0);
    recording_start(&consumer, stream);
}

static void completes(int64_t batches)
{
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, batches);
    ck_assert(consumer.in_order);
    ck_assert_int_eq(consumer.ordinal, batches - 1);
    ck_assert(!loop_has_timer(&loop));
}

/* ---- bursts ------------------------------------------------------------- */

/* After a burst the next batch would come after a day. */
static const struct {
    int64_t batches_per_s, bytes_per_s, length, burst;
} BURSTS[] = {
    {.batches_per_s = 0, .bytes_per_s = 50, .length = 1 << 20, .burst = 1},
    {.batches_per_s = 1000000000,
     .bytes_per_s = 1,
     .length = 100000,
     .burst = 1},
    {.batches_per_s = INT64_MAX,
     .bytes_per_s = 1,
     .length = 1 << 20,
     .burst = 1},
};

START_TEST(a_batch_that_is_larger_than_a_burst_passes_alone)
{
    open_arrays(3, BURSTS[_i].length);
    start(BURSTS[_i].batches_per_s, BURSTS[_i].bytes_per_s);
    recording_await(&consumer, &loop, BURSTS[_i].burst);
    loop_settle(&loop);
    ck_assert_int_eq(consumer.taken, BURSTS[_i].burst);
    ck_assert(loop_has_timer(&loop));
    uva_stream_cancel(stream, 0, "no more");
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_CANCELLED, ECANCELED, "no more");
    ck_assert(!loop_has_timer(&loop));
}
END_TEST

/* The rates are so high that the batches pass soon: by their number, by their
 * size, and by both. */
START_TEST(all_batches_pass_in_time)
{
    static const int64_t batches[] = {400, 0, 400},
                         bytes[] = {0, 4000, 1000000000};

    open_arrays(50, 10);
    start(batches[_i], bytes[_i]);
    completes(50);
}
END_TEST

START_TEST(batches_without_rows_count_as_batches_only)
{
    open_arrays(64, 0);
    start(0, 1);
    completes(64);
}
END_TEST

static int map_to_nothing(void *ctx, struct uva_batch *in,
                          struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    out->array.length = out->array.children[0]->length = 0;
    return 0;
}

/* The batch that the map gives counts, and not the one it gets. */
START_TEST(batches_that_a_map_empties_count_as_batches_only)
{
    struct fixture f;

    fixture_open(&f, 4);
    f.fake.rows = 1 << 20;
    f.stream = fixture_blocking(&f);
    (void)uva_stream_map(
        f.stream, &(struct uva_map){.batch = map_to_nothing, .on_loop = true});
    (void)uva_stream_throttle(f.stream,
                              &(struct uva_throttle){.bytes_per_s = 1});
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    ck_assert_int_eq(f.got.outcome.error.code, 0);
    ck_assert_int_eq(f.got.taken, 4);
    f.got.wrong = 0; /* the values are gone */
    fixture_close(&f);
}
END_TEST

/* ---- demand ------------------------------------------------------------- */

static int count_map(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)error;
    ++*(int *)ctx;
    uva_array_move(&in->data, out);
    return 0;
}

static void add_counter(int *count)
{
    (void)uva_stream_map(
        stream,
        &(struct uva_map){.batch = count_map, .ctx = count, .on_loop = true});
}

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    (void)outcome;
    ck_assert_ptr_nonnull(batch);
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

START_TEST(ten_stages_move_one_batch_for_a_demand_of_one)
{
    const struct uva_throttle options = {.batches_per_s = 1000000,
                                         .bytes_per_s = 1000000000};
    int counts[10] = {0};
    bool answered = false;

    open_arrays(20, 10);
    for (int i = 0; i < 10; i++) {
        add_counter(&counts[i]);
        ck_assert_int_eq(uva_stream_throttle(stream, &options), 0);
    }
    ck_assert_int_eq(asking_next(&asking, stream, on_next, &answered), 0);
    loop_until(&loop, is_set, &answered);
    loop_settle(&loop);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(counts[i], 1);
}
END_TEST

/* The parallel stage requests 64 batches. The first one passes; as many as make
 * up a burst may wait. */
static const struct {
    struct uva_throttle options;
    int count;
} AHEAD[] = {
    {{.bytes_per_s = 1}, 2}, /* 100 KB in each: a day */
    {{.batches_per_s = 1, .bytes_per_s = 1}, 2},
};

START_TEST(no_more_than_a_burst_is_requested)
{
    int count = 0;

    open_arrays(20, 100000);
    add_counter(&count);
    ck_assert_int_eq(uva_stream_throttle(stream, &AHEAD[_i].options), 0);
    (void)uva_stream_parallel(stream, NULL);
    recording_start(&consumer, stream);
    recording_await(&consumer, &loop, 1);
    loop_settle(&loop);
    ck_assert_int_eq(count, AHEAD[_i].count);
    uva_stream_cancel(stream, 0, "no more");
    recording_await_done(&consumer, &loop);
}
END_TEST

/* A worker extracts before the stage. */
START_TEST(expensive_batches_are_extracted_by_workers)
{
    struct fixture f;

    fixture_open(&f, 9);
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(
        uva_stream_throttle(f.stream,
                            &(struct uva_throttle){.bytes_per_s = 1000000}),
        0);
    fixture_completes(&f, 9);
    ck_assert_int_eq(atomic_load(&f.fake.extracted_here), 0);
    fixture_close(&f);
}
END_TEST

/* ---- errors ------------------------------------------------------------- */

START_TEST(a_failure_follows_the_batches_that_wait)
{
    struct uva_error error = {.code = EDOM, .message = "no good"};
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    stream = uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    if (_i == 0) {
        batch_schema(&schema);
        ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
        for (int i = 1; i < 4; i++) {
            batch_make(&array, i);
            ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0), 0);
        }
    }
    uva_pusher_close(pusher, &error, NULL);
    pusher = NULL;
    ck_assert_int_eq(uva_stream_throttle(
                         stream, &(struct uva_throttle){.batches_per_s = 20}),
                     0);
    (void)uva_stream_parallel(stream, NULL);
    recording_start(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EDOM, "no good");
    ck_assert_str_eq(consumer.transcript,
                     _i == 0 ? "schema 1 2 3 failed" : "failed");
}
END_TEST

static int map_fails(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    if (in->ordinal == 2)
        return uva_error_set(error, ERANGE, "lost");
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(an_extraction_may_fail)
{
    open_arrays(9, 1);
    (void)uva_stream_map(
        stream, &(struct uva_map){.batch = map_fails, .on_loop = _i == 0});
    start(1000, 0);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, ERANGE, "lost");
    ck_assert_int_eq(consumer.taken, 2);
}
END_TEST

START_TEST(a_limit_that_passes_meanwhile_names_the_delay)
{
    const struct uva_throttle slow = {.bytes_per_s = 1};
    const struct uva_timeout soon = {.between_ms = 1};

    open_arrays(3, 100000);
    ck_assert_int_eq(uva_stream_throttle(stream, &slow), 0);
    ck_assert_int_eq(uva_stream_timeout(stream, &soon), 0);
    recording_start(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, ETIMEDOUT,
                    "throttle waits for time to pass");
    ck_assert_int_eq(consumer.taken, 1);
}
END_TEST

START_TEST(a_limit_that_passes_names_the_source)
{
    struct ArrowSchema schema;

    stream = uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    batch_schema(&schema);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    ck_assert_int_eq(
        uva_stream_throttle(stream, &(struct uva_throttle){.bytes_per_s = 1}),
        0);
    ck_assert_int_eq(
        uva_stream_timeout(stream, &(struct uva_timeout){.first_ms = 1}), 0);
    recording_start(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, ETIMEDOUT,
                    "pusher waits for its source");
}
END_TEST

/* ---- sizes -------------------------------------------------------------- */

/* Its size is not known, so it counts for no bytes. */
START_TEST(batches_of_an_unknown_format_count_as_batches_only)
{
    struct ArrowDeviceArray arrays[9];
    struct ArrowSchema schema;

    plain_schema(&schema, "?", "", 0);
    for (int i = 0; i < 9; i++) {
        arrays[i] = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU};
        plain_array(&arrays[i].array, 9, 0, 0);
    }
    stream = uva_stream_from_arrays(loop.runtime, &schema, arrays, 9);
    consumer.transcribes = false;
    start(0, 1);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
}
END_TEST

/* Two batches that claim to be so large that the second one would come after 70
 * years. Their data is not looked at. */
START_TEST(the_longest_delay_is_limited)
{
    struct ArrowDeviceArray arrays[2];
    struct ArrowSchema schema;

    plain_schema(&schema, "l", "", 0);
    for (int i = 0; i < 2; i++) {
        arrays[i] = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU};
        plain_array(&arrays[i].array, (int64_t)1 << 36, 2, 0);
        arrays[i].array.buffers[1] = &schema;
    }
    stream = uva_stream_from_arrays(loop.runtime, &schema, arrays, 2);
    consumer.transcribes = false;
    start(0, 1);
    recording_await(&consumer, &loop, 1);
    loop_settle(&loop);
    ck_assert_int_eq(consumer.taken, 1);
    ck_assert(loop_has_timer(&loop));
}
END_TEST

/* ---- bad options -------------------------------------------------------- */

START_TEST(options_are_checked)
{
    static const struct uva_throttle bad[] = {
        {.batches_per_s = -1, .bytes_per_s = 1},
        {.batches_per_s = 1, .bytes_per_s = -1},
        {.batches_per_s = 0},
        {.batches_per_s = 1, .reserved = {&loop}}};
    static const char *const texts[] = {"negative", "negative", "needed",
                                        "reserved"};
    struct uva_error error;

    for (int i = 0; i < 4; i++) {
        open_arrays(1, 1);
        ck_assert_int_eq(uva_stream_throttle(stream, &bad[i]), EINVAL);
        ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
        text_contains(error.message, texts[i]);
        uva_stream_release(stream);
    }
    open_arrays(1, 1);
    ck_assert_int_eq(uva_stream_throttle(stream, NULL), EINVAL);
    ck_assert_int_eq(uva_stream_throttle(NULL, &bad[0]), EINVAL);
    uva_stream_release(stream);
    open_arrays(1, 1);
    recording_start(&consumer, stream);
    ck_assert_int_eq(uva_stream_throttle(stream, &bad[0]), EBUSY);
    recording_await_done(&consumer, &loop);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("throttles");

    suite_add_loops(tests, 0, sizeof(BURSTS) / sizeof(BURSTS[0]),
                    a_batch_that_is_larger_than_a_burst_passes_alone,
                    all_batches_pass_in_time, NULL);
    suite_add_loops(tests, 0, 2, no_more_than_a_burst_is_requested,
                    a_failure_follows_the_batches_that_wait,
                    an_extraction_may_fail, NULL);
    suite_add(tests, batches_without_rows_count_as_batches_only,
              batches_that_a_map_empties_count_as_batches_only,
              ten_stages_move_one_batch_for_a_demand_of_one,
              expensive_batches_are_extracted_by_workers,
              a_limit_that_passes_meanwhile_names_the_delay,
              a_limit_that_passes_names_the_source,
              batches_of_an_unknown_format_count_as_batches_only,
              the_longest_delay_is_limited, options_are_checked, NULL);
    return suite_main("throttle", set_up, tear_down, tests, NULL);
}
