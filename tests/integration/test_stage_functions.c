/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of stages that fail, emit no batch, go on after a failure, or give
 * a batch of another schema; and windows that are smaller than a batch. Each
 * test runs for every stage with such a function. A batch has as many rows as
 * bytes; the lengths of sent batches count from 1. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { BATCHES = 5, MANY = 200 }; /* MANY: more than a window */

/* The function's treatment of a batch, besides passing it on. */
enum deed {
    DEED_PASS,
    DEED_FAIL,    /* returns `code`, with a text */
    DEED_NOTHING, /* drops it */
    DEED_FOREIGN  /* replaces it by a batch of another schema */
};

static struct loop_fixture loop;
static struct recording_consumer consumer;
static enum deed deed; /* with the batch number `at`, or with each: -1 */
static int64_t at;
static int code;
static int64_t seen; /* batches that a function has been called with */
static int64_t made; /* batches extracted above the stage */

/* ---- the functions ------------------------------------------------------ */

static int refuse(struct uva_error *error)
{
    return uva_error_set(error, code, "not this one");
}

/* The deed for the next batch. */
static enum deed next_deed(void)
{
    const bool is_it = at < 0 || seen == at;

    seen++;
    return is_it ? deed : DEED_PASS;
}

static void pass(struct ArrowDeviceArray *in, struct ArrowDeviceArray *out,
                 bool foreign)
{
    struct ArrowArray array;

    if (!foreign) {
        uva_array_move(in, out);
        return;
    }
    plain_array(&array, 1, 1, 1); /* of a struct with a column */
    plain_array(array.children[0], 1, 2, 0);
    uva_array_from_cpu(&array, out);
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    const enum deed now = next_deed();

    (void)ctx;
    if (now == DEED_FAIL)
        return refuse(error);
    pass(&in->data, out, now == DEED_FOREIGN);
    return 0;
}

static int filter_keep(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                       struct uva_error *error)
{
    const enum deed now = next_deed();

    (void)ctx;
    if (now == DEED_PASS)
        memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return now == DEED_FAIL ? refuse(error) : 0;
}

static int transform_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                           void *emitter, struct uva_error *error)
{
    const enum deed now = next_deed();
    struct uva_batch out = {0};
    int result;

    (void)ctx;
    if (now == DEED_FAIL)
        return refuse(error);
    if (now == DEED_NOTHING)
        return 0;
    pass(&in->data, &out.data, now == DEED_FOREIGN);
    result = emit(emitter, &out);
    return result == EAGAIN ? 0 : result;
}

static int async_begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    const enum deed now = next_deed();
    struct ArrowDeviceArray out;
    struct uva_error error;

    (void)ctx;
    if (now == DEED_FAIL) {
        (void)refuse(&error);
        uva_reply_give(reply, NULL, &error);
    } else if (now == DEED_NOTHING) {
        uva_reply_give(reply, NULL, NULL);
    } else {
        pass(&in->data, &out, now == DEED_FOREIGN);
        uva_reply_give(reply, &out, NULL);
    }
    return 0;
}

/* ---- the stages --------------------------------------------------------- */

static void add_map(struct uva_stream *stream, bool on_loop)
{
    ck_assert_int_eq(
        uva_stream_map(
            stream, &(struct uva_map){.batch = map_batch, .on_loop = on_loop}),
        0);
}

static void add_filter(struct uva_stream *stream, bool on_loop)
{
    ck_assert_int_eq(
        uva_stream_filter(stream, &(struct uva_filter){.keep = filter_keep,
                                                       .on_loop = on_loop}),
        0);
}

static void add_transform(struct uva_stream *stream, bool on_loop)
{
    ck_assert_int_eq(
        uva_stream_transform(stream,
                             &(struct uva_transform){.batch = transform_batch,
                                                     .on_loop = on_loop}),
        0);
}

static void add_async(struct uva_stream *stream, bool unordered)
{
    ck_assert_int_eq(
        uva_stream_map_async(stream,
                             &(struct uva_async_map){.begin = async_begin,
                                                     .unordered = unordered}),
        0);
}

static void (*const ADD[])(struct uva_stream *stream, bool variant) = {
    add_filter, add_transform, add_async, add_map};
enum { DROPPING = 3, STAGES = 4, VARIANTS = 2 }; /* a map does not drop */

