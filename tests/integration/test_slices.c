/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of one large batch count with the size of their rows, wherever bytes
 * are limited: not with the rows before them. A row is a byte. */
#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "support/recording_handler.h"
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

/* The batches of uva_stream_collect(). */
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

/* Together they are one burst. With the rows before them the last ones would
 * have to wait for a minute. */
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

/* ---- the memory of a runtime -------------------------------------------- */

enum { FRONT = 1 << 20, LIMIT = FRONT / 2 }; /* bytes */

static void reopen(int64_t memory_bytes)
{
    loop_close(&loop);
    loop_open_with(&loop,
                   &(struct uva_runtime_options){.memory_bytes = memory_bytes});
}

static struct uva_runtime_stats stats_now(void)
{
    struct uva_runtime_stats stats;

    uva_runtime_get_stats(loop.runtime, &stats);
    return stats;
}

/* A source of slices of one array, which this library does not know to be
 * slices; after FRONT rows that were passed on before. */
static int sliced;          /* slices that were given */
static const char *unknown; /* their format in place of "c"; or NULL */

static int slice_schema(struct ArrowArrayStream *stream,
                        struct ArrowSchema *out)
{
    (void)stream;
    batch_schema(out);
    if (unknown != NULL)
        out->format = unknown;
    return 0;
}

static int slice_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    static const char rows[FRONT + SLICES * ROWS];

    (void)stream;
    out->release = NULL;
    if (sliced == SLICES)
        return 0;
    plain_array(out, ROWS, 2, 0);
    out->buffers[1] = rows;
    out->offset = FRONT + sliced++ * ROWS;
    return 0;
}

static const char *no_text(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void slice_end(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static struct uva_stream *foreign_slices(void)
{
    struct ArrowArrayStream source = {slice_schema, slice_next, no_text,
                                      slice_end, NULL};

    sliced = 0;
    return uva_stream_from_arrow_stream(
        loop.runtime, &source, &(struct uva_arrow_source){.on_loop = true});
}

/* Takes some slices. Returns how many were read ahead of them. */
static int read_ahead(struct uva_stream *stream, int64_t count)
{
    consumer.appetite = count;
    recording_start(&consumer, stream);
    recording_await(&consumer, &loop, count);
    loop_settle(&loop);
    return sliced - (int)count;
}

static void take_rest(struct uva_stream *stream)
{
    recording_feed(&consumer, SLICES);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.taken, SLICES);
    ck_assert_int_eq(stats_now().memory_held, 0);
    uva_stream_release(stream);
    recording_init(&consumer);
}

/* The front counts once, and does not keep its own stream from reading ahead:
 * further slices do not make it larger. */
START_TEST(what_lies_in_front_of_slices_counts_once)
{
    struct uva_stream *stream = foreign_slices();
    const int ahead = read_ahead(stream, 100);
    int64_t held;

    ck_assert_int_gt(ahead, 10);
    take_rest(stream);
    reopen(LIMIT);
    stream = foreign_slices();
    ck_assert_int_eq(read_ahead(stream, 100), ahead);
    held = stats_now().memory_held;
    ck_assert_int_ge(held, FRONT + sliced * ROWS - ROWS);
    ck_assert_int_le(held, FRONT + (100 + 64 + 1) * ROWS);
    ck_assert_int_ge(stats_now().memory_excess, held - LIMIT);
    take_rest(stream);
}
END_TEST

START_TEST(slices_of_an_unknown_format_have_no_size)
{
    struct uva_stream *stream;

    reopen(LIMIT);
    unknown = "?";
    stream = foreign_slices();
    (void)read_ahead(stream, 100);
    ck_assert_int_eq(stats_now().memory_held, 0);
    take_rest(stream);
    unknown = NULL;
}
END_TEST

/* Of slices that this library has cut the parent is known: it counts whole, as
 * long as one is held. Beside it, the windows below count their rows. */
START_TEST(a_parent_counts_as_long_as_a_slice_of_it_is_held)
{
    const int64_t most = SLICES * ROWS;
    struct uva_stream *stream;

    reopen(1 << 30);
    stream = slices();
    (void)read_ahead(stream, SLICES - 10);
    ck_assert_int_ge(stats_now().memory_held, most);
    ck_assert_int_le(stats_now().memory_held, most + 64 * ROWS);
    take_rest(stream);
}
END_TEST

/* ---- readers that ignore offsets ----------------------------------------- */

static void check_offset(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)c;
    ck_assert_int_eq(batch->data.array.offset, 0);
    for (int64_t i = 0; i < batch->data.array.n_children; i++)
        ck_assert_int_eq(batch->data.array.children[i]->offset, 0);
}

START_TEST(slices_may_be_copied_to_have_no_offset)
{
    struct uva_stream *stream = slices();

    ck_assert_int_eq(uva_stream_without_offsets(stream), 0);
    consumer.on_batch = check_offset;
    recording_start(&consumer, stream);
    ck_assert_int_eq(uva_stream_without_offsets(stream), EBUSY);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(consumer.taken, SLICES);
    uva_stream_release(stream);
}
END_TEST

/* The recording handler is such a reader: it has the first value of a column,
 * wherever the rows begin. */
START_TEST(a_driven_handler_may_ignore_offsets)
{
    struct recording_handler handler;
    struct fixture f;

    fixture_open(&f, 2);
    f.fake.rows = 3;
    f.stream = fixture_blocking(&f);
    (void)uva_stream_rebatch(f.stream, &(struct uva_rebatch){.rows = 1});
    if (_i == 1)
        ck_assert_int_eq(uva_stream_without_offsets(f.stream), 0);
    recording_handler_init(&handler, 1, 1);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler.handler, NULL, NULL),
                     0);
    while (!recording_handler_is_released(&handler))
        loop_turn(&f.loop);
    ck_assert_int_eq(handler.rows, 6);
    ck_assert_int_eq(handler.sum,
                     _i == 1 ? 0 + 1 + 2 + 10 + 11 + 12 : 3 * 0 + 3 * 10);
    recording_handler_fini(&handler);
    fixture_close(&f);
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
    tcase_add_test(tcase, what_lies_in_front_of_slices_counts_once);
    tcase_add_test(tcase, slices_of_an_unknown_format_have_no_size);
    tcase_add_test(tcase, a_parent_counts_as_long_as_a_slice_of_it_is_held);
    tcase_add_test(tcase, slices_may_be_copied_to_have_no_offset);
    tcase_add_loop_test(tcase, a_driven_handler_may_ignore_offsets, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
