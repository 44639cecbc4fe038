/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that choose rows: filter, limit_rows and rebatch. The values of joined
 * batches are compared with Arrow C++ in tests/interop. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "stage/limit.h"
#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct asking asking;

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct {
    int64_t fails_at; /* the filter fails at this batch; negative: never */
    long freed;       /* how often its ctx was freed */
} filter;

static void set_up(void)
{
    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open(&loop);
    filter.fails_at = -1;
    filter.freed = 0;
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

/* Makes a stream of batches with the given lengths; the last one is -1. */
static struct uva_stream *stream_of(const int *lengths)
{
    struct ArrowDeviceArray arrays[16];
    struct ArrowSchema schema;
    size_t count = 0;

    batch_schema(&schema);
    for (; lengths[count] >= 0; count++)
        batch_make(&arrays[count], lengths[count]);
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, count);
}

static void play(struct uva_stream *stream, const char *transcript)
{
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, transcript);
}

static void refused(struct uva_stream *stream, int code, const char *text)
{
    struct uva_error error = {0};

    ck_assert_int_eq(code, EINVAL);
    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    text_contains(error.message, text);
    uva_stream_release(stream);
}

static const int LENGTHS[] = {3, 0, 2, 5, 1, -1};

/* ---- filter ------------------------------------------------------------- */

static int keep_even(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                     struct uva_error *error)
{
    ck_assert_ptr_eq(ctx, &filter);
    ck_assert_int_eq(bits[0], 0);
    if (batch->ordinal == filter.fails_at)
        return uva_error_set(error, EDOM, "not this one");
    if (batch->ordinal % 2 == 0)
        memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

static void filter_free(void *ctx)
{
    ck_assert_ptr_eq(ctx, &filter);
    filter.freed++;
}

static const struct uva_filter EVEN = {
    .keep = keep_even, .free_ctx = filter_free, .ctx = &filter};

START_TEST(a_filter_passes_on_what_it_keeps)
{
    struct uva_stream *stream = stream_of(LENGTHS);
    struct uva_filter options = EVEN;

    options.on_loop = _i == 1;
    ck_assert_int_eq(uva_stream_filter(stream, &options), 0);
    play(stream, "schema 3 2 1 complete");
    ck_assert_int_eq(consumer.ordinal, 2); /* they count anew */
    loop_close_runtime(&loop, 0);
    ck_assert_int_eq(filter.freed, 1);
}
END_TEST

START_TEST(a_filter_may_fail)
{
    struct uva_stream *stream = stream_of(LENGTHS);

    filter.fails_at = 3;
    ck_assert_int_eq(uva_stream_filter(stream, &EVEN), 0);
    play(stream, "schema 3 2 failed");
    recording_ended(&consumer, UVA_END_FAILED, EDOM, "not this one");
}
END_TEST

START_TEST(the_options_of_a_filter_are_checked)
{
    struct uva_stream *stream = stream_of(LENGTHS);
    struct uva_filter bad = EVEN;

    bad.keep = NULL;
    refused(stream, uva_stream_filter(stream, &bad), "keep");
    ck_assert_int_eq(filter.freed, 1);
    bad = EVEN;
    bad.reserved[3] = &bad;
    stream = stream_of(LENGTHS);
    refused(stream, uva_stream_filter(stream, &bad), "reserved");
    ck_assert_int_eq(filter.freed, 1); /* no member of it can be trusted */
    stream = stream_of(LENGTHS);
    refused(stream, uva_stream_filter(stream, NULL), "keep");
    bad = EVEN;
    bad.window.bytes = -1;
    stream = stream_of(LENGTHS);
    refused(stream, uva_stream_filter(stream, &bad), "uva_filter: no negative");
    ck_assert_int_eq(filter.freed, 2);
}
END_TEST

START_TEST(a_stream_that_has_started_takes_no_filter)
{
    struct uva_stream *stream = stream_of(LENGTHS);
    struct uva_filter other = EVEN;

    recording_start(&consumer, stream);
    ck_assert_int_eq(uva_stream_filter(stream, &other), EBUSY);
    ck_assert_int_eq(filter.freed, 1);
    other.free_ctx = NULL;
    ck_assert_int_eq(uva_stream_filter(stream, &other), EBUSY);
    other.reserved[0] = &other;
    ck_assert_int_eq(uva_stream_filter(stream, &other), EBUSY);
    uva_stream_release(stream);
    recording_await_done(&consumer, &loop);
}
END_TEST

/* ---- without memory ----------------------------------------------------- */

static void add_filter(struct uva_stream *stream)
{
    struct uva_filter options = EVEN;

    options.free_ctx = NULL;
    (void)uva_stream_filter(stream, &options);
}

static void add_limit(struct uva_stream *stream)
{
    (void)uva_stream_limit_rows(stream, 2); /* a slice of the first batch */
}

static void add_rebatch(struct uva_stream *stream)
{
    (void)uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 4});
}

