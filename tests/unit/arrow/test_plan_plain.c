/* SPDX-License-Identifier: Apache-2.0 */
/* The short way of a plan, for columns as most are: each must be told from a
 * column that only looks like one. What the plan says is compared with
 * layout.h, which has no short way. */
#include "arrow/plan.h"

#include <check.h>
#include <string.h>

#include "arrow/layout.h"
#include "base/memory.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { ROWS = 8, NAMES = 4, ITEMS = 64 };

static const char *const FORMATS[] = {"i", "b", "u", "U", "@i"};
enum { TYPES = sizeof(FORMATS) / sizeof(FORMATS[0]) };

static int32_t OFFSETS[ITEMS];
static int64_t LARGE_OFFSETS[ITEMS];
static char DATA[16 * ITEMS];
static struct faulty_allocator faulty;
static struct uva_allocator allocator;
static struct ArrowSchema schema;
static struct ArrowDeviceArray batch;
static struct uva__plan plan;
static struct ArrowArray *column; /* the first one */

/* Three bytes an item. */
static void column_make(struct ArrowSchema *type, struct ArrowArray *array,
                        const char *format, int64_t rows)
{
    const bool is_text = strchr("uU", format[0]) != NULL;

    plain_schema(type, format + (format[0] == '@'), "x", 0);
    plain_array(array, rows, is_text ? 3 : 2, 0);
    array->buffers[1] = format[0] == 'u'   ? (const void *)OFFSETS
                        : format[0] == 'U' ? (const void *)LARGE_OFFSETS
                                           : DATA;
    if (is_text)
        array->buffers[2] = DATA;
    if (format[0] == '@')
        column_make(plain_schema_dictionary(type),
                    plain_array_dictionary(array), "u", NAMES);
}

/* A batch of a column of type `first`, and one of each type after it. */
static void batch_make(int first)
{
    for (int i = 0; i < ITEMS; i++)
        LARGE_OFFSETS[i] = OFFSETS[i] = 3 * i;
    faulty_allocator_init(&faulty, 0);
    allocator = faulty_allocator_table(&faulty);
    batch = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                      .device_id = -1};
    plain_schema(&schema, "+s", "", TYPES);
    plain_array(&batch.array, ROWS, 1, TYPES);
    for (int i = 0; i < TYPES; i++)
        column_make(schema.children[i], batch.array.children[i],
                    FORMATS[(first + i) % TYPES], ROWS);
    column = batch.array.children[0];
    uva__plan_init(&plan, &allocator, &schema);
}

static void batch_drop(void)
{
    uva__plan_fini(&plan);
    uva_schema_release(&schema);
    uva_array_release(&batch);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}

/* Gives the size that the plan and the layout agree on; -1: both refuse it. */
static int64_t size_of(void)
{
    int64_t size = -1, other = -1;
    const int code = uva__layout_measure(&schema, &batch, &other, NULL);

    ck_assert_int_eq(uva__plan_measure(&plan, &schema, &batch, &size),
                     code == 0);
    ck_assert_int_eq(size, code == 0 ? other : -1);
    return size;
}

START_TEST(slices_are_measured)
{
    int64_t whole, later;

    batch_make(_i);
    whole = size_of();
    for (int64_t offset = 0; offset <= 17; offset++) {
        column->offset = offset;
        ck_assert_int_gt(size_of(), 0);
    }
    column->offset = 8;
    later = size_of();
    column->offset = 16;
    ck_assert_int_eq(size_of(), later);
    ck_assert_int_eq(whole - later, FORMATS[_i][0] == 'u'   ? 4
                                    : FORMATS[_i][0] == 'U' ? 8
                                    : FORMATS[_i][0] == '@'
                                        ? 4 * (NAMES + 1) + 3 * NAMES
                                        : 0);
    batch_drop();
}
END_TEST

START_TEST(nulls_need_a_bitmap_and_rows)
{
    batch_make(_i);
    for (int bitmap = 0; bitmap < 2; bitmap++) {
        column->buffers[0] = bitmap ? DATA : NULL;
        for (int64_t nulls = -2; nulls <= ROWS + 1; nulls++) {
            column->null_count = nulls;
            ck_assert_int_eq(size_of() > 0,
                             nulls >= -1 && nulls <= (bitmap ? ROWS : 0));
        }
        column->null_count = 0;
    }
    batch_drop();
}
END_TEST

START_TEST(a_batch_with_a_bitmap_is_measured)
{
    int64_t size;

    batch_make(_i);
    size = size_of();
    batch.array.buffers[0] = DATA;
    ck_assert_int_eq(size_of(), size + 1);
    batch.array.null_count = ROWS;
    ck_assert_int_eq(size_of(), size + 1);
    batch.array.null_count = ROWS + 1;
    ck_assert_int_eq(size_of(), -1);
    batch.array.buffers[0] = NULL;
    batch.array.null_count = 1;
    ck_assert_int_eq(size_of(), -1);
    batch_drop();
}
END_TEST

