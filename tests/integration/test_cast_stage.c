/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that is cast: its schema, its batches, its failures, what it takes.
 * The values of each cast are in tests/unit/arrow/test_cast.c. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/loop_fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/sources.h"
#include "uvarrow/uvarrow.h"

static const int64_t wide[] = {1, 2, 3, 5000000000};
static const int32_t narrow[] = {4, 5, 6};

enum { OTHERS = 100 };

static struct loop_fixture loop;

/* The result of a stream that is collected. */
static struct {
    bool done;
    enum uva_end end;
    struct uva_error error;
    size_t count;
    int64_t rows;
    int64_t sum; /* of int32 */
    char format[8], name[8];
} got;

static void open_checked(bool check)
{
    memset(&got, 0, sizeof(got));
    loop_open_with(&loop, &(struct uva_runtime_options){.check = check});
}

static void set_up(void)
{
    open_checked(false);
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static void schema_make(struct ArrowSchema *out, const char *format,
                        const char *name)
{
    plain_schema(out, "+s", "", 1);
    plain_schema(out->children[0], format, name, 0);
}

static void array_make(struct ArrowDeviceArray *out, int64_t rows,
                       const void *values)
{
    memset(out, 0, sizeof(*out));
    plain_array(&out->array, rows, 1, 1);
    plain_array(out->array.children[0], rows, 2, 0);
    out->array.children[0]->buffers[1] = values;
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
}

/* Two batches of two rows: the last row is 5000000000 if it is there. */
static struct uva_stream *wide_stream(int64_t rows)
{
    struct ArrowDeviceArray arrays[2];
    struct ArrowSchema schema;

    schema_make(&schema, "l", "n");
    array_make(&arrays[0], 2, wide);
    array_make(&arrays[1], rows - 2, wide + 2);
    return uva_stream_from_arrays(loop.runtime, &schema, arrays, 2);
}

static struct uva_stream *narrow_stream(void)
{
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    schema_make(&schema, "i", "n");
    array_make(&array, 3, narrow);
    return uva_stream_from_arrays(loop.runtime, &schema, &array, 1);
}

static int cast(struct uva_stream *stream, const char *format, const char *name)
{
    struct ArrowSchema target;
    int code;

    schema_make(&target, format, name);
    code = uva_stream_cast(stream, &target);
    ck_assert(target.release == NULL); /* taken in any case */
    return code;
}

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    (void)ctx;
    got.done = true;
    got.end = outcome->end;
    got.error = outcome->error;
    got.count = count;
    for (size_t i = 0; i < count; i++) {
        const struct ArrowArray *column = batches[i].array.children[0];

        got.rows += column->length;
        for (int64_t r = 0; r < column->length; r++)
            got.sum += ((const int32_t *)column->buffers[1])[r];
    }
    if (info == NULL || info->schema == NULL)
        return;
    strncpy(got.format, info->schema->children[0]->format, 7);
    strncpy(got.name, info->schema->children[0]->name, 7);
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return got.done;
}

static void collect(struct uva_stream *stream)
{
    ck_assert_int_eq(uva_stream_collect(stream, 0, on_collected, NULL, NULL),
                     0);
    uva_stream_release(stream);
    loop_until(&loop, is_done, NULL);
}

/* ---- batches ------------------------------------------------------------ */

/* Also with a checker between the stages. */
START_TEST(batches_have_the_schema)
{
    struct uva_stream *stream;

    if (_i == 1) {
        tear_down();
        open_checked(true);
    }
    stream = wide_stream(3);
    ck_assert_int_eq(cast(stream, "i", "n"), 0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_COMPLETE);
    ck_assert_int_eq(got.count, 2);
    ck_assert_int_eq(got.sum, 1 + 2 + 3);
    ck_assert_str_eq(got.format, "i");
}
END_TEST