static void add_split(struct uva_stream *stream)
{
    (void)uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 1});
}

/* Every allocation fails once. The array source makes no struct for a batch, so
 * the stages make the last ones; the last case needs more slots for tasks than
 * are allocated at once. */
START_TEST(a_stage_of_rows_takes_its_memory_from_the_runtime)
{
    static void (*const adds[])(struct uva_stream *) = {add_filter, add_limit,
                                                        add_rebatch, add_split};
    static const char *const ends[] = {"3 2 1 complete", "2 complete",
                                       "4 4 3 complete", "1 1 1 complete"};
    static const int many_rows[] = {100, -1};
    struct uva_stream *stream;
    struct uva_error error;
    struct uva_consumer table;
    bool failed = true;

    for (long n = 1; failed; n++) {
        recording_init(&consumer);
        consumer.transcribes = true;
        table = recording_table(&consumer);
        stream = stream_of(_i == 3 ? many_rows : LENGTHS);
        loop_fail(&loop, n);
        adds[_i](stream);
        if (uva_stream_for_each(stream, &table, &error) == 0) {
            recording_await_done(&consumer, &loop);
            error = consumer.outcome.error;
        }
        uva_stream_release(stream);
        failed = faulty_allocator_has_failed(&loop.memory);
        loop_fail(&loop, 0);
        if (error.code == 0)
            text_contains(consumer.transcript, ends[_i]);
        else
            ck_assert_int_eq(error.code, ENOMEM);
        ck_assert(failed || error.code == 0);
        loop_close(&loop);
        loop_open(&loop);
    }
}
END_TEST

/* ---- limit_rows --------------------------------------------------------- */

START_TEST(rows_are_limited)
{
    static const struct {
        int64_t rows;
        const char *transcript;
    } cases[] = {
        {0, "schema complete"},           {1, "schema 1 complete"},
        {3, "schema 3 complete"},         {4, "schema 3 0 1 complete"},
        {9, "schema 3 0 2 4 complete"},   {11, "schema 3 0 2 5 1 complete"},
        {12, "schema 3 0 2 5 1 complete"}};
    struct uva_stream *stream = stream_of(LENGTHS);

    ck_assert_int_eq(uva_stream_limit_rows(stream, cases[_i].rows), 0);
    play(stream, cases[_i].transcript);
}
END_TEST

START_TEST(a_negative_limit_is_refused)
{
    struct uva_stream *stream = stream_of(LENGTHS);

    refused(stream, uva_stream_limit_rows(stream, -1), "-1 rows");
}
END_TEST

/* ---- rebatch ------------------------------------------------------------ */

START_TEST(batches_get_the_wanted_number_of_rows)
{
    static const struct {
        int64_t rows, bytes;
        const char *transcript;
    } cases[] = {
        {1, 0, "schema 1 1 1 1 1 1 1 1 1 1 1 complete"},
        {2, 0, "schema 2 2 2 2 2 1 complete"},
        {4, 0, "schema 4 4 3 complete"},
        {5, 0, "schema 5 5 1 complete"},
        {11, 0, "schema 11 complete"},
        {12, 0, "schema 11 complete"},
        /* a row is a byte */
        {0, 4, "schema 4 4 3 complete"},
        {3, 4, "schema 3 3 3 2 complete"},
        {4, 3, "schema 3 3 3 2 complete"},
        {0, 1, "schema 1 1 1 1 1 1 1 1 1 1 1 complete"},
        {0, INT64_MAX, "schema 11 complete"},
    };
    const struct uva_rebatch options = {.rows = cases[_i].rows,
                                        .bytes = cases[_i].bytes};
    struct uva_stream *stream = stream_of(LENGTHS);

    ck_assert_int_eq(uva_stream_rebatch(stream, &options), 0);
    play(stream, cases[_i].transcript);
    ck_assert_int_eq(atomic_load(&consumer.rows), 11);
}
END_TEST