static void set_up(void)
{
    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open(&loop);
    deed = DEED_PASS;
    at = -1;
    code = EDOM;
    seen = made = 0;
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static struct uva_stream *stream_of(int count, int64_t first, int64_t step)
{
    struct ArrowDeviceArray arrays[MANY];
    struct ArrowSchema schema;

    batch_schema(&schema);
    for (int i = 0; i < count; i++)
        batch_make(&arrays[i], first + i * step);
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, (size_t)count);
}

static void play(int index, int count)
{
    struct uva_stream *stream = stream_of(count, 1, 1);

    ADD[index / VARIANTS % STAGES](stream, index % VARIANTS == 1);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
}

/* The first `n` batches were delivered, and then the failure. */
static void failed_behind(int64_t n, int failure, const char *text)
{
    static const char *const transcripts[] = {
        "schema failed",       "schema 1 failed",       "schema 1 2 failed",
        "schema 1 2 3 failed", "schema 1 2 3 4 failed", "schema 1 2 3 4 5"};

    ck_assert_str_eq(consumer.transcript, transcripts[n]);
    recording_ended(&consumer, UVA_END_FAILED, failure, text);
}

/* ---- functions ---------------------------------------------------------- */

START_TEST(a_function_may_fail_at_any_batch)
{
    deed = DEED_FAIL;
    at = _i / VARIANTS / STAGES;
    play(_i, BATCHES);
    failed_behind(at, EDOM, "not this one");
    if (ADD[_i / VARIANTS % STAGES] != add_map) /* other extractions go on */
        ck_assert_int_eq(seen, at + 1);
}
END_TEST

/* To a transform some codes mean more; to the other functions they are errors
 * like any other. */
START_TEST(every_code_is_a_failure)
{
    static const int codes[] = {ENOENT, EAGAIN, EINPROGRESS, ECANCELED, EPROTO};
    const int stage = _i / VARIANTS % STAGES;

    if (ADD[stage] == add_transform)
        return;
    deed = DEED_FAIL;
    at = 2;
    code = codes[_i / VARIANTS / STAGES];
    play(_i, BATCHES);
    failed_behind(at, code, "not this one");
}
END_TEST

/* For each dropped batch one more is requested, also with a window. */
START_TEST(a_function_may_drop_everything)
{
    deed = DEED_NOTHING;
    play(_i, MANY);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_str_eq(consumer.transcript, "schema complete");
    ck_assert_int_eq(seen, MANY);
}
END_TEST

START_TEST(a_batch_of_another_schema_is_an_error)
{
    const int stage = _i / VARIANTS % STAGES;

    if (ADD[stage] == add_filter || ADD[stage] == add_map)
        return; /* it makes no batch; only a checker looks at it */
    deed = DEED_FOREIGN;
    at = _i / VARIANTS / STAGES;
    play(_i, BATCHES);
    failed_behind(at, EPROTO, "n_buffers");
}
END_TEST

static atomic_int breaches;

static void count_breach(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    atomic_fetch_add(&breaches, record->clause != NULL);
}

/* A map is on the hot path: its batches are passed on as they are. */
START_TEST(a_map_that_gives_another_schema_is_reported_by_the_checker)
{
    const struct uva_runtime_options checked = {.check = true,
                                                .log.write = count_breach};

    loop_close(&loop);
    loop_open_with(&loop, &checked);
    atomic_store(&breaches, 0);
    deed = DEED_FOREIGN;
    at = 1;
    play(DROPPING * VARIANTS + _i, BATCHES);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_gt(atomic_load(&breaches), 0);
}
END_TEST

/* ---- a transform that goes on ------------------------------------------- */

/* Emits the batch, a batch of another schema, and more, whatever emit has
 * returned. */
static void emit_too_much(uva_emit_fn *emit, void *emitter,
                          struct ArrowDeviceArray *first)
{
    struct uva_batch out = {0};

    for (int i = 0; i < 4; i++) {
        int result;

        if (i == 0 && first != NULL)
            uva_array_move(first, &out.data);
        else if (i <= 1)
            pass(NULL, &out.data, true);
        else
            batch_make(&out.data, 100 + i);
        result = emit(emitter, &out);
        ck_assert(!uva_array_is_live(&out.data));
        ck_assert_int_eq(result, i == 0 && first != NULL ? 0 : EPROTO);
    }
}

static int careless_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                          void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    seen++;
    emit_too_much(emit, emitter, &in->data);
    return 0;
}

