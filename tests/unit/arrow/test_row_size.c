/* SPDX-License-Identifier: Apache-2.0 */
/* Slices have the size of their rows: they add up to the array that they were
 * cut from, for every type, and values out of range do no harm. */
#include "arrow/row_size.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/layout.h"
#include "arrow/slice.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_allocator.h"
#include "support/guard_page.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static struct faulty_allocator memory;
static struct uva_allocator allocator;

static void set_up(void)
{
    faulty_allocator_init(&memory, 0);
    allocator = faulty_allocator_table(&memory);
}

static void tear_down(void)
{
    every_type_forget();
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
    ck_assert_int_eq(plain_live(), 0);
}

static int64_t size_of(const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *array)
{
    int64_t size;

    ck_assert_int_eq(uva_array_size(schema, array, &size), 0);
    return size;
}

/* ---- sums --------------------------------------------------------------- */

/* Cuts rows into slices of up to `most` rows, and some of these again. Returns
 * the sum of their sizes. */
static int64_t sum_of_slices(const struct ArrowSchema *schema,
                             struct ArrowDeviceArray *array, int64_t most,
                             int depth)
{
    int64_t sum = 0, from = 0;

    while (from < array->array.length) {
        const int64_t left = array->array.length - from;
        const int64_t some = 1 + rand() % most;
        const int64_t count = some < left ? some : left;
        struct ArrowDeviceArray slice;

        ck_assert_int_eq(
            uva__slice_array(&allocator, schema, array, from, count, &slice),
            0);
        sum += depth > 0 && rand() % 2 == 0
                   ? sum_of_slices(schema, &slice, most / 2 + 1, depth - 1)
                   : size_of(schema, &slice);
        uva_array_release(&slice);
        from += count;
    }
    return sum;
}

/* Makes an array of each type a column of a batch, with `offset` rows in front
 * of the batch's own. */
static void batch_of(int k, int64_t rows, int64_t offset, bool nulls,
                     struct ArrowSchema *schema, struct ArrowDeviceArray *array)
{
    const struct every_variant variant = {rows + offset, offset, nulls};
    struct ArrowDeviceArray column;

    plain_schema(schema, "+s", "", 1);
    memset(array, 0, sizeof(*array));
    array->device_type = ARROW_DEVICE_CPU;
    plain_array(&array->array, rows, 1, 1);
    array->array.offset = offset;
    every_type(k, &variant, schema->children[0], &column);
    *array->array.children[0] = column.array;
}