/* The rest of a large batch is released, whether slices of it were made or not.
 */
START_TEST(a_split_batch_need_not_be_passed_on_as_a_whole)
{
    static const int many_rows[] = {1000, 1000, -1};
    static const char *const transcripts[] = {
        "schema complete", "schema 3 complete", "schema 3 3 3 3 3 complete"};
    static const int64_t limits[] = {0, 1, 5};
    struct uva_stream *stream = stream_of(many_rows);

    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 3}), 0);
    ck_assert_int_eq(uva__stream_limit(stream, limits[_i]), 0);
    play(stream, transcripts[_i]);
}
END_TEST

START_TEST(the_slices_of_large_batches_meet_in_order)
{
    static const int lengths[] = {2, 1001, 7, 400, -1};
    struct uva_stream *stream = stream_of(lengths);

    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 10}), 0);
    consumer.transcribes = false;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(atomic_load(&consumer.rows), 1410);
    ck_assert_int_eq(consumer.ordinal, 140);
}
END_TEST

START_TEST(the_options_of_rebatch_are_checked)
{
    static const struct uva_rebatch none = {0}, negative = {.rows = -1},
                                    bytes = {.rows = 1, .bytes = -1},
                                    wait = {.rows = 1, .wait_ms = -1};
    static const struct uva_rebatch window = {.rows = 1, .window.batches = -1};
    struct uva_rebatch reserved = {.rows = 1, .reserved = {&loop}};
    const struct uva_rebatch *const bad[] = {
        &none, &negative, &bytes, &wait, &reserved, &window, NULL};
    struct uva_stream *stream = stream_of(LENGTHS);

    refused(stream, uva_stream_rebatch(stream, bad[_i]), "uva_rebatch: ");
}
END_TEST

/* Runs the stream of a fixture with another consumer, since its batches are not
 * the fake source's any more. */
static void run_on(struct fixture *f)
{
    consumer.transcribes = false;
    recording_consume(&consumer, f->stream);
    f->stream = NULL;
    recording_await_done(&consumer, &f->loop);
}

/* A row has eight bytes. */
START_TEST(a_row_larger_than_the_bytes_is_passed_on_alone)
{
    struct fixture f;

    fixture_open(&f, 5);
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_rebatch(f.stream, &(struct uva_rebatch){.bytes = _i}), 0);
    run_on(&f);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, 5 * f.fake.rows);
    ck_assert_int_eq(atomic_load(&consumer.rows), 5 * f.fake.rows);
    fixture_close(&f);
}
END_TEST

/* Three batches make one; the source fails after the fifth. */
START_TEST(rows_that_wait_are_released_by_a_failure)
{
    struct fixture f;

    fixture_open(&f, 9);
    f.fake.fail_at = 5;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "broken";
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_rebatch(f.stream,
                           &(struct uva_rebatch){.rows = 3 * f.fake.rows}),
        0);
    run_on(&f);
    recording_ended(&consumer, UVA_END_FAILED, EIO, "broken");
    ck_assert_int_eq(consumer.taken, 1);
    ck_assert_int_eq(atomic_load(&consumer.rows), 3 * f.fake.rows);
    fixture_close(&f);
}
END_TEST

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    ck_assert_ptr_nonnull(batch);
    ck_assert_ptr_null(outcome);
    *(int64_t *)ctx = batch->data.array.length;
}

static bool is_positive(void *ctx)
{
    return *(int64_t *)ctx > 0;
}

/* The source waits after its third batch. Rows are not passed on before the
 * time is over, and not without a request. */
