/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms: the input of the function, its results, and the fate of the
 * batches when it fails, has enough, or is stopped. For a batch of L rows the
 * function emits L batches, of 10 * L + 0, 1, 2... rows. Each test runs the
 * function on the loop thread, and on a worker. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/asking.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/made_schema.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

static struct asking asking;

enum { PLACES = 2, ON_LOOP = 1 }; /* the loop index */

/* The function's acts, besides emitting. */
struct script {
    int64_t stop_at;   /* at this input, from 0, it returns `code`; negative */
    int code;          /* also of `finish`, if it has a tail */
    bool emits_first;  /* at that input it emits before it returns */
    bool ignores_full; /* it goes on after EAGAIN, within the call */
    bool ignores;      /* it returns 0 whatever emit has returned */
    bool empty;        /* it emits a released array */
    bool crooked;      /* it emits an array of another schema */
    bool held;         /* it waits for `passed` in its first call */
    int64_t tail;      /* batches that `finish` emits; negative: no finish */
};

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct script script;
static struct uva_transform options;
static struct {
    int64_t input;        /* the next input */
    int64_t at;           /* emitted of the current one */
    int64_t tail;         /* emitted by finish */
    atomic_long calls;    /* of both functions */
    atomic_long returned; /* calls of `batch` that are over */
    atomic_long freed;
    atomic_bool inside, passed;
} did;

/* ---- the function ------------------------------------------------------- */

static int emit_one(uva_emit_fn *emit, void *emitter, int64_t length)
{
    struct uva_batch out = {0};
    int code;

    batch_make(&out.data, length);
    if (script.empty)
        uva_array_release(&out.data);
    if (script.crooked)
        out.data.array.n_buffers = 1;
    code = emit(emitter, &out);
    ck_assert(!uva_array_is_live(&out.data));
    return script.ignores ? 0 : code;
}

static int script_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    const bool stops = did.input == script.stop_at;
    int code = 0;

    ck_assert_ptr_eq(ctx, &script);
    ck_assert_int_eq(in->ordinal, did.input);
    ck_assert_str_eq(in->schema->format, "c");
    ck_assert(uva_array_is_live(&in->data));
    ck_assert_int_eq(error->code, 0);
    atomic_fetch_add(&did.calls, 1);
    atomic_store(&did.inside, true);
    while (script.held && !atomic_load(&did.passed))
        (void)sched_yield();
    while (did.at < in->data.array.length &&
           (code == 0 || (code == EAGAIN && script.ignores_full)) &&
           (!stops || script.emits_first)) {
        code = emit_one(emit, emitter, 10 * in->data.array.length + did.at);
        did.at++;
    }
    atomic_fetch_add(&did.returned, 1);
    if (did.at < in->data.array.length && code == EAGAIN)
        return EINPROGRESS; /* called again with this input */
    did.at = 0;
    did.input++;
    if (stops)
        return script.code > 0 ? uva_error_set(error, script.code, "enough")
                               : script.code;
    return code == EAGAIN ? 0 : code;
}

static int script_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                         struct uva_error *error)
{
    (void)ctx;
    atomic_fetch_add(&did.calls, 1);
    while (did.tail < script.tail) {
        const int code = emit_one(emit, emitter, 990 + did.tail);

        did.tail++;
        if (code != 0 && !script.ignores_full)
            return code == EAGAIN ? EINPROGRESS : code;
    }
    return script.code != 0 ? uva_error_set(error, script.code, "no finish")
                            : 0;
}

static void script_free(void *ctx)
{
    ck_assert_ptr_eq(ctx, &script);
    atomic_fetch_add(&did.freed, 1);
}

/* ---- the fixture -------------------------------------------------------- */

static void set_up(void)
{
    /* no turn ends early on a machine that is slow */
    const struct uva_runtime_options patient = {.turn_us = 100000000};

    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open_with(&loop, &patient);
    script = (struct script){.stop_at = -1, .tail = -1};
    memset(&did, 0, sizeof(did));
    options = (struct uva_transform){
        .batch = script_batch, .free_ctx = script_free, .ctx = &script};
}

