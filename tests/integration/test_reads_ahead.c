/* SPDX-License-Identifier: Apache-2.0 */
/* How many batches each stage reads for the requested batches: no more without
 * its own window. The source is read on the loop thread, so that the batches
 * that it has given are counted without a race. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/asking.h"
#include "support/case_list.h"
#include "support/fixture.h"
#include "uvarrow/stages.h"

static struct asking asking;

enum { ROWS = 10, BATCHES = 400, REQUESTS = 3 };

static struct fixture f;

/* ---- stages ------------------------------------------------------------- */

static int map_same(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)error;
    memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

static int keep_fifth(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                      struct uva_error *error)
{
    (void)ctx;
    (void)error;
    if (batch->ordinal % 5 == 0)
        memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

static struct uva_stream *no_other(void *ctx, const struct uva_outcome *failure,
                                   int32_t attempt, int64_t batches,
                                   int64_t rows)
{
    (void)ctx;
    (void)failure;
    (void)attempt;
    (void)batches;
    (void)rows;
    return NULL;
}

static void add_nothing(struct uva_stream *s)
{
    (void)s;
}

static void add_map(struct uva_stream *s)
{
    (void)uva_stream_map(s, &(struct uva_map){.batch = map_same});
}

static void add_filter(struct uva_stream *s)
{
    (void)uva_stream_filter(s, &(struct uva_filter){.keep = keep_all});
}

static void add_filter_on_loop(struct uva_stream *s)
{
    (void)uva_stream_filter(
        s, &(struct uva_filter){.keep = keep_all, .on_loop = true});
}

static void add_filter_of_a_fifth(struct uva_stream *s)
{
    (void)uva_stream_filter(s, &(struct uva_filter){.keep = keep_fifth});
}

static void add_ten_filters(struct uva_stream *s)
{
    for (int i = 0; i < 10; i++)
        (i % 2 == 0 ? add_filter : add_filter_on_loop)(s);
}

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    const int code = emit(emitter, in);

    (void)ctx;
    (void)error;
    return code == EAGAIN ? 0 : code;
}

static void add_transform(struct uva_stream *s)
{
    (void)uva_stream_transform(s, &(struct uva_transform){.batch = pass_on});
}

static void add_transform_on_loop(struct uva_stream *s)
{
    (void)uva_stream_transform(
        s, &(struct uva_transform){.batch = pass_on, .on_loop = true});
}

static void add_ten_transforms(struct uva_stream *s)
{
    for (int i = 0; i < 10; i++)
        (i % 2 == 0 ? add_transform : add_transform_on_loop)(s);
}

static void add_transform_of_four(struct uva_stream *s)
{
    (void)uva_stream_transform(s, &(struct uva_transform){.batch = pass_on,
                                                          .on_loop = true,
                                                          .window.batches = 4});
}

static void add_window_of_four(struct uva_stream *s)
{
    (void)uva_stream_filter(s, &(struct uva_filter){.keep = keep_all,
                                                    .on_loop = true,
                                                    .window.batches = 4});
}

static void add_limit_rows(struct uva_stream *s)
{
    (void)uva_stream_limit_rows(s, 100000);
}

static void add_rebatch(struct uva_stream *s, int64_t rows, int64_t bytes)
{
    (void)uva_stream_rebatch(
        s, &(struct uva_rebatch){.rows = rows, .bytes = bytes});
}

static void add_rebatch_same(struct uva_stream *s)
{
    add_rebatch(s, ROWS, 0);
}

static void add_rebatch_half(struct uva_stream *s)
{
    add_rebatch(s, ROWS / 2, 0);
}

static void add_rebatch_ten(struct uva_stream *s)
{
    add_rebatch(s, 10 * ROWS, 0);
}

/* More than a window of 64. */
static void add_rebatch_hundred(struct uva_stream *s)
{
    add_rebatch(s, 100 * ROWS, 0);
}

static void add_rebatch_uneven(struct uva_stream *s)
{
    add_rebatch(s, 25, 0);
}

static void add_rebatch_bytes(struct uva_stream *s)
{
    add_rebatch(s, 0, 10 * ROWS * 8);
}

static void add_rebatch_both(struct uva_stream *s)
{
    add_rebatch(s, 1000 * ROWS, 3 * ROWS * 8);
}

static void add_many(struct uva_stream *s)
{
    add_rebatch_ten(s);
    add_filter(s);
    add_limit_rows(s);
    add_rebatch_half(s);
}

static void add_concat(struct uva_stream *s)
{
    (void)uva_stream_concat(s, NULL, 0, NULL);
}

static void add_retry(struct uva_stream *s)
{
    (void)uva_stream_retry(s, &(struct uva_retry){.again = no_other});
}

static void add_throttle(struct uva_stream *s)
{
    (void)uva_stream_throttle(s,
                              &(struct uva_throttle){.batches_per_s = 1000000});
}

static void add_timeout(struct uva_stream *s)
{
    (void)uva_stream_timeout(s, &(struct uva_timeout){.first_ms = 600000});
}

/* The batches that each stage reads for one, two and three batches. A batch
 * that is limited by bytes is passed on when the first rows have come that do
 * not fit. */