START_TEST(streams_of_several_types_are_merged)
{
    struct uva_stream *stream = wide_stream(3), *other = narrow_stream();

    ck_assert_int_eq(cast(stream, "i", "n"), 0);
    ck_assert_int_eq(uva_stream_merge(stream, &other, 1, NULL), 0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_COMPLETE);
    ck_assert_int_eq(got.rows, 6);
    ck_assert_int_eq(got.sum, 6 + 15);
}
END_TEST

/* One cast after the other, and the first one back. */
START_TEST(casts_follow_one_another)
{
    struct uva_stream *stream = narrow_stream();

    ck_assert_int_eq(cast(stream, "g", "n"), 0);
    ck_assert_int_eq(cast(stream, "i", "n"), 0);
    collect(stream);
    ck_assert_int_eq(got.sum, 15);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

static int64_t delivered; /* rows */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    delivered += batch->data.array.length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    got.done = true;
    got.end = outcome->end;
    got.error = outcome->error;
}

START_TEST(an_error_follows_the_batches_before_it)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    struct uva_stream *stream = wide_stream(4);

    delivered = 0;
    ck_assert_int_eq(cast(stream, "i", "n"), 0);
    ck_assert_int_eq(uva_stream_for_each(stream, &consumer, NULL), 0);
    uva_stream_release(stream);
    loop_until(&loop, is_done, NULL);
    ck_assert_int_eq(got.end, UVA_END_FAILED);
    ck_assert_int_eq(got.error.code, EOVERFLOW);
    ck_assert_ptr_nonnull(
        strstr(got.error.message, "column n, row 1: 5000000000 is no int32"));
    ck_assert_int_eq(delivered, 2);
}
END_TEST

START_TEST(a_schema_that_cannot_be_cast_fails_the_stream)
{
    struct uva_stream *stream = wide_stream(3);

    ck_assert_int_eq(_i == 0 ? cast(stream, "u", "n") : cast(stream, "i", "x"),
                     0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_FAILED);
    ck_assert_int_eq(got.error.code, EINVAL);
    ck_assert_int_eq(got.count, 0);
    ck_assert_ptr_nonnull(
        strstr(got.error.message,
               _i == 0 ? "column n cannot be cast from int64 to utf8"
                       : "column x is missing"));
}
END_TEST

/* ---- merges ------------------------------------------------------------- */

static const struct uva_merge casting = {.cast = true};

/* The first one has the names and the order, too. */
START_TEST(a_merge_casts_to_the_schema_of_the_first)
{
    struct uva_stream *others[OTHERS], *stream = narrow_stream();

    for (int i = 0; i < OTHERS; i++)
        others[i] = i % 2 == 0 ? wide_stream(3) : narrow_stream();
    ck_assert_int_eq(
        uva_stream_merge(
            stream, others, OTHERS,
            &(struct uva_merge){.cast = true, .open_at_once = _i * 2 + 1}),
        0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_COMPLETE);
    ck_assert_str_eq(got.format, "i");
    ck_assert_int_eq(got.rows, 3 + OTHERS * 3);
    ck_assert_int_eq(got.sum, 15 + OTHERS / 2 * (6 + 15));
}
END_TEST

START_TEST(a_value_that_does_not_fit_fails_the_merge)
{
    struct uva_stream *stream = narrow_stream(), *other = wide_stream(4);

    ck_assert_int_eq(uva_stream_merge(stream, &other, 1,
                                      &(struct uva_merge){
                                          .cast = true, .keep_going = _i == 1}),
                     0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_FAILED);
    ck_assert_int_eq(got.error.code, EOVERFLOW);
    ck_assert_ptr_nonnull(strstr(got.error.message, "column n, row 1"));
}
END_TEST

START_TEST(a_stream_without_a_cast_fails_the_merge)
{
    struct uva_stream *stream = narrow_stream(), *other;
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    schema_make(&schema, "i", "other");
    array_make(&array, 3, narrow);
    other = uva_stream_from_arrays(loop.runtime, &schema, &array, 1);
    ck_assert_int_eq(uva_stream_merge(stream, &other, 1, &casting), 0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_FAILED);
    ck_assert_int_eq(got.error.code, EINVAL);
    ck_assert_ptr_nonnull(strstr(got.error.message, "column n is missing"));
}
END_TEST