static int careless_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                           struct uva_error *error)
{
    (void)ctx;
    (void)error;
    emit_too_much(emit, emitter, NULL);
    return 0;
}

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    const int result = emit(emitter, in);

    (void)ctx;
    (void)error;
    seen++;
    return result == EAGAIN ? 0 : result;
}

/* No batch after the bad one is delivered, and everything is released. */
START_TEST(what_is_emitted_after_a_failure_is_released)
{
    const bool at_the_end = _i / VARIANTS == 1;
    struct uva_stream *stream = stream_of(BATCHES, 1, 1);

    (void)uva_stream_transform(
        stream,
        &(struct uva_transform){.batch = at_the_end ? pass_on : careless_batch,
                                .finish = at_the_end ? careless_finish : NULL,
                                .on_loop = _i % VARIANTS == 1});
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(seen, at_the_end ? BATCHES : 1);
    if (at_the_end)
        ck_assert_str_eq(consumer.transcript, "schema 1 2 3 4 5 failed");
    else
        ck_assert_str_eq(consumer.transcript, "schema 1 failed");
    recording_ended(&consumer, UVA_END_FAILED, EPROTO, "n_buffers");
}
END_TEST

/* ---- windows smaller than a batch --------------------------------------- */

static const struct uva_window BYTE = {.bytes = 1};

/* Above the stage; it measures its emitted batches, and runs one batch ahead.
 */
static int count_made(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                      void *emitter, struct uva_error *error)
{
    const int result = emit(emitter, in);

    (void)ctx;
    (void)error;
    made++;
    return result == EAGAIN ? 0 : result;
}

static void through_transform(struct uva_stream *stream)
{
    (void)uva_stream_transform(
        stream, &(struct uva_transform){
                    .batch = transform_batch, .on_loop = true, .window = BYTE});
}

static void through_async(struct uva_stream *stream)
{
    (void)uva_stream_map_async(
        stream, &(struct uva_async_map){
                    .begin = async_begin, .at_once = 8, .window = BYTE});
}

static void through_merge(struct uva_stream *stream)
{
    struct uva_stream *none = stream_of(0, 0, 0);

    (void)uva_stream_merge(stream, &none, 1,
                           &(struct uva_merge){.window = BYTE});
}

static void through_tee(struct uva_stream *stream)
{
    struct uva_stream *other = uva_stream_tee(
        stream, &(struct uva_tee){.window = BYTE, .first = BYTE});

    uva_stream_release(other); /* it leaves */
}

static void through_parallel(struct uva_stream *stream)
{
    (void)uva_stream_parallel(
        stream, &(struct uva_parallel){.workers = 1, .window = BYTE});
}

static void (*const THROUGH[])(struct uva_stream *stream) = {
    through_transform, through_async, through_merge, through_tee,
    through_parallel};
enum { WINDOWS = sizeof(THROUGH) / sizeof(THROUGH[0]) };

/* The size is known once a batch has come; batches requested before that are
 * no more than in a default window. */
static void no_more_ahead(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)batch;
    ck_assert_int_le(made, c->taken + (c->taken < 64 ? 64 : 3));
}

START_TEST(a_window_smaller_than_a_batch_stops_nothing)
{
    struct uva_stream *stream = stream_of(MANY, 10, 0);

    (void)uva_stream_transform(
        stream, &(struct uva_transform){
                    .batch = count_made, .on_loop = true, .window.batches = 1});
    THROUGH[_i](stream);
    consumer.quiet = true;
    consumer.on_batch = no_more_ahead;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, MANY);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("stage functions");
    const int all = STAGES * VARIANTS;

    suite_add_loops(tests, 0, BATCHES * all, a_function_may_fail_at_any_batch,
                    a_batch_of_another_schema_is_an_error, NULL);
    suite_add_loops(tests, 0, 5 * all, every_code_is_a_failure, NULL);
    suite_add_loops(tests, 0, DROPPING * VARIANTS,
                    a_function_may_drop_everything, NULL);
    suite_add_loops(tests, 0, VARIANTS,
                    a_map_that_gives_another_schema_is_reported_by_the_checker,
                    NULL);
    suite_add_loops(tests, 0, 2 * VARIANTS,
                    what_is_emitted_after_a_failure_is_released, NULL);
    suite_add_loops(tests, 0, WINDOWS,
                    a_window_smaller_than_a_batch_stops_nothing, NULL);
    return suite_main("stage functions", set_up, tear_down, tests, NULL);
}
