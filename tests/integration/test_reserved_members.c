/* SPDX-License-Identifier: Apache-2.0 */
/* The reserved members of the arguments of callbacks are zero: of the
 * properties of a stream, of its batches (also inside maps, and of a second
 * map) and of its outcome. Uses the public interface only. */
#include <check.h>

#include "support/check_suite.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 4 };

static struct uva_runtime *runtime;
static int infos, maps, batches, outcomes; /* callbacks so far */

/* ---- the arrays --------------------------------------------------------- */

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

/* An array of the type null, which has no buffers. */
static void array_make(struct ArrowDeviceArray *out)
{
    struct ArrowArray plain = {
        .length = 1, .null_count = 1, .release = array_release};

    uva_array_from_cpu(&plain, out);
}

static struct uva_stream *stream_make(void)
{
    struct ArrowSchema schema = {
        .format = "n", .name = "", .release = schema_release};
    struct ArrowDeviceArray arrays[BATCHES];

    for (int i = 0; i < BATCHES; i++)
        array_make(&arrays[i]);
    return uva_stream_from_arrays(runtime, &schema, arrays, BATCHES);
}

/* ---- arguments of callbacks --------------------------------------------- */

static void check_reserved(const int64_t *reserved, size_t size)
{
    for (size_t i = 0; i < size / sizeof(*reserved); i++)
        ck_assert_int_eq(reserved[i], 0);
}

/* Overwrites the part of the stack on which the next batch is made. */
static void dirty_the_stack(void)
{
    volatile char bytes[8192];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = 0x5a;
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    check_reserved(info->reserved, sizeof(info->reserved));
    infos++;
    dirty_the_stack();
    return 0;
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    check_reserved(in->reserved, sizeof(in->reserved));
    uva_array_move(&in->data, out);
    maps++;
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    check_reserved(batch->reserved, sizeof(batch->reserved));
    batches++;
    dirty_the_stack();
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    check_reserved(outcome->reserved, sizeof(outcome->reserved));
    outcomes++;
}

/* ---- the cases ---------------------------------------------------------- */

static void set_up(void)
{
    infos = maps = batches = outcomes = 0;
    ck_assert_int_eq(uva_runtime_open_turned(NULL, NULL, NULL, &runtime, NULL),
                     0);
}

static void finish(void)
{
    while (outcomes == 0)
        ck_assert(uva_runtime_turn(runtime));
    ck_assert_int_eq(uva_runtime_join(runtime, 0), 0);
    ck_assert_int_eq(batches, BATCHES);
    ck_assert_int_eq(outcomes, 1);
}

START_TEST(for_each_and_maps_are_given_zeroes)
{
    const struct uva_map map = {.batch = map_batch, .on_loop = true};
    const struct uva_consumer consumer = {
        .on_schema = on_schema, .on_batch = on_batch, .on_done = on_done};
    struct uva_stream *stream = stream_make();

    for (int i = 0; i < _i; i++)
        ck_assert_int_eq(uva_stream_map(stream, &map), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    uva_stream_release(stream);
    finish();
    ck_assert_int_eq(infos, 1);
    ck_assert_int_eq(maps, BATCHES * _i);
}
END_TEST

START_TEST(take_is_given_zeroes)
{
    struct uva_stream *stream = stream_make();
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    memset(&batch, 0xA5, sizeof(batch));
    memset(&outcome, 0xA5, sizeof(outcome));
    ck_assert_int_eq(uva_stream_start_take(stream, NULL, NULL, NULL, NULL), 0);
    while ((code = uva_stream_take(stream, &batch, &outcome)) != ENOENT) {
        if (code != 0) {
            ck_assert(uva_runtime_turn(runtime));
            continue;
        }
        (void)on_batch(NULL, &batch);
        uva_array_release(&batch.data);
    }
    on_done(NULL, &outcome);
    uva_stream_release(stream);
    finish();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("received");

    tcase_add_test(c, take_is_given_zeroes);
    tcase_add_loop_test(c, for_each_and_maps_are_given_zeroes, 0, 4);
    return suite_main("reserved_members", set_up, NULL, c, NULL);
}