/* Exactly, which is more than 1 % and 64 bytes for each column. */
START_TEST(slices_add_up_to_their_array)
{
    for (int way = 0; way < 16; way++) {
        struct ArrowDeviceArray array;
        struct ArrowSchema schema;
        int64_t whole;

        srand((unsigned)(_i * 16 + way));
        batch_of(_i, 100, way % 2 * 5, way / 2 % 2 == 0, &schema, &array);
        whole = size_of(&schema, &array);
        ck_assert_int_eq(
            sum_of_slices(&schema, &array, way < 8 ? 1 : way * 2, 3), whole);
        uva_array_release(&array);
        uva_schema_release(&schema);
    }
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static int64_t memory_of(const struct ArrowSchema *schema,
                         const struct ArrowDeviceArray *array)
{
    int64_t bytes;

    ck_assert_int_eq(uva_array_memory(schema, array, &bytes), 0);
    return bytes;
}

START_TEST(a_slice_keeps_the_memory_of_its_batch)
{
    struct ArrowDeviceArray array, slice, again;
    struct ArrowSchema schema;
    int64_t whole;

    batch_of(_i, 100, 0, true, &schema, &array);
    whole = memory_of(&schema, &array);
    ck_assert_int_eq(
        uva__slice_array(&allocator, &schema, &array, 50, 20, &slice), 0);
    ck_assert_int_eq(
        uva__slice_array(&allocator, &schema, &slice, 5, 2, &again), 0);
    uva_array_release(&array);
    ck_assert_int_eq(memory_of(&schema, &slice), whole);
    ck_assert_int_eq(memory_of(&schema, &again), whole);
    ck_assert_int_le(size_of(&schema, &again), whole);
    uva_array_release(&slice);
    uva_array_release(&again);
    uva_schema_release(&schema);
}
END_TEST

/* A column that was moved out, and a batch that was made smaller: the memory of
 * their structs. */
START_TEST(a_part_of_a_slice_has_its_own_memory)
{
    const struct every_variant variant = {100, 0, false};
    struct ArrowDeviceArray array, slice, column = {0};
    struct ArrowSchema schema;

    plain_schema(&schema, "+s", "", 2);
    memset(&array, 0, sizeof(array));
    array.device_type = column.device_type = ARROW_DEVICE_CPU;
    plain_array(&array.array, 100, 1, 2);
    for (int i = 0; i < 2; i++) { /* bytes, and int32 */
        every_type(i == 0 ? 2 : 5, &variant, schema.children[i], &slice);
        *array.array.children[i] = slice.array;
    }
    ck_assert_int_eq(
        uva__slice_array(&allocator, &schema, &array, 40, 10, &slice), 0);
    ck_assert_int_eq(memory_of(&schema, &slice), 100 + 400);
    column.array = *slice.array.children[1];
    slice.array.children[1]->release = NULL;
    ck_assert_int_eq(memory_of(schema.children[1], &column), 50 * 4);
    schema.n_children = slice.array.n_children = 1;
    ck_assert_int_eq(memory_of(&schema, &slice), 50);
    schema.n_children = slice.array.n_children = 2;
    uva_array_release(&column);
    uva_array_release(&slice);
    uva_array_release(&array);
    uva_schema_release(&schema);
}
END_TEST

/* ---- values ------------------------------------------------------------- */

/* So many rows that no row is looked at */
#define ENDLESS ((int64_t)1 << 40)

/* An array with up to two children of int32. */
struct sample {
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;
};

static void sample_make(struct sample *s, const char *format, int64_t length,
                        int n_buffers, const void *const *buffers)
{
    memset(s, 0, sizeof(*s));
    plain_schema(&s->schema, format, "x", 0);
    plain_array(&s->array.array, length, n_buffers, 0);
    for (int i = 0; i < n_buffers; i++)
        s->array.array.buffers[i] = buffers[i];
    s->array.device_type = ARROW_DEVICE_CPU;
}

static void sample_nested(struct sample *s, const char *format, int64_t length,
                          int n_buffers, const void *const *buffers, int n)
{
    static const int32_t items[100];

    memset(s, 0, sizeof(*s));
    plain_schema(&s->schema, format, "x", n);
    plain_array(&s->array.array, length, n_buffers, n);
    for (int i = 0; i < n_buffers; i++)
        s->array.array.buffers[i] = buffers[i];
    for (int i = 0; i < n; i++) {
        plain_schema(s->schema.children[i], "i", "y", 0);
        plain_array(s->array.array.children[i], 10, 2, 0);
        s->array.array.children[i]->buffers[1] = items;
    }
    s->array.device_type = ARROW_DEVICE_CPU;
}

/* The size of `count` rows from row `from` on. */
static int64_t rows_size(struct sample *s, int64_t from, int64_t count)
{
    s->array.array.offset = from;
    s->array.array.length = count;
    return size_of(&s->schema, &s->array);
}

static void sample_free(struct sample *s)
{
    uva_array_release(&s->array);
    uva_schema_release(&s->schema);
}

START_TEST(lists_take_their_items)
{
    static const int32_t offsets[] = {1, 3, 3, 8};
    const void *const buffers[] = {NULL, offsets};
    struct sample s;

    sample_nested(&s, "+l", 3, 2, buffers, 1);
    ck_assert_int_eq(rows_size(&s, 0, 3), 16 + 7 * 4);
    ck_assert_int_eq(rows_size(&s, 0, 1), 8 + 2 * 4);
    ck_assert_int_eq(rows_size(&s, 1, 1), 4);
    ck_assert_int_eq(rows_size(&s, 1, 2), 8 + 5 * 4);
    s.array.device_type = ARROW_DEVICE_CUDA; /* they cannot be read */
    ck_assert_int_eq(rows_size(&s, 0, 1), 8 + 10 * 4);
    ck_assert_int_eq(rows_size(&s, 1, 2), 8);
    sample_free(&s);
}
END_TEST

START_TEST(lists_of_equal_size_take_their_items)
{
    const void *const buffers[] = {NULL};
    struct sample s;

    sample_nested(&s, "+w:3", 3, 1, buffers, 1);
    ck_assert_int_eq(rows_size(&s, 0, 3), 9 * 4);
    ck_assert_int_eq(rows_size(&s, 1, 1), 3 * 4);
    sample_free(&s);
}
END_TEST

/* In any order, and the items of two rows may be the same ones. */
START_TEST(views_of_lists_take_their_items)
{
    static const int64_t offsets[] = {4, 0, 2, 99, 0};
    static const int64_t sizes[] = {2, 2, 2, 99, 10};
    static const uint8_t valid[] = {0x17};
    const void *const buffers[] = {valid, offsets, sizes};
    struct sample s;

    sample_nested(&s, "+vL", 5, 3, buffers, 1);
    s.array.array.null_count = -1;
    ck_assert_int_eq(rows_size(&s, 0, 4), 1 + 64 + 6 * 4);
    ck_assert_int_eq(rows_size(&s, 1, 1), 16 + 2 * 4);
    ck_assert_int_eq(rows_size(&s, 1, 4), 64 + (4 + 10) * 4);
    s.array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(rows_size(&s, 1, 4), 64);
    sample_free(&s);
}
END_TEST

START_TEST(views_that_point_to_nothing_take_nothing)
{
    static const int64_t cases[][2] = {{-1, 2}, {11, 1},        {5, 6},
                                       {0, -1}, {INT64_MAX, 1}, {1, INT64_MAX}};
    const void *buffers[] = {NULL, NULL, NULL};
    struct sample s;

    for (int i = 0; i < 6; i++) {
        buffers[1] = &cases[i][0];
        buffers[2] = &cases[i][1];
        sample_nested(&s, "+vL", 1, 3, buffers, 1);
        ck_assert_int_eq(rows_size(&s, 0, 1), 16);
        sample_free(&s);
    }
}
END_TEST

START_TEST(offsets_of_lists_in_disorder_take_what_is_there)
{
    static const int32_t cases[][2] = {
        {5, 4}, {-3, 2}, {8, 50}, {INT32_MIN, INT32_MAX}};
    static const int64_t items[] = {0, 2, 2, 10};
    const void *buffers[] = {NULL, NULL};
    struct sample s;

    for (int i = 0; i < 4; i++) {
        buffers[1] = cases[i];
        sample_nested(&s, "+m", 1, 2, buffers, 1);
        ck_assert_int_eq(rows_size(&s, 0, 1), 8 + items[i] * 4);
        sample_free(&s);
    }
}
END_TEST

/* Items between the first and the last: no one looks at their offsets. */
START_TEST(texts_within_a_list_may_have_any_offsets)
{
    static const int64_t texts[] = {0, INT64_MIN, INT64_MAX, -1, 5};
    static const int32_t lists[] = {0, 1, 2, 3, 4};
    struct sample s = {.array = {.device_type = ARROW_DEVICE_CPU}};
    struct ArrowArray *array = &s.array.array;

    plain_schema(&s.schema, "+l", "x", 1);
    plain_array(array, 4, 2, 1);
    array->buffers[1] = lists;
    plain_schema(s.schema.children[0], "U", "y", 0);
    plain_array(array->children[0], 4, 3, 0);
    array->children[0]->buffers[1] = texts;
    array->children[0]->buffers[2] = "words";
    ck_assert_int_eq(rows_size(&s, 0, 4), 5 * 4 + 5 * 8 + 5);
    ck_assert_int_eq(rows_size(&s, 0, 1), 2 * 4 + 2 * 8);
    for (int64_t from = 1; from < 4; from++)
        ck_assert_int_eq(rows_size(&s, from, 1), 4 + 8);
    sample_free(&s);
}
END_TEST

START_TEST(members_of_a_dense_union_take_the_items_of_rows)
{
    static const int8_t ids[] = {5, 3, 5, 5, 7, 3, 3};
    static const int32_t offsets[] = {0, 0, 1, 7, 0, -1, 10};
    const void *const buffers[] = {ids, offsets};
    struct sample s;

    sample_nested(&s, "+ud:5,3", 7, 2, buffers, 2);
    ck_assert_int_eq(rows_size(&s, 0, 4), 4 * 5 + 4 * 4);
    ck_assert_int_eq(rows_size(&s, 1, 1), 5 + 4);
    ck_assert_int_eq(rows_size(&s, 4, 3), 3 * 5); /* they are out of range */
    s.array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(rows_size(&s, 0, 1), 5 + 20 * 4);
    ck_assert_int_eq(rows_size(&s, 1, 1), 5);
    sample_free(&s);
}
END_TEST

START_TEST(members_of_a_sparse_union_take_their_rows)
{
    static const int8_t ids[10];
    const void *const buffers[] = {ids};
    struct sample s;

    sample_nested(&s, "+us:0,1", 10, 1, buffers, 2);
    ck_assert_int_eq(rows_size(&s, 2, 3), 3 + 2 * 3 * 4);
    sample_free(&s);
}
END_TEST

/* A run counts for its first row, as its value is one. */
START_TEST(runs_take_their_values_where_they_begin)
{
    static const int16_t narrow[] = {3, 4, 10};
    static const int32_t middle[] = {3, 4, 10};
    static const int64_t wide[] = {3, 4, 10};
    static const void *const ends[] = {narrow, middle, wide};

    for (int i = 0; i < 3; i++) {
        const int64_t run = (2 << i) + 4;
        struct sample s;

        sample_nested(&s, "+r", 10, 0, NULL, 2);
        s.schema.children[0]->format = i == 0 ? "s" : i == 1 ? "i" : "l";
        for (int k = 0; k < 2; k++) {
            s.array.array.children[k]->length = 3;
            s.array.array.children[k]->buffers[1] = ends[i];
        }
        ck_assert_int_eq(rows_size(&s, 0, 10), 3 * run);
        ck_assert_int_eq(rows_size(&s, 0, 3), run);
        ck_assert_int_eq(rows_size(&s, 1, 2), 0);
        ck_assert_int_eq(rows_size(&s, 1, 3), run);
        ck_assert_int_eq(rows_size(&s, 2, 8), 2 * run);
        ck_assert_int_eq(rows_size(&s, 9, 90), 0); /* after the last one */
        s.schema.children[0]->format = "g";        /* no ends of runs */
        ck_assert_int_eq(rows_size(&s, 1, 3), 0);
        sample_free(&s);
    }
}
END_TEST

START_TEST(ends_of_runs_in_disorder_do_no_harm)
{
    static const int32_t ends[][4] = {
        {4, 3, 2, 1}, {-1, INT32_MIN, 5, 2}, {INT32_MAX, 0, INT32_MAX, 0}};

    for (int i = 0; i < 3; i++) {
        struct sample s;

        sample_nested(&s, "+r", 5, 0, NULL, 2);
        for (int k = 0; k < 2; k++) {
            s.array.array.children[k]->length = 4;
            s.array.array.children[k]->buffers[1] = ends[i];
        }
        for (int64_t from = 0; from < 5; from++)
            ck_assert_int_le(rows_size(&s, from, 5 - from), 4 * 8);
        sample_free(&s);
    }
}
END_TEST

/* Too many rows to look at: the first ones take all texts. */
START_TEST(texts_of_endless_views_are_those_of_the_first_rows)
{
    static const int64_t lengths[] = {100, 200};
    static const int32_t views[4];
    const void *const buffers[] = {NULL, views, "x", "y", lengths};
    struct sample s;

    sample_make(&s, "vu", 1, 5, buffers);
    ck_assert_int_eq(rows_size(&s, 0, ENDLESS), ENDLESS * 16 + 16 + 300);
    ck_assert_int_eq(rows_size(&s, 1, ENDLESS), ENDLESS * 16);
    sample_free(&s);
}
END_TEST

/* Texts of more than 12 bytes lie outside of their views. */
START_TEST(views_take_their_texts)
{
    static const int64_t lengths[] = {100, 200};
    int32_t views[6 * 4] = {0};
    static const uint8_t valid[] = {0x1F};
    const void *const buffers[] = {valid, views, "x", "y", lengths};
    static const int32_t sizes[] = {12, 13, 200, -5, INT32_MAX, 50};
    struct sample s;

    for (int i = 0; i < 6; i++)
        views[i * 4] = sizes[i];
    sample_make(&s, "vu", 6, 5, buffers);
    s.array.array.null_count = -1;
    ck_assert_int_eq(rows_size(&s, 0, 2), 1 + 32 + 13 + 16);
    ck_assert_int_eq(rows_size(&s, 1, 2), 32 + 13 + 200);
    ck_assert_int_eq(rows_size(&s, 3, 1), 16);       /* fewer than 0 */
    ck_assert_int_eq(rows_size(&s, 4, 1), 16 + 300); /* more than there is */
    ck_assert_int_eq(rows_size(&s, 5, 1), 16);       /* null */
    sample_free(&s);
}
END_TEST

START_TEST(texts_of_a_device_take_their_offsets)
{
    const void *const buffers[] = {NULL, (void *)(uintptr_t)0x10,
                                   (void *)(uintptr_t)0x20};
    struct sample s;

    sample_make(&s, "U", 5, 3, buffers);
    s.array.device_type = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(rows_size(&s, 0, 2), 3 * 8);
    ck_assert_int_eq(rows_size(&s, 2, 3), 3 * 8);
    sample_free(&s);
}
END_TEST

/* The first row has the common part. */
START_TEST(a_dictionary_counts_once)
{
    static const int32_t offsets[] = {0, 4};
    static const int8_t indices[10];
    const void *const buffers[] = {NULL, indices};
    struct ArrowArray *words;
    struct sample s;

    sample_make(&s, "c", 10, 2, buffers);
    words = plain_array_dictionary(&s.array.array);
    plain_schema(plain_schema_dictionary(&s.schema), "u", NULL, 0);
    plain_array(words, 1, 3, 0);
    words->buffers[1] = offsets;
    words->buffers[2] = "word";
    ck_assert_int_eq(rows_size(&s, 0, 4), 4 + 8 + 4);
    ck_assert_int_eq(rows_size(&s, 4, 6), 6);
    words->length = 0;
    ck_assert_int_eq(rows_size(&s, 0, 4), 4);
    sample_free(&s);
}
END_TEST

START_TEST(nothing_outside_the_rows_is_read)
{
    static const int32_t views[2][4] = {{13, 0, 0, 0}, {20, 0, 0, 0}};
    static const int64_t lengths[] = {100};
    char *wall = guard_page_copy(views, sizeof(views));
    const void *const buffers[] = {NULL, wall, "x", lengths};
    struct sample s;

    sample_make(&s, "vu", 2, 4, buffers);
    ck_assert_int_eq(rows_size(&s, 0, 2), 32 + 8 + 33);
    ck_assert_int_eq(rows_size(&s, 1, 1), 16 + 20);
    guard_page_free(wall, sizeof(views));
    sample_free(&s);
}
END_TEST

/* ---- bounds ------------------------------------------------------------- */

enum { TOWER = 40, TOWER_ROWS = 100 };

/* Lists of lists, in which every row has all items of the next level: to look
 * at each of them would take for ever. */
START_TEST(rows_that_share_their_items_do_not_take_for_ever)
{
    static const int32_t offsets[TOWER_ROWS];
    static const int32_t texts[TOWER_ROWS][4]; /* or numbers */
    static const int64_t lengths[] = {8};
    static int32_t sizes[TOWER_ROWS];
    struct sample s = {.array = {.device_type = ARROW_DEVICE_CPU}};
    struct ArrowSchema *schema = &s.schema;
    struct ArrowArray *array = &s.array.array;

    for (int i = 0; i < TOWER_ROWS; i++)
        sizes[i] = TOWER_ROWS;
    for (int level = 0; level < TOWER; level++) {
        plain_schema(schema, "+vl", "x", 1);
        plain_array(array, TOWER_ROWS, 3, 1);
        array->buffers[1] = offsets;
        array->buffers[2] = sizes;
        schema = schema->children[0];
        array = array->children[0];
    }
    plain_schema(schema, _i == 0 ? "i" : "vu", "x", 0);
    plain_array(array, TOWER_ROWS, _i == 0 ? 2 : 4, 0);
    array->buffers[1] = texts;
    for (int64_t i = 2; i < array->n_buffers; i++)
        array->buffers[i] = lengths;
    ck_assert_int_ge(size_of(&s.schema, &s.array), TOWER_ROWS * 8);
    sample_free(&s);
}
END_TEST

START_TEST(sums_do_not_overflow)
{
    static const int64_t offsets[] = {0, 0, 0, 0};
    static const int64_t sizes[] = {INT64_MAX / 2, INT64_MAX / 2, INT64_MAX / 2,
                                    INT64_MAX / 2};
    const void *const buffers[] = {NULL, offsets, sizes};
    struct sample s;

    sample_nested(&s, "+vL", 4, 3, buffers, 1);
    s.schema.children[0]->format = "w:1";
    s.array.array.children[0]->length = INT64_MAX / 2;
    ck_assert_int_eq(rows_size(&s, 0, 4), INT64_MAX);
    sample_free(&s);
    sample_nested(&s, "+w:1000", INT64_MAX / 500, 1, buffers, 1);
    s.schema.children[0]->format = "w:0";
    s.array.array.children[0]->length = INT64_MAX;
    ck_assert_int_eq(rows_size(&s, 0, INT64_MAX / 500), 0);
    ck_assert_int_eq(rows_size(&s, INT64_MAX / 500, 5), 0);
    sample_free(&s);
    sample_nested(&s, "+ud:5,3", INT64_MAX / 64, 2,
                  (const void *const[]){offsets, offsets}, 2);
    ck_assert_int_eq(rows_size(&s, 0, INT64_MAX / 64),
                     INT64_MAX / 64 * 5 + 20 * 4);
    sample_free(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("row size");
    TCase *sums = tcase_create("sums"), *values = tcase_create("values");

    tcase_add_checked_fixture(sums, set_up, tear_down);
    tcase_add_loop_test(sums, slices_add_up_to_their_array, 0, EVERY_TYPES);
    tcase_add_loop_test(sums, a_slice_keeps_the_memory_of_its_batch, 0,
                        EVERY_TYPES);
    tcase_add_test(sums, a_part_of_a_slice_has_its_own_memory);
    tcase_add_checked_fixture(values, set_up, tear_down);
    tcase_add_test(values, lists_take_their_items);
    tcase_add_test(values, lists_of_equal_size_take_their_items);
    tcase_add_test(values, views_of_lists_take_their_items);
    tcase_add_test(values, views_that_point_to_nothing_take_nothing);
    tcase_add_test(values, offsets_of_lists_in_disorder_take_what_is_there);
    tcase_add_test(values, texts_within_a_list_may_have_any_offsets);
    tcase_add_test(values, members_of_a_dense_union_take_the_items_of_rows);
    tcase_add_test(values, members_of_a_sparse_union_take_their_rows);
    tcase_add_test(values, runs_take_their_values_where_they_begin);
    tcase_add_test(values, ends_of_runs_in_disorder_do_no_harm);
    tcase_add_test(values, views_take_their_texts);
    tcase_add_test(values, texts_of_endless_views_are_those_of_the_first_rows);
    tcase_add_test(values, texts_of_a_device_take_their_offsets);
    tcase_add_test(values, a_dictionary_counts_once);
    tcase_add_test(values, nothing_outside_the_rows_is_read);
    tcase_add_loop_test(values,
                        rows_that_share_their_items_do_not_take_for_ever, 0, 2);
    tcase_add_test(values, sums_do_not_overflow);
    suite_add_tcase(suite, sums);
    suite_add_tcase(suite, values);
    return suite_run(suite);
}
