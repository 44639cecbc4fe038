/* SPDX-License-Identifier: Apache-2.0 */
/* A filter that keeps some rows of a batch. Whole batches are tested in
 * test_rows.c, the copies of rows in tests/unit/arrow/test_select.c. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { ROWS_MAX = 200 };

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct {
    int64_t every;          /* the filter keeps every such row */
    int64_t from, to;       /* or these */
    const void *given;      /* the values of the last batch that it saw */
    char rows[ROWS_MAX];    /* what the consumer got */
    int64_t count;          /* number of these */
    ArrowDeviceType device; /* of the batches */
} filter;

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    const struct ArrowArray *const array = &batch->data.array;
    const char *const values = (const char *)array->buffers[1] + array->offset;

    (void)c;
    for (int64_t i = 0; i < array->length; i++)
        filter.rows[filter.count++] = values[i];
}

static void set_up(void)
{
    recording_init(&consumer);
    consumer.transcribes = true;
    consumer.on_batch = on_batch;
    loop_open(&loop);
    memset(&filter, 0, sizeof(filter));
    filter.every = 1;
    filter.device = ARROW_DEVICE_CPU;
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static int keep_some(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                     struct uva_error *error)
{
    const int64_t rows = batch->data.array.length;

    (void)ctx;
    (void)error;
    filter.given = batch->data.array.buffers[1];
    for (int64_t i = 0; i < (rows + 7) / 8; i++)
        ck_assert_int_eq(bits[i], 0); /* of each batch */
    for (int64_t i = 0; i < rows; i++)
        if (filter.to > 0 ? i >= filter.from && i < filter.to
                          : i % filter.every == 0)
            bits[i / 8] |= (uint8_t)(1 << i % 8);
    if (rows % 8 != 0)
        bits[rows / 8] |= (uint8_t)(0xff << rows % 8); /* do not matter */
    return 0;
}

static const signed char numbers[] = {0, 1, 2,  3,  4,  5,  6,  7,
                                      8, 9, 10, 11, 12, 13, 14, 15};

/* A stream of batches with the first numbers; the last length is -1. */
static struct uva_stream *stream_of(const int *lengths, bool on_loop)
{
    struct ArrowDeviceArray arrays[8];
    struct ArrowSchema schema;
    struct uva_stream *stream;
    size_t count = 0;

    plain_schema(&schema, "c", "", 0);
    for (; lengths[count] >= 0; count++) {
        arrays[count] = (struct ArrowDeviceArray){
            .device_id = filter.device == ARROW_DEVICE_CPU ? -1 : 0,
            .device_type = filter.device};
        plain_array(&arrays[count].array, lengths[count], 2, 0);
        arrays[count].array.buffers[1] = numbers;
    }
    stream = uva_stream_from_arrays(loop.runtime, &schema, arrays, count);
    (void)uva_stream_filter(
        stream, &(struct uva_filter){.keep = keep_some, .on_loop = on_loop});
    return stream;
}

static void play(struct uva_stream *stream, const char *transcript)
{
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_str_eq(consumer.transcript, transcript);
}

START_TEST(rows_are_copied_in_order)
{
    static const int lengths[] = {5, 0, 1, 12, 3, -1};
    static const char expected[] = {0, 3, 0, 0, 3, 6, 9, 0};

    filter.every = 3;
    play(stream_of(lengths, _i == 1), "schema 2 1 4 1 complete");
    ck_assert_int_eq(consumer.ordinal, 3); /* they count anew */
    ck_assert_int_eq(filter.count, 8);
    ck_assert_int_eq(memcmp(filter.rows, expected, sizeof(expected)), 0);
}
END_TEST

static void check_shared(struct recording_consumer *c, struct uva_batch *batch)
{
    on_batch(c, batch);
    ck_assert_ptr_eq(batch->data.array.buffers[1], numbers);
}

START_TEST(neighbours_are_a_slice_on_any_device)
{
    static const int lengths[] = {8, -1};

    consumer.on_batch = check_shared;
    filter.device = _i == 0 ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA_HOST;
    filter.from = 2;
    filter.to = 5;
    play(stream_of(lengths, true), "schema 3 complete");
    ck_assert_int_eq(filter.rows[0], 2);
    ck_assert(consumer.device_type == filter.device);
}
END_TEST

START_TEST(all_rows_are_passed_on_as_they_are)
{
    static const int lengths[] = {8, 9, -1};

    consumer.on_batch = check_shared;
    filter.device = _i == 0 ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA_HOST;
    play(stream_of(lengths, true), "schema 8 9 complete");
}
END_TEST

/* A batch is requested for each that has no row to pass on. */
START_TEST(a_batch_without_a_kept_row_is_not_passed_on)
{
    static const int lengths[] = {4, 8, 0, 6, 7, -1};

    filter.from = 6;
    filter.to = 8;
    consumer.appetite = 1;
    recording_consume(&consumer, stream_of(lengths, true));
    recording_await(&consumer, &loop, 1);
    ck_assert_str_eq(consumer.transcript, "schema 2");
    recording_feed(&consumer, 9);
    recording_await_done(&consumer, &loop);
    text_contains(consumer.transcript, "1 complete");
}
END_TEST

START_TEST(single_rows_of_a_device_cannot_be_copied)
{
    static const int lengths[] = {8, -1};

    filter.device = ARROW_DEVICE_CUDA_HOST;
    filter.every = 2;
    play(stream_of(lengths, true), "schema failed");
    recording_ended(&consumer, UVA_END_FAILED, ENOTSUP,
                    "filter: cannot copy the rows: they are not on the CPU");
}
END_TEST

START_TEST(memory_may_run_out)
{
    static const int lengths[] = {5, 12, -1};
    struct uva_consumer table;
    struct uva_error error;
    bool failed = true;

    for (long n = 1; failed; n++) {
        struct uva_stream *stream;

        recording_init(&consumer);
        consumer.transcribes = true;
        table = recording_table(&consumer);
        filter.every = 2;
        loop_fail(&loop, n);
        stream = stream_of(lengths, true);
        if (uva_stream_for_each(stream, &table, &error) == 0) {
            recording_await_done(&consumer, &loop);
            error = consumer.outcome.error;
        }
        uva_stream_release(stream);
        failed = faulty_allocator_has_failed(&loop.memory);
        loop_fail(&loop, 0);
        ck_assert_int_eq(error.code, failed ? ENOMEM : 0);
        if (!failed)
            text_contains(consumer.transcript, "schema 3 6 complete");
        loop_close(&loop);
        loop_open(&loop);
    }
}
END_TEST

int main(void)
{
    TCase *rows = tcase_create("rows");

    suite_add_loops(rows, 0, 2, rows_are_copied_in_order,
                    neighbours_are_a_slice_on_any_device,
                    all_rows_are_passed_on_as_they_are, NULL);
    suite_add(rows, a_batch_without_a_kept_row_is_not_passed_on,
              single_rows_of_a_device_cannot_be_copied, memory_may_run_out,
              NULL);
    return suite_main("filter", set_up, tear_down, rows, NULL);
}