START_TEST(an_offset_of_the_batch_needs_longer_columns)
{
    batch_make(_i);
    batch.array.offset = ROWS;
    ck_assert_int_eq(size_of(), -1);
    for (int i = 0; i < TYPES; i++)
        batch.array.children[i]->length = 2 * ROWS;
    ck_assert_int_gt(size_of(), 0);
    batch_drop();
}
END_TEST

START_TEST(offsets_of_texts_do_not_fall)
{
    struct ArrowArray *names;

    batch_make(2); /* texts first, names at the third place */
    names = batch.array.children[2]->dictionary;
    OFFSETS[ROWS] = -1;
    ck_assert_int_eq(size_of(), -1);
    OFFSETS[ROWS] = 0;
    ck_assert_int_gt(size_of(), 0);
    OFFSETS[0] = 1;
    ck_assert_int_eq(size_of(), -1);
    OFFSETS[0] = OFFSETS[NAMES] = 0;
    column->buffers[2] = NULL;
    ck_assert_int_gt(size_of(), 0);
    names->buffers[2] = NULL;
    ck_assert_int_gt(size_of(), 0);
    OFFSETS[NAMES] = 1;
    ck_assert_int_eq(size_of(), -1);
    names->buffers[2] = DATA;
    ck_assert_int_gt(size_of(), 0);
    OFFSETS[ROWS] = 1;
    ck_assert_int_eq(size_of(), -1);
    batch_drop();
}
END_TEST

START_TEST(names_may_be_any_in_number)
{
    struct ArrowArray *names;

    batch_make(4);
    names = column->dictionary;
    for (int64_t count = -1; count < ROWS; count++) {
        names->length = count;
        ck_assert_int_eq(size_of() > 0, count >= 0);
    }
    names->length = NAMES;
    for (names->offset = 0; names->offset < 9; names->offset++)
        ck_assert_int_gt(size_of(), 0);
    names->buffers[0] = DATA;
    ck_assert_int_gt(size_of(), 0);
    column->dictionary = NULL;
    ck_assert_int_eq(size_of(), -1);
    column->dictionary = names;
    batch_drop();
}
END_TEST

/* Whether the plan says so; then it has no more memory than its size. */
static bool is_whole(void)
{
    const int64_t size = size_of();
    const bool whole = uva__plan_is_whole(&plan, &batch);
    int64_t memory;
    bool shared;

    ck_assert_int_gt(size, 0);
    ck_assert_int_eq(uva__layout_memory(&schema, &batch, &memory, &shared), 0);
    ck_assert(!whole || memory <= size);
    return whole;
}

START_TEST(a_whole_batch_has_no_other_memory)
{
    batch_make(_i);
    ck_assert(is_whole());
    column->buffers[0] = DATA;
    ck_assert(is_whole());
    column->offset = 8;
    ck_assert(!is_whole());
    column->offset = 0;
    column->length++;
    ck_assert(!is_whole());
    column->length--;
    if (FORMATS[_i][0] == '@') {
        column->dictionary->offset = 1;
        ck_assert(!is_whole());
        column->dictionary->offset = 0;
    }
    LARGE_OFFSETS[0] = 1;
    ck_assert(!is_whole());
    LARGE_OFFSETS[0] = 0;
    OFFSETS[0] = 1;
    ck_assert(!is_whole());
    OFFSETS[0] = 0;
    ck_assert(is_whole());
    batch_drop();
}
END_TEST

START_TEST(parts_of_a_batch_are_not_whole)
{
    batch_make(_i);
    batch.array.length = 0;
    ck_assert(!uva__plan_is_whole(&plan, &batch));
    batch.array.length = ROWS - 1;
    ck_assert(!is_whole());
    batch.array.offset = 1;
    ck_assert(!is_whole());
    batch.array.length = ROWS;
    batch.array.offset = 0;
    batch.device_type = ARROW_DEVICE_CUDA; /* no offset can be read */
    ck_assert(!uva__plan_is_whole(&plan, &batch));
    batch_drop();
}
END_TEST

/* Two columns of a format, which the plan has as one run. */
static void pair_make(const char *format, int64_t rows)
{
    for (int i = 0; i < ITEMS; i++)
        OFFSETS[i] = 3 * i;
    faulty_allocator_init(&faulty, 0);
    allocator = faulty_allocator_table(&faulty);
    batch = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                      .device_id = -1};
    plain_schema(&schema, "+s", "", 2);
    plain_array(&batch.array, rows, 1, 2);
    for (int i = 0; i < 2; i++)
        column_make(schema.children[i], batch.array.children[i], format, rows);
    column = batch.array.children[0];
    uva__plan_init(&plan, &allocator, &schema);
}

START_TEST(each_column_of_a_run_must_be_whole)
{
    pair_make("u", ROWS);
    ck_assert(is_whole());
    column->offset = 1;
    ck_assert(!is_whole());
    column->offset = 0;
    batch_drop();
}
END_TEST

