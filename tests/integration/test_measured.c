/* SPDX-License-Identifier: Apache-2.0 */
/* A size that was measured stays with a batch that a stage passes on unchanged,
 * and with no other batch. To see which stages look at a batch again, the
 * offsets of its texts are changed after the source has measured it: then its
 * size is another one. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { ROWS = 8, STAGES = 16, TEXT = 100, LATER = 60 };

/* Sizes: nine offsets, and the texts. */
enum { FIRST = 4 * (ROWS + 1) + TEXT, AGAIN = 4 * (ROWS + 1) + LATER };

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct uva_stage_stats stages[STAGES];
static size_t count;
static int32_t offsets[ROWS + 1];
static const char data[TEXT];

static void set_up(void)
{
    recording_init(&consumer);
    loop_open(&loop);
    memset(offsets, 0, sizeof(offsets));
    offsets[ROWS] = TEXT;
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

/* A stream of one batch with a column of texts, which was measured; its last
 * offset is smaller now. */
static struct uva_stream *stream_open(void)
{
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_CPU,
                                     .device_id = -1};
    struct ArrowSchema schema;
    struct uva_stream *stream;

    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "u", "text", 0);
    plain_array(&array.array, ROWS, 1, 1);
    plain_array(array.array.children[0], ROWS, 3, 0);
    array.array.children[0]->buffers[1] = offsets;
    array.array.children[0]->buffers[2] = data;
    offsets[ROWS] = TEXT;
    stream = uva_stream_from_arrays(loop.runtime, &schema, &array, 1);
    offsets[ROWS] = LATER;
    return stream;
}

/* Plays the stream, and gives the bytes that its last stage has passed on: one
 * that has a size of each batch. */
static int64_t play(struct uva_stream *stream, enum uva_end end)
{
    ck_assert_int_eq(uva_stream_limit_rows(stream, INT64_MAX), 0);
    recording_start(&consumer, stream);
    recording_await_done(&consumer, &loop);
    count = STAGES;
    ck_assert_int_eq(uva_stream_get_stats(stream, stages, &count), 0);
    uva_stream_release(stream);
    ck_assert_int_eq(consumer.outcome.end, end);
    ck_assert_int_eq(stages[0].bytes, FIRST);
    return stages[count - 1].bytes;
}

/* ---- unchanged ----------------------------------------------------------- */

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)batch;
    (void)error;
    bits[0] = 0xff;
    return 0;
}

static int keep_half(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                     struct uva_error *error)
{
    (void)ctx;
    (void)batch;
    (void)error;
    bits[0] = 0xf0;
    return 0;
}

/* Adds a stage that passes the batch on as it is. */
static int add_unchanging(struct uva_stream *stream, int way)
{
    struct uva_stream *other;

    switch (way) {
    case 0:
    case 1:
        return uva_stream_filter(
            stream,
            &(struct uva_filter){.keep = keep_all, .on_loop = way == 1});
    case 2:
        return uva_stream_limit_rows(stream, ROWS + 1);
    case 3:
        return uva_stream_throttle(
            stream, &(struct uva_throttle){.bytes_per_s = 1 << 30});
    case 4:
        return uva_stream_parallel(stream, NULL);
    case 5:
        return uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = ROWS});
    case 6:
        return uva_stream_ready(stream, NULL);
    default:
        other = stream_open();
        return uva_stream_concat(stream, &other, 1, NULL);
    }
}

START_TEST(an_unchanged_batch_keeps_its_size)
{
    struct uva_stream *stream = stream_open();

    ck_assert_int_eq(add_unchanging(stream, _i), 0);
    ck_assert_int_eq(play(stream, UVA_END_COMPLETE),
                     _i == 7 ? 2 * FIRST : FIRST);
}
END_TEST

/* The size is there for each stage of a chain, and for the limit at its end. */
START_TEST(the_size_goes_through_a_chain)
{
    struct uva_stream *stream = stream_open();

    for (int way = 0; way < 7; way++)
        ck_assert_int_eq(add_unchanging(stream, way), 0);
    ck_assert_int_eq(play(stream, UVA_END_COMPLETE), FIRST);
}
END_TEST

START_TEST(branches_have_the_size)
{
    struct uva_stream *stream = stream_open();
    struct uva_stream *other = uva_stream_tee(stream, NULL);
    struct recording_consumer second;

    recording_init(&second);
    ck_assert_int_eq(add_unchanging(stream, 3), 0);
    ck_assert_int_eq(add_unchanging(other, 3), 0);
    recording_consume(&second, other);
    ck_assert_int_eq(play(stream, UVA_END_COMPLETE), FIRST);
    recording_await_done(&second, &loop);
}
END_TEST

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t n,
                         const struct uva_outcome *outcome)
{
    (void)info;
    (void)batches;
    (void)n;
    *(int *)ctx = outcome->error.code;
}