static void tear_down(void)
{
    const long expected = options.free_ctx != NULL;

    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(atomic_load(&did.freed), expected);
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

static void run(int place, const int *lengths)
{
    struct uva_stream *stream = stream_of(lengths);

    options.on_loop = place == ON_LOOP;
    if (script.tail >= 0)
        options.finish = script_finish;
    ck_assert_int_eq(uva_stream_transform(stream, &options), 0);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
}

static void failed_with(int code, const char *text, const char *transcript)
{
    recording_ended(&consumer, UVA_END_FAILED, code, text);
    ck_assert_str_eq(consumer.transcript, transcript);
}

static const int LENGTHS[] = {3, 0, 2, 1, -1};

static struct uva_stage_stats stats_of(const struct uva_stream *stream)
{
    struct uva_stage_stats stages[2];
    size_t count = 2;

    ck_assert_int_eq(uva_stream_get_stats(stream, stages, &count), 0);
    ck_assert_str_eq(stages[1].name, "transform");
    return stages[1];
}

/* Emits three batches in its first call, the last of them when the others have
 * left the window, if that can be; and the fourth in the next call. */
static int unfinished_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                            void *emitter, struct uva_error *error)
{
    int code;

    (void)ctx, (void)in, (void)error;
    if (atomic_fetch_add(&did.calls, 1) > 0) {
        code = emit_one(emit, emitter, 4);
        return code == EAGAIN ? 0 : code;
    }
    ck_assert_int_eq(emit_one(emit, emitter, 1), 0);
    code = emit_one(emit, emitter, 2);
    if (code == 0 && !options.on_loop) { /* the consumer was faster */
        (void)atomic_fetch_add(&did.calls, 1);
        (void)emit_one(emit, emitter, 3);
        (void)emit_one(emit, emitter, 4);
        return 0;
    }
    ck_assert_int_eq(code, EAGAIN);
    while (!options.on_loop && atomic_load(&consumer.batches) < 2)
        (void)sched_yield();
    code = emit_one(emit, emitter, 3);
    ck_assert_int_eq(code, options.on_loop ? EAGAIN : 0);
    return EINPROGRESS;
}

/* ---- emitted batches ---------------------------------------------------- */

START_TEST(batches_are_emitted_in_order)
{
    run(_i, LENGTHS);
    ck_assert_str_eq(consumer.transcript, "schema 30 31 32 20 21 10 complete");
    ck_assert_int_eq(consumer.ordinal, 5);
    ck_assert(consumer.in_order);
    ck_assert_int_eq(atomic_load(&did.calls), 4);
}
END_TEST

START_TEST(finish_emits_behind_the_last_batch)
{
    script.tail = 2;
    run(_i, LENGTHS);
    ck_assert_str_eq(consumer.transcript,
                     "schema 30 31 32 20 21 10 990 991 complete");
}
END_TEST

START_TEST(finish_is_called_where_there_was_no_batch)
{
    static const int none[] = {-1};

    script.tail = 1;
    run(_i, none);
    ck_assert_str_eq(consumer.transcript, "schema 990 complete");
}
END_TEST

/* Each emit fills the window, so each call emits one batch. */
START_TEST(a_full_window_has_the_function_called_again)
{
    script.tail = 2;
    options.window.batches = 1;
    run(_i, LENGTHS);
    ck_assert_str_eq(consumer.transcript,
                     "schema 30 31 32 20 21 10 990 991 complete");
    ck_assert_int_eq(atomic_load(&did.calls), 3 + 1 + 2 + 1 + 3);
}
END_TEST

/* Each call emits all of its batches, in their order, and they are counted. */
START_TEST(a_function_may_exceed_a_full_window)
{
    struct uva_stream *stream = stream_of(LENGTHS);

    script.tail = 2;
    script.ignores_full = true;
    options.window.batches = 1;
    options.on_loop = _i == ON_LOOP;
    options.finish = script_finish;
    ck_assert_int_eq(uva_stream_transform(stream, &options), 0);
    recording_start(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript,
                     "schema 30 31 32 20 21 10 990 991 complete");
    ck_assert_int_eq(atomic_load(&did.calls), 4 + 1);
    ck_assert_int_eq(consumer.ordinal, 7);
    if (_i == ON_LOOP)
        ck_assert_int_eq(stats_of(stream).queued_max, 3);
    uva_stream_release(stream);
}
END_TEST

/* Also if the last emit of a call found room, which the loop has made. */
START_TEST(a_call_that_has_met_a_full_window_may_be_unfinished)
{
    static const int lengths[] = {3, -1};

    options.batch = unfinished_batch;
    options.window.batches = 2;
    run(_i, lengths);
    ck_assert_str_eq(consumer.transcript, "schema 1 2 3 4 complete");
    ck_assert_int_eq(atomic_load(&did.calls), 2);
}
END_TEST

/* As many bytes as rows: two batches of 50 bytes fill the window. On a worker
 * the consumer may make room at once. */