START_TEST(a_batch_without_rows_is_whole_but_for_names)
{
    pair_make("u", 0);
    ck_assert(uva__plan_is_whole(&plan, &batch));
    batch_drop();
    pair_make("@i", 0);
    ck_assert(!uva__plan_is_whole(&plan, &batch));
    batch_drop();
}
END_TEST

/* Items wider than a plan can say, and names that are not texts. */
START_TEST(other_columns_are_checked_as_well)
{
    pair_make("w:300", 1);
    ck_assert_int_gt(size_of(), 0);
    column->null_count = 2;
    ck_assert_int_eq(size_of(), -1);
    batch_drop();
    pair_make("i", ROWS);
    for (int i = 0; i < 2; i++)
        column_make(plain_schema_dictionary(schema.children[i]),
                    plain_array_dictionary(batch.array.children[i]), "l",
                    NAMES);
    uva__plan_fini(&plan);
    uva__plan_init(&plan, &allocator, &schema);
    ck_assert_int_gt(size_of(), 0);
    column->null_count = ROWS + 1;
    ck_assert_int_eq(size_of(), -1);
    batch_drop();
}
END_TEST

/* Lists that are views of one child have more rows than it has memory. */
START_TEST(views_of_large_lists_have_no_size_in_a_plan)
{
    static const int64_t none[3] = {0},
                         all[3] = {INT64_C(1) << 39, INT64_C(1) << 39,
                                   INT64_C(1) << 39};
    int64_t size = -1;

    faulty_allocator_init(&faulty, 0);
    allocator = faulty_allocator_table(&faulty);
    batch = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                      .device_id = -1};
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "+vL", "x", 1);
    plain_schema(schema.children[0]->children[0], "c", "y", 0);
    plain_array(&batch.array, 3, 1, 1);
    column = batch.array.children[0];
    plain_array(column, 3, 3, 1);
    column->buffers[1] = none;
    column->buffers[2] = all;
    plain_array(column->children[0], all[0], 2, 0);
    column->children[0]->buffers[1] = DATA;
    uva__plan_init(&plan, &allocator, &schema);
    ck_assert(!uva__plan_measure(&plan, &schema, &batch, &size));
    column->length = batch.array.length = 1;
    ck_assert(uva__plan_measure(&plan, &schema, &batch, &size));
    ck_assert_int_ge(size, all[0]);
    batch_drop();
}
END_TEST

START_TEST(without_a_plan_no_batch_is_whole)
{
    batch_make(0);
    uva__plan_fini(&plan);
    ck_assert(!uva__plan_is_whole(&plan, &batch));
    batch_drop();
}
END_TEST

/* Views, each of which claims half of all memory that there can be: their sum
 * cannot be, and the layout refuses it. */
START_TEST(the_memory_of_views_has_a_sum)
{
    static const int64_t lengths[] = {INT64_MAX / 2 + 1};
    struct ArrowSchema *types[2];
    struct ArrowArray *views[2];

    faulty_allocator_init(&faulty, 0);
    allocator = faulty_allocator_table(&faulty);
    batch = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                      .device_id = -1};
    plain_schema(&schema, "+s", "", 2);
    plain_array(&batch.array, 1, 1, 2);
    for (int i = 0; i < 2; i++) {
        types[i] = schema.children[i];
        views[i] = batch.array.children[i];
        plain_schema(types[i], "vu", "x", 0);
        plain_array(views[i], 1, 4, 0);
        views[i]->buffers[1] = views[i]->buffers[2] = DATA;
        views[i]->buffers[3] = lengths;
    }
    uva__plan_init(&plan, &allocator, &schema);
    ck_assert_int_eq(size_of(), -1);
    views[0]->buffers[3] = views[1]->buffers[3] = DATA; /* empty */
    ck_assert_int_gt(size_of(), 0);
    batch_drop();
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "plan_plain", offsets_of_texts_do_not_fall, names_may_be_any_in_number,
        each_column_of_a_run_must_be_whole,
        a_batch_without_rows_is_whole_but_for_names,
        other_columns_are_checked_as_well,
        views_of_large_lists_have_no_size_in_a_plan,
        without_a_plan_no_batch_is_whole, the_memory_of_views_has_a_sum, NULL);

    tcase_add_loop_test(tc, slices_are_measured, 0, TYPES);
    tcase_add_loop_test(tc, nulls_need_a_bitmap_and_rows, 0, TYPES);
    tcase_add_loop_test(tc, a_batch_with_a_bitmap_is_measured, 0, TYPES);
    tcase_add_loop_test(tc, a_whole_batch_has_no_other_memory, 0, TYPES);
    tcase_add_loop_test(tc, parts_of_a_batch_are_not_whole, 0, TYPES);
    tcase_add_loop_test(tc, an_offset_of_the_batch_needs_longer_columns, 0,
                        TYPES);
    return suite_main("plan_plain", NULL, NULL, tc, NULL);
}