START_TEST(rows_that_have_waited_are_passed_on)
{
    struct fixture f;
    int64_t rows = 0, more = 0;

    fixture_open(&f, 5);
    f.fake.gate_at = 3;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_rebatch(f.stream,
                           &(struct uva_rebatch){.rows = 1000, .wait_ms = 1}),
        0);
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &rows), 0);
    loop_until(&f.loop, is_positive, &rows);
    ck_assert_int_ge(rows, f.fake.rows);
    fixture_await_gate(&f);
    loop_settle(&f.loop);
    if (rows < 3 * f.fake.rows) { /* the rest is kept */
        ck_assert(!loop_has_timer(&f.loop));
        ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &more), 0);
        loop_until(&f.loop, is_positive, &more);
    }
    ck_assert_int_eq(rows + more, 3 * f.fake.rows);
    fake_source_open_gate(&f.fake);
    fixture_close(&f);
}
END_TEST

/* Rows of two batches are joined. The rows of the third have been kept for
 * longer than the limit when they are asked for, so they are passed on at once.
 */
START_TEST(rows_that_have_waited_before_the_request_are_passed_on_at_once)
{
    struct fixture f;
    int64_t rows = 0;

    fixture_open(&f, 4);
    f.fake.gate_at = 3;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_rebatch(
            f.stream,
            &(struct uva_rebatch){.rows = 2 * f.fake.rows, .wait_ms = 20}),
        0);
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &rows), 0);
    loop_until(&f.loop, is_positive, &rows);
    fixture_await_gate(&f);
    loop_settle(&f.loop);
    loop_pass(&f.loop, 25);
    rows = 0;
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &rows), 0);
    loop_until(&f.loop, is_positive, &rows);
    ck_assert_int_eq(rows, f.fake.rows);
    fake_source_open_gate(&f.fake);
    fixture_close(&f);
}
END_TEST

/* The timer runs until the second batch makes the rows enough. */
START_TEST(rows_that_need_not_wait_any_more_are_passed_on)
{
    struct fixture f;
    int64_t rows = 0;

    fixture_open(&f, 2);
    f.fake.gate_at = 1;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_rebatch(
            f.stream,
            &(struct uva_rebatch){.rows = 2 * f.fake.rows, .wait_ms = 1000000}),
        0);
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &rows), 0);
    fixture_await_gate(&f);
    loop_until_timer(&f.loop);
    fake_source_open_gate(&f.fake);
    loop_until(&f.loop, is_positive, &rows);
    ck_assert_int_eq(rows, 2 * f.fake.rows);
    loop_settle(&f.loop);
    ck_assert(!loop_has_timer(&f.loop));
    fixture_close(&f);
}
END_TEST

static atomic_bool inside, passed;

static int hold_up(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    int code;

    (void)ctx;
    (void)error;
    atomic_store(&inside, true);
    while (!atomic_load(&passed))
        (void)sched_yield();
    code = emit(emitter, in);
    return code == EAGAIN ? 0 : code;
}

/* Starts a stream that takes up the only worker until `passed`. */
static struct uva_stream *occupy_worker(struct fixture *f)
{
    static const struct uva_transform options = {.batch = hold_up};
    struct ArrowDeviceArray batch;
    struct uva_stream *stream;

    fake_source_batch(&f->fake, 0, &batch);
    stream = fixture_arrays(f, &batch, 1);
    ck_assert_int_eq(uva_stream_transform(stream, &options), 0);
    recording_start(&consumer, stream);
    while (!atomic_load(&inside))
        (void)uv_run(&f->loop.uv, UV_RUN_NOWAIT);
    return stream;
}