static bool has_result(void *ctx)
{
    return *(const int *)ctx >= 0;
}

/* By a limit between the two sizes. */
START_TEST(a_limit_of_collected_bytes_goes_by_it)
{
    struct uva_stream *stream = stream_open();
    int result = -1;

    if (_i == 1)
        ck_assert_int_eq(add_unchanging(stream, 0), 0);
    ck_assert_int_eq(
        uva_stream_collect(stream, FIRST - 1, on_collected, &result, NULL), 0);
    uva_stream_release(stream);
    loop_until(&loop, has_result, &result);
    ck_assert_int_eq(result, EMSGSIZE);
}
END_TEST

/* ---- perhaps changed ------------------------------------------------------
 */

static int map_same(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    return emit(emitter, in);
}

static int spoil(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                 void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    in->data.array.children[0]->n_buffers = 2;
    return emit(emitter, in);
}

static int begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    (void)ctx;
    uva_reply_give(reply, &in->data, NULL);
    return 0;
}

static int add_changing(struct uva_stream *stream, int way)
{
    switch (way) {
    case 0:
        return uva_stream_map(
            stream, &(struct uva_map){.batch = map_same, .on_loop = true});
    case 1:
        return uva_stream_map(stream, &(struct uva_map){.batch = map_same});
    case 2:
        return uva_stream_transform(stream,
                                    &(struct uva_transform){.batch = pass_on});
    default:
        return uva_stream_map_async(stream,
                                    &(struct uva_async_map){.begin = begin});
    }
}

/* A function that may change a batch has to be believed nothing, also if it
 * does not. */
START_TEST(a_function_that_gets_the_batch_ends_its_size)
{
    struct uva_stream *stream = stream_open();

    ck_assert_int_eq(add_changing(stream, _i / 4), 0);
    ck_assert_int_eq(add_unchanging(stream, _i % 4 + (_i % 4 > 0)), 0);
    ck_assert_int_eq(play(stream, UVA_END_COMPLETE), AGAIN);
}
END_TEST

START_TEST(a_batch_that_is_spoilt_is_found)
{
    struct uva_stream *stream = stream_open();

    ck_assert_int_eq(
        uva_stream_transform(stream, &(struct uva_transform){.batch = spoil}),
        0);
    ck_assert_int_eq(play(stream, UVA_END_FAILED), 0);
    ck_assert_int_eq(consumer.outcome.error.code, EPROTO);
}
END_TEST

START_TEST(selected_rows_have_their_own_size)
{
    struct uva_stream *stream = stream_open();

    ck_assert_int_eq(
        uva_stream_filter(stream, &(struct uva_filter){.keep = keep_half}), 0);
    ck_assert_int_eq(play(stream, UVA_END_COMPLETE), 4 * (ROWS / 2) + LATER);
}
END_TEST

START_TEST(fewer_rows_have_their_own_size)
{
    struct uva_stream *stream = stream_open();

    ck_assert_int_eq(uva_stream_limit_rows(stream, ROWS / 2), 0);
    ck_assert_int_eq(add_unchanging(stream, 3), 0);
    ck_assert_int_eq(play(stream, UVA_END_COMPLETE), 4 * (ROWS / 2 + 1));
}
END_TEST

/* A slice counts a part of the whole until another stage looks at it: all of
 * them, or the first. */
START_TEST(slices_have_their_own_size)
{
    struct uva_stream *stream = stream_open();

    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = ROWS / 2}), 0);
    ck_assert_int_eq(add_unchanging(stream, 3), 0);
    if (_i == 1)
        ck_assert_int_eq(uva_stream_limit_rows(stream, ROWS / 2), 0);
    ck_assert_int_eq(play(stream, UVA_END_COMPLETE),
                     _i == 1 ? 4 * (ROWS / 2 + 1) : AGAIN);
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "measured", the_size_goes_through_a_chain, branches_have_the_size,
        a_batch_that_is_spoilt_is_found, selected_rows_have_their_own_size,
        fewer_rows_have_their_own_size, NULL);

    tcase_add_loop_test(tc, slices_have_their_own_size, 0, 2);
    tcase_add_loop_test(tc, an_unchanged_batch_keeps_its_size, 0, 8);
    tcase_add_loop_test(tc, a_limit_of_collected_bytes_goes_by_it, 0, 2);
    tcase_add_loop_test(tc, a_function_that_gets_the_batch_ends_its_size, 0,
                        16);
    return suite_main("measured", set_up, tear_down, tc, NULL);
}