START_TEST(a_window_is_filled_by_bytes_too)
{
    static const int lengths[] = {5, -1};

    options.window.bytes = 100;
    run(_i, lengths);
    ck_assert_str_eq(consumer.transcript, "schema 50 51 52 53 54 complete");
    if (_i == ON_LOOP)
        ck_assert_int_eq(atomic_load(&did.calls), 3);
}
END_TEST

static bool is_inside(void *ctx)
{
    (void)ctx;
    return atomic_load(&did.inside);
}

/* Passes batches on; waits in the first call. */
static int held_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                      void *emitter, struct uva_error *error)
{
    int code;

    (void)ctx;
    (void)error;
    atomic_store(&did.inside, true);
    while (!atomic_load(&did.passed))
        (void)sched_yield();
    code = emit(emitter, in);
    return code == EAGAIN ? 0 : code;
}

/* Of batches of 30 bytes, which are known beforehand, no more come than fit
 * into 100 bytes, with the batch that the worker holds. One comes that is
 * larger than the window. */
START_TEST(inputs_that_wait_fill_a_window_by_their_bytes)
{
    static const int lengths[][9] = {{30, 30, 30, 30, 30, 30, 30, 30, -1},
                                     {300, 30, 30, 30, 30, 30, 30, 30, -1}};
    struct uva_stream *stream = stream_of(lengths[_i]);
    struct uva_stage_stats stats;

    options.batch = held_batch;
    options.window = (struct uva_window){.batches = 64, .bytes = 100};
    ck_assert_int_eq(uva_stream_transform(stream, &options), 0);
    recording_start(&consumer, stream);
    while (!is_inside(NULL))
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    loop_settle(&loop);
    stats = stats_of(stream);
    ck_assert_int_eq(stats.queued_max, _i == 0 ? 3 : 1);
    ck_assert_int_eq(stats.queued_bytes_max, _i == 0 ? 90 : 300);
    atomic_store(&did.passed, true);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.batches, 8);
    uva_stream_release(stream);
}
END_TEST

/* ---- forbidden acts ----------------------------------------------------- */

START_TEST(einprogress_without_a_full_window_is_an_error)
{
    script.stop_at = 1;
    script.code = EINPROGRESS;
    run(_i, LENGTHS);
    failed_with(EPROTO, "no emit returned EAGAIN", "schema 30 31 32 failed");
}
END_TEST

/* EAGAIN is a code as any other, also after an emit that returned it. */
START_TEST(eagain_of_the_function_is_a_failure)
{
    options.window.batches = 1;
    script.stop_at = 0;
    script.code = -EAGAIN; /* without a text of its own */
    script.emits_first = true;
    script.ignores_full = true;
    run(_i, LENGTHS);
    failed_with(EAGAIN, "EINPROGRESS", "schema 30 31 32 failed");
}
END_TEST

START_TEST(eagain_keeps_the_text_of_the_function)
{
    script.stop_at = 1;
    script.code = EAGAIN;
    run(_i, LENGTHS);
    failed_with(EAGAIN, "enough", "schema 30 31 32 failed");
}
END_TEST

START_TEST(a_batch_that_does_not_fit_is_an_error)
{
    script.crooked = true;
    run(_i, LENGTHS);
    failed_with(EPROTO, "n_buffers", "schema failed");
}
END_TEST

/* The function ignores the result of emit: still the batch is lost. */
START_TEST(a_batch_that_is_lost_is_an_error)
{
    script.empty = true;
    script.ignores = true;
    run(_i, LENGTHS);
    failed_with(EPROTO, "no array", "schema failed");
}
END_TEST

/* ---- how it ends -------------------------------------------------------- */

START_TEST(an_error_follows_what_was_emitted)
{
    script.stop_at = 2;
    script.code = EDOM;
    script.emits_first = true;
    script.tail = 1;
    run(_i, LENGTHS);
    failed_with(EDOM, "enough", "schema 30 31 32 20 21 failed");
    ck_assert_int_eq(atomic_load(&did.calls), 3);
}
END_TEST

START_TEST(enough_is_a_good_end)
{
    script.stop_at = 2;
    script.code = ENOENT;
    script.emits_first = true;
    script.tail = 1;
    run(_i, LENGTHS);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_str_eq(consumer.transcript, "schema 30 31 32 20 21 complete");
    ck_assert_int_eq(atomic_load(&did.calls), 3);
}
END_TEST

START_TEST(finish_may_fail)
{
    script.tail = 1;
    script.code = ERANGE;
    run(_i, LENGTHS);
    failed_with(ERANGE, "no finish", "schema 30 31 32 20 21 10 990 failed");
}
END_TEST