/* A second batch has come, and waits for the only worker. */
START_TEST(rows_do_not_wait_while_a_batch_is_at_hand)
{
    struct uva_workers_options few = {.compute_threads = 1};
    struct uva_runtime_options on_them = {0};
    struct uva_error error = {0};
    struct uva_stream *other;
    struct fixture f;
    int64_t rows = 0;

    ck_assert_int_eq(uva_workers_new(&few, &on_them.workers, &error), 0);
    fixture_open_with(&f, 2, &on_them);
    uva_workers_release(on_them.workers);
    f.fake.gate_at = 1;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_rebatch(
            f.stream,
            &(struct uva_rebatch){.rows = 2 * f.fake.rows, .wait_ms = 1000000}),
        0);
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &rows), 0);
    fixture_await_gate(&f);
    loop_until_timer(&f.loop);
    consumer.transcribes = false;
    other = occupy_worker(&f);
    fake_source_open_gate(&f.fake);
    while (loop_has_timer(&f.loop))
        (void)uv_run(&f.loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(rows, 0);
    atomic_store(&passed, true);
    loop_until(&f.loop, is_positive, &rows);
    ck_assert_int_eq(rows, 2 * f.fake.rows);
    recording_await_done(&consumer, &f.loop);
    uva_stream_release(other);
    fixture_close(&f);
}
END_TEST

/* Pushes one batch of `rows`, and has the loop pass it on to its worker. */
static void push_rows(struct fixture *f, struct uva_pusher *pusher, int rows)
{
    struct ArrowDeviceArray array;

    batch_make(&array, rows);
    ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0), 0);
    loop_settle(&f->loop);
}

/* Turns the loop until no timer is running, which a timer that is set again
 * each time would prevent. */
static void timers_end(struct fixture *f)
{
    for (int turns = 0; loop_has_timer(&f->loop); turns++) {
        ck_assert_int_lt(turns, 100);
        (void)uv_run(&f->loop.uv, UV_RUN_ONCE);
    }
}

/* A row is kept when the only worker becomes busy. It is asked for, and its
 * time passes, if it has not by then: the job that passes it on waits for the
 * worker. */
START_TEST(rows_that_wait_for_a_worker_need_no_timer)
{
    struct uva_workers_options few = {.compute_threads = 1};
    struct uva_runtime_options on_them = {0};
    struct uva_error error = {0};
    struct uva_stream *other;
    struct uva_pusher *pusher;
    struct ArrowSchema schema;
    struct fixture f;
    int64_t rows = 0;

    ck_assert_int_eq(uva_workers_new(&few, &on_them.workers, &error), 0);
    fixture_open_with(&f, 0, &on_them);
    uva_workers_release(on_them.workers);
    f.stream = uva_stream_from_pusher(f.loop.runtime, NULL, &pusher);
    batch_schema(&schema);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    ck_assert_int_eq(
        uva_stream_rebatch(f.stream,
                           &(struct uva_rebatch){.rows = 2, .wait_ms = 1}),
        0);
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &rows), 0);
    push_rows(&f, pusher, 2);
    loop_until(&f.loop, is_positive, &rows);
    push_rows(&f, pusher, 1);
    consumer.transcribes = false;
    atomic_store(&inside, false);
    atomic_store(&passed, false);
    other = occupy_worker(&f);
    rows = 0;
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &rows), 0);
    loop_settle(&f.loop);
    timers_end(&f);
    ck_assert_int_eq(rows, 0);
    atomic_store(&passed, true);
    loop_until(&f.loop, is_positive, &rows);
    ck_assert_int_eq(rows, 1);
    recording_await_done(&consumer, &f.loop);
    uva_stream_release(other);
    uva_pusher_close(pusher, NULL, NULL);
    fixture_close(&f);
}
END_TEST

/* A slice does not use the device; a joined batch does. */
START_TEST(data_of_a_device_is_split_and_not_joined)
{
    struct ArrowDeviceArray arrays[2];
    struct ArrowSchema schema;
    struct uva_stream *stream;

    batch_schema(&schema);
    for (int i = 0; i < 2; i++) {
        batch_make(&arrays[i], 5);
        arrays[i].device_type = ARROW_DEVICE_CUDA_HOST;
        arrays[i].device_id = 0;
    }
    stream = uva_stream_from_arrays(loop.runtime, &schema, arrays, 2);
    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 2}), 0);
    play(stream, "schema 2 2 failed");
    recording_ended(&consumer, UVA_END_FAILED, ENOTSUP, "transfer it first");
}
END_TEST

/* A batch of strings; the offsets need not make sense. */
struct texts {
    int64_t length;
    int32_t offsets[6];
};