/* The others wait for it. */
START_TEST(the_first_schema_may_be_late)
{
    struct uva_stream *stream, *other = wide_stream(3);
    struct uva_pusher *pusher;
    struct ArrowSchema schema;

    stream = uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    ck_assert_int_eq(uva_stream_merge(stream, &other, 1, &casting), 0);
    ck_assert_int_eq(uva_stream_collect(stream, 0, on_collected, NULL, NULL),
                     0);
    uva_stream_release(stream);
    for (int i = 0; i < 20; i++) {
        loop_nudge(&loop);
        loop_turn(&loop);
    }
    ck_assert_int_gt(plain_live(), 0);
    schema_make(&schema, "i", "n");
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    uva_pusher_close(pusher, NULL, NULL);
    loop_until(&loop, is_done, NULL);
    ck_assert_int_eq(got.end, UVA_END_COMPLETE);
    ck_assert_int_eq(got.sum, 6);
}
END_TEST

START_TEST(a_concatenation_casts)
{
    struct uva_stream *stream = narrow_stream();
    struct uva_stream *others[] = {wide_stream(3), narrow_stream(),
                                   wide_stream(2)};

    ck_assert_int_eq(
        uva_stream_concat(
            stream, others, 3,
            &(struct uva_merge){.cast = true, .open_at_once = _i + 1}),
        0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_COMPLETE);
    ck_assert_int_eq(got.sum, 15 + 6 + 15 + 3);
    ck_assert_int_eq(got.count, 1 + 2 + 1 + 2);
}
END_TEST

/* Then there is nothing to cast to, and the others are not opened. */
START_TEST(the_first_stream_may_fail_before_its_schema)
{
    struct uva_stream *stream, *other = wide_stream(3);
    struct uva_pusher *pusher;
    struct uva_error error;

    (void)uva_error_set(&error, EIO, "no schema");
    stream = uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    uva_pusher_close(pusher, &error, NULL);
    ck_assert_int_eq(uva_stream_merge(stream, &other, 1,
                                      &(struct uva_merge){
                                          .cast = true, .keep_going = _i == 1}),
                     0);
    collect(stream);
    ck_assert_int_eq(got.end, UVA_END_FAILED);
    ck_assert_int_eq(got.error.code, EIO);
    ck_assert_int_eq(got.rows, 0);
}
END_TEST

START_TEST(a_merge_that_casts_is_cancelled)
{
    struct uva_stream *stream, *other = wide_stream(3);
    struct uva_pusher *pusher;

    stream = uva_stream_from_pusher(loop.runtime, NULL, &pusher);
    ck_assert_int_eq(uva_stream_merge(stream, &other, 1, &casting), 0);
    ck_assert_int_eq(uva_stream_collect(stream, 0, on_collected, NULL, NULL),
                     0);
    if (_i == 1)
        loop_turn(&loop);
    uva_stream_cancel(stream, 0, NULL);
    uva_stream_release(stream);
    loop_until(&loop, is_done, NULL);
    ck_assert_int_eq(got.end, UVA_END_CANCELLED);
    uva_pusher_close(pusher, NULL, NULL);
}
END_TEST

/* ---- bad calls ---------------------------------------------------------- */

static void refuses(struct uva_stream *stream, struct ArrowSchema *target,
                    const char *text)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_cast(stream, target), EINVAL);
    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    ck_assert_str_eq(error.message, text);
    uva_stream_release(stream);
}