/* The function waits on its worker while the stream is cancelled. */
START_TEST(a_cancel_does_not_wait_for_the_function)
{
    struct uva_stream *stream = stream_of(LENGTHS);

    script.held = true;
    ck_assert_int_eq(uva_stream_transform(stream, &options), 0);
    recording_start(&consumer, stream);
    while (!is_inside(NULL))
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    uva_stream_cancel(stream, ECANCELED, "no more");
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_CANCELLED, ECANCELED, "no more");
    uva_stream_release(stream);
    atomic_store(&did.passed, true);
    loop_close_runtime(&loop, 0);
    ck_assert_str_eq(consumer.transcript, "schema cancelled");
    ck_assert_int_eq(atomic_load(&did.calls), 1);
}
END_TEST

/* ---- schemas ------------------------------------------------------------ */

static int make_schema(void *ctx, const struct ArrowSchema *in,
                       struct ArrowSchema *out, struct uva_error *error)
{
    ck_assert_ptr_eq(ctx, &script);
    return made_schema_give(script.code, script.empty, in, out, error);
}

START_TEST(a_schema_that_is_made_is_that_of_the_batches)
{
    static const int codes[] = {0, EDOM, 0}, empty[] = {0, 0, 1};
    static const char *const ends[] = {"schema 30 31 32 20 21 10 complete",
                                       "failed", "failed"};
    static const char *const texts[] = {"", "no schema", "no valid schema"};
    const int way = _i / PLACES;
    struct uva_stream *stream = stream_of(LENGTHS);

    script.code = codes[way];
    script.empty = empty[way];
    options.schema = make_schema;
    options.on_loop = _i % PLACES == ON_LOOP;
    (void)uva_stream_transform(stream, &options);
    made_schema_run(stream, &consumer, &loop, ends[way], texts[way]);
}
END_TEST

/* ---- demand ------------------------------------------------------------- */

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    ck_assert_ptr_nonnull(batch);
    ck_assert_ptr_null(outcome);
    ck_assert_int_eq(batch->data.array.length, 1);
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static int pass_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                      void *emitter, struct uva_error *error)
{
    (void)error;
    atomic_fetch_add((atomic_long *)ctx, 1);
    (void)emit(emitter, in);
    return 0;
}

START_TEST(ten_stages_move_one_batch_for_a_demand_of_one)
{
    static const int ones[] = {1, 1, 1, 1, 1, -1};
    struct uva_stream *stream = stream_of(ones);
    atomic_long passed[10] = {0};
    bool answered = false;

    options = (struct uva_transform){
        .batch = pass_batch, .on_loop = _i == ON_LOOP, .window.batches = 1};
    for (int i = 0; i < 10; i++) {
        struct uva_transform stage = options;

        stage.ctx = &passed[i];
        ck_assert_int_eq(uva_stream_transform(stream, &stage), 0);
    }
    ck_assert_int_eq(asking_next(&asking, stream, on_next, &answered), 0);
    loop_until(&loop, is_set, &answered);
    loop_settle(&loop);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(atomic_load(&passed[i]), 1);
    uva_stream_drop(stream);
}
END_TEST

/* ---- errors of the source ----------------------------------------------- */

/* The fifth batch is lost: its extraction fails, or the source does. Batches
 * emitted before it are delivered, and finish is not called. */
START_TEST(errors_of_the_source_follow_what_was_emitted)
{
    atomic_long passed = 0;
    struct fixture f;

    fixture_open(&f, 9);
    if (_i / PLACES == 0)
        f.fake.extract_at = 4;
    else
        f.fake.fail_at = 4;
    f.fake.fail_code = EIO;
    f.fake.fail_text = "broken";
    f.stream = _i / PLACES == 0 ? fixture_tasks(&f) : fixture_blocking(&f);
    options = (struct uva_transform){.batch = pass_batch,
                                     .finish = script_finish,
                                     .ctx = &passed,
                                     .on_loop = _i % PLACES == ON_LOOP};
    ck_assert_int_eq(uva_stream_transform(f.stream, &options), 0);
    ck_assert_int_eq(fixture_run(&f), EIO);
    recording_ended(&f.got, UVA_END_FAILED, EIO, "broken");
    ck_assert_int_eq(f.got.taken, 4);
    ck_assert_int_eq(atomic_load(&passed), 4);
    ck_assert_int_eq(atomic_load(&did.calls), 0);
    fixture_close(&f);
}
END_TEST

static int fail_third(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    if (in->ordinal == 2)
        return uva_error_set(error, EDOM, "no third");
    uva_array_move(&in->data, out);
    return 0;
}