static struct uva_stream *stream_of_texts(const struct texts *texts)
{
    static const char text[] = "ab";
    struct ArrowDeviceArray arrays[2];
    struct ArrowSchema schema;
    struct ArrowArray array;

    plain_schema(&schema, "u", "", 0);
    for (int i = 0; i < 2; i++) {
        plain_array(&array, texts[i].length, 3, 0);
        array.buffers[1] = texts[i].offsets;
        array.buffers[2] = text;
        uva_array_from_cpu(&array, &arrays[i]);
    }
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, 2);
}

/* They are found when rows are joined, or when a number of rows is sought. */
START_TEST(offsets_that_point_to_nothing_are_an_error)
{
    static const struct {
        struct uva_rebatch options;
        struct texts texts[2];
        int batches; /* before the error */
    } cases[] = {{{.rows = 3, .wait_ms = 1000000},
                  {{2, {0, 1, 2}}, {3, {0, 5, 2, 2}}},
                  0},
                 {{.rows = 2}, {{3, {0, 0, 5, 2}}, {3, {0, 1, 2, 2}}}, 1},
                 {{.bytes = 50}, {{5, {0, 0, 0, 0, -5, 100}}, {1, {0, 2}}}, 0}};
    struct uva_stream *stream = stream_of_texts(cases[_i].texts);

    ck_assert_int_eq(uva_stream_rebatch(stream, &cases[_i].options), 0);
    consumer.transcribes = false;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EPROTO, "point to nothing");
    ck_assert_int_eq(atomic_load(&consumer.batches), cases[_i].batches);
}
END_TEST

/* Nine rows of numbers in three batches; of some, the first row is null. */
struct numbers {
    int which;    /* bit i: of batch i */
    int64_t seen; /* rows that came */
};

static const int64_t number_rows[] = {3, 2, 4};

static bool number_is_null(const struct numbers *numbers, int64_t row)
{
    return (row == 0 && (numbers->which & 1) != 0) ||
           (row == 3 && (numbers->which & 2) != 0) ||
           (row == 5 && (numbers->which & 4) != 0);
}

static struct uva_stream *stream_of_numbers(int which)
{
    static const int64_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t bits = 0xfe;
    struct ArrowDeviceArray arrays[3];
    struct ArrowSchema schema;
    int64_t first = 0;

    memset(arrays, 0, sizeof(arrays));
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "l", "n", 0);
    for (int i = 0; i < 3; i++) {
        struct ArrowArray *array = &arrays[i].array;

        arrays[i].device_type = ARROW_DEVICE_CPU;
        plain_array(array, number_rows[i], 1, 1);
        plain_array(array->children[0], number_rows[i], 2, 0);
        array->children[0]->buffers[1] = numbers + first;
        if ((which >> i & 1) != 0) {
            array->children[0]->buffers[0] = &bits;
            array->children[0]->null_count = 1;
        }
        first += number_rows[i];
    }
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, 3);
}

static void numbers_check(struct recording_consumer *o, struct uva_batch *batch)
{
    const struct ArrowArray *column = batch->data.array.children[0];
    const uint8_t *bits = column->buffers[0];
    const int64_t *items = column->buffers[1];
    struct numbers *numbers = o->ctx;

    for (int64_t i = 0; i < batch->data.array.length; i++) {
        const int64_t at = batch->data.array.offset + column->offset + i;
        const bool null = bits != NULL && (bits[at / 8] >> (at % 8) & 1) == 0;

        ck_assert_int_eq(items[at], numbers->seen);
        ck_assert(null == number_is_null(numbers, numbers->seen));
        numbers->seen++;
    }
}

/* With and without nulls, a joined batch is cut in the middle of batches, and
 * in the same places; bytes count the bitmap, too. */
START_TEST(batches_with_and_without_nulls_are_joined)
{
    static const struct uva_rebatch options[] = {
        {.rows = 4}, {.rows = 2}, {.bytes = 36}, {.rows = 9}};
    static const long batches[] = {3, 5, 3, 1};
    struct numbers numbers = {.which = _i % 8};
    struct uva_stream *stream = stream_of_numbers(_i % 8);

    ck_assert_int_eq(uva_stream_rebatch(stream, &options[_i / 8]), 0);
    consumer.transcribes = false;
    consumer.on_batch = numbers_check;
    consumer.ctx = &numbers;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(numbers.seen, 9);
    ck_assert_int_eq(atomic_load(&consumer.batches), batches[_i / 8]);
}
END_TEST