static const struct {
    const char *name;
    void (*add)(struct uva_stream *s);
    long reads[REQUESTS];
} stages[] = {
    {"nothing", add_nothing, {1, 2, 3}},
    {"filter", add_filter, {1, 2, 3}},
    {"filter_on_loop", add_filter_on_loop, {1, 2, 3}},
    {"filter_of_a_fifth", add_filter_of_a_fifth, {1, 6, 11}},
    {"ten_filters", add_ten_filters, {1, 2, 3}},
    {"window_of_four", add_window_of_four, {4, 5, 6}},
    {"transform", add_transform, {1, 2, 3}},
    {"transform_on_loop", add_transform_on_loop, {1, 2, 3}},
    {"ten_transforms", add_ten_transforms, {1, 2, 3}},
    {"transform_of_four", add_transform_of_four, {4, 5, 6}},
    {"limit_rows", add_limit_rows, {1, 2, 3}},
    {"rebatch_same", add_rebatch_same, {1, 2, 3}},
    {"rebatch_half", add_rebatch_half, {1, 1, 2}},
    {"rebatch_ten", add_rebatch_ten, {10, 20, 30}},
    {"rebatch_hundred", add_rebatch_hundred, {100, 200, 300}},
    {"rebatch_uneven", add_rebatch_uneven, {3, 5, 8}},
    {"rebatch_bytes", add_rebatch_bytes, {11, 21, 31}},
    {"rebatch_both", add_rebatch_both, {4, 7, 10}},
    {"many", add_many, {10, 10, 10}},
    {"concat", add_concat, {1, 2, 3}},
    {"retry", add_retry, {1, 2, 3}},
    {"throttle", add_throttle, {1, 2, 3}},
    {"timeout", add_timeout, {1, 2, 3}},
};

/* ---- cases -------------------------------------------------------------- */

static int64_t answered_rows;

static void on_next(void *ctx, struct uva_batch *batch,
                    const struct uva_outcome *outcome)
{
    ck_assert_ptr_nonnull(batch);
    ck_assert_ptr_null(outcome);
    answered_rows = batch->data.array.length;
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void reads(int i, bool lazy)
{
    fixture_open(&f, BATCHES);
    f.fake.rows = ROWS;
    f.options.window.batches = 1;
    f.stream = fixture_on_loop(&f);
    if (lazy)
        add_map(f.stream);
    stages[i].add(f.stream);
    for (int k = 0; k < REQUESTS; k++) {
        bool answered = false;

        ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &answered), 0);
        loop_until(&f.loop, is_set, &answered);
        loop_settle(&f.loop);
        ck_assert_int_eq(atomic_load(&f.fake.given), stages[i].reads[k]);
    }
    fixture_drop(&f);
    fixture_close(&f);
}

static void reads_what_is_requested(int i)
{
    reads(i, false);
}

static void reads_what_is_requested_of_a_lazy_source(int i)
{
    reads(i, true);
}

static bool take_one(void *ctx)
{
    struct uva_batch batch = {0};
    const int code = uva_stream_take(f.stream, &batch, NULL);

    (void)ctx;
    ck_assert(code == 0 || code == EAGAIN);
    if (code == 0)
        uva_array_release(&batch.data);
    return code == 0;
}

static bool source_has_given(void *ctx)
{
    return atomic_load(&f.fake.given) >= *(long *)ctx;
}

/* The batches that the source has given when one, two and three were taken. A
 * window of one holds the next one, whatever the stages are; a stage on workers
 * requests it when its job is back. */
static void reads_in_a_window_of_one(int i)
{
    const struct uva_window one = {.batches = 1};

    fixture_open(&f, BATCHES);
    f.fake.rows = ROWS;
    f.options.window.batches = 1;
    f.stream = fixture_on_loop(&f);
    add_map(f.stream);
    stages[i].add(f.stream);
    ck_assert_int_eq(uva_stream_start_take(f.stream, &one, NULL, NULL, NULL),
                     0);
    for (long given = 2; given < 2 + REQUESTS; given++) {
        loop_until(&f.loop, take_one, NULL);
        loop_until(&f.loop, source_has_given, &given);
        loop_settle(&f.loop);
        ck_assert_int_eq(atomic_load(&f.fake.given), given);
    }
    fixture_release(&f);
    fixture_close(&f);
}

/* Several batches are requested, each of more rows than can be counted. */
static void joins_all_rows(int requested)
{
    struct uva_parallel ahead = {.window.batches = requested};
    bool answered = false;

    fixture_open(&f, BATCHES);
    f.fake.rows = ROWS;
    f.stream = fixture_on_loop(&f);
    add_rebatch(f.stream, INT64_MAX, 0);
    ck_assert_int_eq(uva_stream_parallel(f.stream, &ahead), 0);
    ck_assert_int_eq(asking_next(&asking, f.stream, on_next, &answered), 0);
    loop_until(&f.loop, is_set, &answered);
    ck_assert_int_eq(answered_rows, BATCHES * ROWS);
    fixture_drop(&f);
    fixture_close(&f);
}

int main(void)
{
    TCase *tcase = tcase_create("reads_ahead");

    for (int i = 0; i < (int)(sizeof(stages) / sizeof(stages[0])); i++) {
        case_list_add(tcase, "reads", stages[i].name, reads_what_is_requested,
                      i);
        if (stages[i].add != add_nothing && stages[i].add != add_timeout &&
            stages[i].add != add_window_of_four &&
            stages[i].add != add_transform_of_four)
            case_list_add(tcase, "lazy", stages[i].name,
                          reads_what_is_requested_of_a_lazy_source, i);
    }
    case_list_add(tcase, "takes", "map", reads_in_a_window_of_one, 0);
    case_list_add(tcase, "takes", "filter", reads_in_a_window_of_one, 1);
    case_list_add(tcase, "joins", "all_for_two", joins_all_rows, 2);
    case_list_add(tcase, "joins", "all_for_three", joins_all_rows, 3);
    return case_list_run("reads_ahead", tcase);
}