START_TEST(a_map_above_may_fail)
{
    struct uva_stream *stream = stream_of(LENGTHS);

    options.on_loop = _i == ON_LOOP;
    ck_assert_int_eq(
        uva_stream_map(stream,
                       &(struct uva_map){.batch = fail_third, .on_loop = true}),
        0);
    ck_assert_int_eq(uva_stream_transform(stream, &options), 0);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    failed_with(EDOM, "no third", "schema 30 31 32 failed");
}
END_TEST

static bool has_returned(void *ctx)
{
    (void)ctx;
    return atomic_load(&did.returned) > 0;
}

static void on_first(void *ctx, struct uva_batch *batch,
                     const struct uva_outcome *outcome)
{
    (void)outcome;
    ck_assert_int_eq(batch->data.array.length, 90);
    uva_array_release(&batch->data);
    *(bool *)ctx = true;
}

/* Of the emitted batches, one is wanted. */
START_TEST(results_that_are_not_wanted_are_released)
{
    static const int nine[] = {9, -1};
    struct uva_stream *stream = stream_of(nine);
    bool answered = false;

    options.on_loop = _i == ON_LOOP;
    options.window.batches = 4;
    ck_assert_int_eq(uva_stream_transform(stream, &options), 0);
    ck_assert_int_eq(asking_next(&asking, stream, on_first, &answered), 0);
    loop_until(&loop, is_set, &answered);
    loop_until(&loop, has_returned, NULL);
    uva_stream_drop(stream);
}
END_TEST

/* ---- bad options -------------------------------------------------------- */

static void refused(struct uva_transform *bad, const char *text)
{
    struct uva_stream *stream = stream_of(LENGTHS);
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_transform(stream, bad), EINVAL);
    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, text));
    uva_stream_release(stream);
}

START_TEST(options_are_checked)
{
    struct uva_transform bad = options;

    bad.batch = NULL;
    refused(&bad, "batch");
    bad = options;
    bad.window.batches = -1;
    refused(&bad, "window");
    bad = options;
    bad.reserved[1] = &bad;
    refused(&bad, "reserved");
    refused(NULL, "batch");
    ck_assert_int_eq(atomic_load(&did.freed), 2); /* not of the third */
    bad = (struct uva_transform){0};              /* without free_ctx */
    refused(&bad, "batch");
    atomic_store(&did.freed, 1);
}
END_TEST

START_TEST(a_stream_that_has_started_takes_no_stage)
{
    struct uva_stream *stream = stream_of(LENGTHS);
    struct uva_transform other = {.batch = script_batch};

    recording_start(&consumer, stream);
    ck_assert_int_eq(uva_stream_transform(stream, &options), EBUSY);
    ck_assert_int_eq(uva_stream_transform(stream, &other), EBUSY);
    other.reserved[0] = &other;
    ck_assert_int_eq(uva_stream_transform(stream, &other), EBUSY);
    ck_assert_int_eq(uva_stream_transform(stream, NULL), EBUSY);
    uva_stream_release(stream);
    recording_await_done(&consumer, &loop);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("transforms");

    suite_add_loops(tests, 0, PLACES, batches_are_emitted_in_order,
                    finish_emits_behind_the_last_batch,
                    finish_is_called_where_there_was_no_batch,
                    a_full_window_has_the_function_called_again,
                    a_function_may_exceed_a_full_window,
                    a_call_that_has_met_a_full_window_may_be_unfinished,
                    a_window_is_filled_by_bytes_too,
                    einprogress_without_a_full_window_is_an_error,
                    eagain_of_the_function_is_a_failure,
                    eagain_keeps_the_text_of_the_function,
                    a_batch_that_does_not_fit_is_an_error,
                    a_batch_that_is_lost_is_an_error,
                    an_error_follows_what_was_emitted, enough_is_a_good_end,
                    finish_may_fail, a_map_above_may_fail,
                    results_that_are_not_wanted_are_released,
                    ten_stages_move_one_batch_for_a_demand_of_one, NULL);
    suite_add_loops(tests, 0, 2, inputs_that_wait_fill_a_window_by_their_bytes,
                    NULL);
    suite_add_loops(tests, 0, 2 * PLACES,
                    errors_of_the_source_follow_what_was_emitted, NULL);
    suite_add_loops(tests, 0, 3 * PLACES,
                    a_schema_that_is_made_is_that_of_the_batches, NULL);
    suite_add(tests, a_cancel_does_not_wait_for_the_function,
              options_are_checked, a_stream_that_has_started_takes_no_stage,
              NULL);
    return suite_main("transform", set_up, tear_down, tests, NULL);
}