START_TEST(a_schema_is_needed)
{
    struct ArrowSchema target = {.release = NULL};

    refuses(narrow_stream(), NULL, "cast: the schema is NULL");
    refuses(narrow_stream(), &target, "cast: the schema is released");
    plain_schema(&target, NULL, "", 0);
    refuses(narrow_stream(), &target,
            "cast: the schema cannot be used: EINVAL");
    ck_assert(target.release == NULL);
    schema_make(&target, "i", "n");
    ck_assert_int_eq(uva_stream_cast(NULL, &target), EINVAL);
    ck_assert(target.release == NULL);
}
END_TEST

static void concat_refuses(const struct uva_merge *options, const char *text)
{
    struct uva_stream *stream = narrow_stream(), *other = narrow_stream();
    struct uva_error error = {0};

    ck_assert_int_eq(uva_stream_concat(stream, &other, 1, options), EINVAL);
    ck_assert_int_eq(uva_stream_status(stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, text));
    uva_stream_release(stream);
}

START_TEST(a_concatenation_refuses_options_of_merges)
{
    concat_refuses(&(struct uva_merge){.keep_going = true}, "keep_going");
    concat_refuses(&(struct uva_merge){.window.batches = 2}, "window");
    concat_refuses(&(struct uva_merge){.window.bytes = 2}, "window");
    concat_refuses(&(struct uva_merge){.window.bytes = -2}, "window");
    concat_refuses(&(struct uva_merge){.open_at_once = -1}, "open_at_once");
    concat_refuses(&(struct uva_merge){.reserved = {&got}}, "reserved");
}
END_TEST

START_TEST(a_stream_that_was_started_is_not_cast)
{
    struct uva_stream *stream = narrow_stream();

    ck_assert_int_eq(uva_stream_collect(stream, 0, on_collected, NULL, NULL),
                     0);
    ck_assert_int_eq(cast(stream, "l", "n"), EBUSY);
    uva_stream_release(stream);
    loop_until(&loop, is_done, NULL);
    ck_assert_int_eq(got.sum, 15);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Returns whether no allocation failed. */
static bool play(long fail_at)
{
    struct uva_stream *stream, *other;
    int code;
    bool whole;

    tear_down();
    set_up();
    loop_fail(&loop, fail_at);
    stream = wide_stream(3);
    other = wide_stream(3);
    (void)cast(stream, "i", "n");
    (void)uva_stream_merge(stream, &other, 1, &casting);
    code = uva_stream_collect(stream, 0, on_collected, NULL, NULL);
    uva_stream_release(stream);
    if (code == 0)
        loop_until(&loop, is_done, NULL);
    whole = !faulty_allocator_has_failed(&loop.memory);
    loop_fail(&loop, 0);
    if (whole)
        ck_assert_int_eq(got.sum, 12);
    else if (code != 0)
        ck_assert_int_eq(code, ENOMEM);
    else if (got.end == UVA_END_FAILED)
        ck_assert_int_eq(got.error.code, ENOMEM);
    return whole;
}

START_TEST(every_allocation_may_fail)
{
    long i = 1;

    while (!play(i))
        ck_assert_int_lt(i++, 400);
    ck_assert_int_gt(i, 15);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cast_stage");
    TCase *all = suite_case(suite, "cast_stage", set_up, tear_down);

    suite_add_loops(all, 0, 2, batches_have_the_schema,
                    a_schema_that_cannot_be_cast_fails_the_stream,
                    a_merge_casts_to_the_schema_of_the_first,
                    a_value_that_does_not_fit_fails_the_merge,
                    the_first_stream_may_fail_before_its_schema,
                    a_merge_that_casts_is_cancelled, NULL);
    suite_add_loops(all, 0, 3, a_concatenation_casts, NULL);
    suite_add(all, a_stream_without_a_cast_fails_the_merge,
              a_concatenation_refuses_options_of_merges,
              the_first_schema_may_be_late, NULL);
    suite_add(all, streams_of_several_types_are_merged,
              casts_follow_one_another, an_error_follows_the_batches_before_it,
              a_schema_is_needed, a_stream_that_was_started_is_not_cast,
              every_allocation_may_fail, NULL);
    return suite_run(suite);
}