/* Offsets of 32 bits cannot count the characters of both. */
START_TEST(what_cannot_be_joined_stays_apart)
{
    static const struct texts large[] = {{1, {0, INT32_MAX}},
                                         {1, {0, INT32_MAX}}};
    struct uva_stream *stream = stream_of_texts(large);

    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = 2}), 0);
    consumer.transcribes = false;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(atomic_load(&consumer.batches), 2);
}
END_TEST

/* Columns of nulls need no memory. */
static struct uva_stream *stream_of_nulls(int64_t rows, size_t count)
{
    struct ArrowDeviceArray arrays[4];
    struct ArrowSchema schema;
    struct ArrowArray array;

    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "n", "", 0);
    for (size_t i = 0; i < count; i++) {
        plain_array(&array, rows, 1, 1);
        plain_array(array.children[0], rows, 0, 0);
        array.children[0]->null_count = rows;
        uva_array_from_cpu(&array, &arrays[i]);
    }
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, count);
}

START_TEST(rows_may_be_as_many_as_can_be_counted)
{
    static const struct uva_rebatch options[] = {
        {.rows = INT64_MAX}, {.bytes = 1}, {.rows = INT64_MAX, .bytes = 1}};
    struct uva_stream *stream = stream_of_nulls(INT64_MAX, 1);

    ck_assert_int_eq(uva_stream_rebatch(stream, &options[_i]), 0);
    consumer.transcribes = false;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(consumer.outcome.rows, INT64_MAX);
}
END_TEST

START_TEST(more_rows_than_can_be_counted_are_not_lost)
{
    struct uva_stream *stream = stream_of_nulls(INT64_MAX / 4 + 1, 4);

    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = INT64_MAX}),
        0);
    consumer.transcribes = false;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_FAILED, EOVERFLOW, "too many rows");
}
END_TEST

int main(void)
{
    TCase *rows = tcase_create("rows");

    suite_add_loops(rows, 0, 2, a_filter_passes_on_what_it_keeps, NULL);
    suite_add_loops(rows, 0, 4,
                    a_stage_of_rows_takes_its_memory_from_the_runtime, NULL);
    suite_add_loops(rows, 0, 3, offsets_that_point_to_nothing_are_an_error,
                    NULL);
    suite_add_loops(rows, 0, 3, rows_may_be_as_many_as_can_be_counted, NULL);
    suite_add_loops(rows, 0, 7, rows_are_limited, NULL);
    suite_add_loops(rows, 0, 4 * 8, batches_with_and_without_nulls_are_joined,
                    NULL);
    suite_add_loops(rows, 0, 11, batches_get_the_wanted_number_of_rows, NULL);
    suite_add_loops(rows, 0, 3, a_split_batch_need_not_be_passed_on_as_a_whole,
                    NULL);
    suite_add_loops(rows, 0, 7, the_options_of_rebatch_are_checked, NULL);
    suite_add_loops(rows, 1, 16, a_row_larger_than_the_bytes_is_passed_on_alone,
                    NULL);
    suite_add(rows, rows_that_wait_are_released_by_a_failure,
              the_slices_of_large_batches_meet_in_order, a_filter_may_fail,
              the_options_of_a_filter_are_checked,
              a_stream_that_has_started_takes_no_filter,
              a_negative_limit_is_refused, rows_that_have_waited_are_passed_on,
              rows_that_have_waited_before_the_request_are_passed_on_at_once,
              rows_that_need_not_wait_any_more_are_passed_on,
              rows_do_not_wait_while_a_batch_is_at_hand,
              rows_that_wait_for_a_worker_need_no_timer,
              data_of_a_device_is_split_and_not_joined,
              what_cannot_be_joined_stays_apart,
              more_rows_than_can_be_counted_are_not_lost, NULL);
    return suite_main("rows", set_up, tear_down, rows, NULL);
}
