/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of one large batch count as what their rows take, wherever bytes are
 * limited: none of them has what lies in front of it. A row is a byte. */
#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/stages.h"

enum { SLICES = 1000, ROWS = 10 }; /* of each slice */

static struct loop_fixture loop;
static struct recording_consumer consumer;

static void set_up(void)
{
    recording_init(&consumer);
    loop_open(&loop);
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static struct uva_stream *large(void)
{
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    batch_schema(&schema);
    batch_make(&array, SLICES * ROWS);
    return uva_stream_from_arrays(loop.runtime, &schema, &array, 1);
}

static struct uva_stream *slices(void)
{
    struct uva_stream *stream = large();

    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = ROWS}), 0);
    return stream;
}

/* ---- limits ------------------------------------------------------------- */

/* What uva_stream_collect() has given. */
struct collected {
    size_t count;
    int64_t bytes;
    enum uva_end end;
    bool done;
};

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    struct collected *got = ctx;
    int64_t bytes;

    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(uva_array_size(info->schema, &batches[i], &bytes), 0);
        got->bytes += bytes;
    }
    *got = (struct collected){count, got->bytes, outcome->end, true};
}

static bool is_collected(void *ctx)
{
    return ((struct collected *)ctx)->done;
}

START_TEST(what_is_collected_counts_once)
{
    const int64_t bytes = SLICES * ROWS - _i;
    struct uva_stream *stream = slices();
    struct collected got = {0};

    ck_assert_int_eq(
        uva_stream_collect(stream, bytes, on_collected, &got, NULL), 0);
    loop_until(&loop, is_collected, &got);
    ck_assert_int_eq(got.end, _i == 0 ? UVA_END_COMPLETE : UVA_END_REJECTED);
    ck_assert_int_eq(got.bytes, _i == 0 ? SLICES * ROWS : 0);
    uva_stream_release(stream);
}
END_TEST

static void check_size(struct recording_consumer *c, struct uva_batch *batch)
{
    int64_t bytes;

    (void)c;
    ck_assert_int_eq(uva_array_size(batch->schema, &batch->data, &bytes), 0);
    ck_assert_int_eq(bytes, batch->data.array.length);
    ck_assert_int_le(bytes, ROWS / 2);
}

START_TEST(no_batch_has_more_bytes_than_rebatch_was_told)
{
    struct uva_stream *stream = slices();

    ck_assert_int_eq(
        uva_stream_rebatch(stream, &(struct uva_rebatch){.bytes = ROWS / 2}),
        0);
    consumer.on_batch = check_size;
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, 2 * SLICES);
}
END_TEST

/* All of them are one burst. With what lies in front of them the last ones
 * would have to wait for a minute. */
START_TEST(a_throttle_counts_the_rows_that_pass)
{
    struct uva_stream *stream = slices();

    ck_assert_int_eq(
        uva_stream_throttle(
            stream, &(struct uva_throttle){.bytes_per_s = SLICES * ROWS * 11}),
        0);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.taken, SLICES);
}
END_TEST

/* ---- windows ------------------------------------------------------------ */

static atomic_int mapped;

static int map_count(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    atomic_fetch_add(&mapped, 1);
    return 0;
}

static bool is_full(void *ctx)
{
    loop_nudge(&loop);
    return atomic_load(&mapped) >= *(int *)ctx;
}

/* A window of bytes holds as many as it would hold of batches of their own.
 * The first ones were requested while no size was known. */
START_TEST(a_window_counts_the_rows_that_it_holds)
{
    struct uva_stream *stream = slices();
    int most = 100 + 10;

    atomic_store(&mapped, 0);
    ck_assert_int_eq(
        uva_stream_map(stream, &(struct uva_map){.batch = map_count}), 0);
    ck_assert_int_eq(
        uva_stream_parallel(
            stream,
            &(struct uva_parallel){.workers = 1, .window.bytes = 10 * ROWS}),
        0);
    consumer.appetite = 100;
    recording_start(&consumer, stream);
    loop_until(&loop, is_full, &most);
    loop_settle(&loop);
    ck_assert_int_le(atomic_load(&mapped), most + 3);
    recording_feed(&consumer, SLICES);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.taken, SLICES);
    uva_stream_release(stream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slices");
    TCase *tcase = tcase_create("limits");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, what_is_collected_counts_once, 0, 2);
    tcase_add_test(tcase, no_batch_has_more_bytes_than_rebatch_was_told);
    tcase_add_test(tcase, a_throttle_counts_the_rows_that_pass);
    tcase_add_test(tcase, a_window_counts_the_rows_that_it_holds);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
