/* SPDX-License-Identifier: Apache-2.0 */
/* A plan measures the batches of every type, and no others: what it says is
 * compared with layout.h, which knows no plan. test_layout.c and the fuzzer of
 * layouts compare them for all batches that they make. */
#include "arrow/plan.h"

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/layout.h"
#include "base/memory.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

enum { ROWS = 8, ITEMS = 3 * (ROWS + 2) };

static const int32_t OFFSETS[ROWS + 3] = {0, 3, 6, 9, 12, 15, 18, 21, 24, 27};
static const int64_t LARGE_OFFSETS[ROWS + 3] = {0,  3,  6,  9,  12,
                                                15, 18, 21, 24, 27};
static const char DATA[64 * ITEMS]; /* also views, type ids and sizes */

static const char *const FORMATS[] = {
    "n",    "b",  "c",       "s",      "i",         "l",   "e",
    "g",    "u",  "Z",       "d:18,2", "d:5,1,256", "w:7", "tsu:UTC",
    "tin",  "vu", "+l",      "+L",     "+m",        "+vl", "+w:3",
    "+w:0", "+s", "+us:0,1", "@c",     "@i",        "w:0", "w:5000"};
enum { FORMAT_COUNT = sizeof(FORMATS) / sizeof(FORMATS[0]) };

static struct faulty_allocator faulty;
static struct uva_allocator allocator;
static struct ArrowSchema schema;
static struct ArrowDeviceArray batch;
static struct uva__plan plan;

/* ---- batches ------------------------------------------------------------ */

static void node_make(struct ArrowSchema *type, struct ArrowArray *array,
                      const char *format, int64_t rows);

static void node_children(struct ArrowSchema *type, struct ArrowArray *array,
                          const char *below, int64_t rows)
{
    for (int i = 0; i < (int)strlen(below); i++) {
        char *format = below[i] == 'u' ? "u" : "i";

        node_make(type->children[i], array->children[i], format, rows);
    }
}

static void node_nested(struct ArrowSchema *type, struct ArrowArray *array,
                        const char *format, int64_t rows)
{
    const bool is_wide = format[1] == 's' || format[1] == 'u';
    const char *below = is_wide ? "iu" : "u";
    const int buffers = format[1] == 'v'                   ? 3
                        : strchr("lLm", format[1]) != NULL ? 2
                                                           : 1;

    plain_schema(type, format, "nested", (int)strlen(below));
    plain_array(array, rows, buffers, (int)strlen(below));
    if (format[1] == 'l' || format[1] == 'm')
        array->buffers[1] = OFFSETS;
    else if (format[1] == 'L')
        array->buffers[1] = LARGE_OFFSETS;
    else if (format[1] == 'v')
        array->buffers[1] = array->buffers[2] = DATA;
    else if (format[1] == 'u')
        array->buffers[0] = DATA;
    node_children(type, array, below, is_wide ? rows : ROWS);
    if (format[1] == 'w') /* "+w:3" */
        array->children[0]->length = 3 * rows < ROWS ? 3 * rows : ROWS;
}

/* Makes `rows` items; '@' stands for a dictionary of texts. */
static void node_make(struct ArrowSchema *type, struct ArrowArray *array,
                      const char *format, int64_t rows)
{
    const char kind = format[0];
    const int buffers = kind == 'n' ? 0 : strchr("uZv", kind) != NULL ? 3 : 2;

    if (kind == '+') {
        node_nested(type, array, format, rows);
        return;
    }
    plain_schema(type, format + (kind == '@'), "x", 0);
    plain_array(array, rows, buffers, 0);
    for (int i = 1; i < buffers; i++)
        array->buffers[i] = DATA;
    if (kind == 'u')
        array->buffers[1] = OFFSETS;
    else if (kind == 'Z')
        array->buffers[1] = LARGE_OFFSETS;
    if (kind == '@')
        node_make(plain_schema_dictionary(type), plain_array_dictionary(array),
                  "u", ROWS);
}

/* A batch of `n` columns, of the formats from number `first` on, or all of that
 * one. */
static void batch_make_of(int first, int n, bool same)
{
    batch = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                      .device_id = -1};
    plain_schema(&schema, "+s", "", n);
    plain_array(&batch.array, 2, 1, n);
    for (int i = 0; i < n; i++)
        node_make(schema.children[i], batch.array.children[i],
                  FORMATS[(same ? first : first + i) % FORMAT_COUNT], 2);
    uva__plan_init(&plan, &allocator, &schema);
}

static void batch_make(int first, int n)
{
    batch_make_of(first, n, false);
}

static void set_up(void)
{
    faulty_allocator_init(&faulty, 0);
    allocator = faulty_allocator_table(&faulty);
}

static void batch_drop(void)
{
    uva__plan_fini(&plan);
    uva_schema_release(&schema);
    uva_array_release(&batch);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}

/* Whether the plan accepts the batch; then the size is that of the layout. */
static bool accepts(void)
{
    int64_t size = -1, other = -1;
    const int code = uva__layout_measure(&schema, &batch, &other, NULL);
    const bool is_accepted = uva__plan_measure(&plan, &schema, &batch, &size);

    ck_assert_int_eq(size, is_accepted ? other : -1);
    ck_assert(!is_accepted || code == 0);
    return is_accepted;
}

/* ---- tests -------------------------------------------------------------- */

START_TEST(a_column_of_each_type_is_measured)
{
    struct ArrowArray *column;

    batch_make(_i, 1);
    column = batch.array.children[0];
    ck_assert_msg(accepts(), "%s", FORMATS[_i]);
    for (int i = 1; i < 8; i++) { /* slices, and bitmaps */
        batch.array.offset = i & 1;
        column->offset = (i & 2) != 0;
        batch.array.length = (i & 1) ? 1 : 2;
        if ((i & 4) && column->n_buffers > 1)
            column->buffers[0] = DATA;
        if (strncmp(FORMATS[_i], "+w", 2) != 0 && FORMATS[_i][0] != '+')
            ck_assert_msg(accepts(), "%s, %d", FORMATS[_i], i);
        else
            (void)accepts();
    }
    batch_drop();
}
END_TEST

START_TEST(no_rows_are_measured)
{
    batch_make(_i, 2);
    batch.array.length = 0;
    ck_assert_msg(accepts(), "%s", FORMATS[_i]);
    batch.array.children[0]->length = 0;
    ck_assert_msg(accepts(), "%s", FORMATS[_i]);
    batch_drop();
}
END_TEST

START_TEST(any_number_of_columns_is_measured)
{
    for (int n = 0; n < 1200; n = n < 40 ? n + 1 : n * 2) {
        batch_make(n, n);
        ck_assert(accepts());
        ck_assert_int_eq(faulty_allocator_live(&faulty), plan.far != NULL);
        batch_drop();
    }
}
END_TEST

/* Neighbours of one type are one node, up to a number. */
START_TEST(neighbours_of_one_type_are_measured)
{
    batch_make_of(_i, 300, true);
    ck_assert_msg(accepts(), "%s", FORMATS[_i]);
    batch_drop();
}
END_TEST

/* The same of which the last but one has a fault. */
START_TEST(neighbours_of_a_fault_are_not_accepted)
{
    batch_make_of(_i, 3, true);
    batch.array.children[1]->n_buffers--;
    ck_assert_msg(!accepts(), "%s", FORMATS[_i]);
    batch.array.children[1]->n_buffers++;
    batch.array.children[1]->length = 1;
    ck_assert_msg(!accepts(), "%s", FORMATS[_i]);
    batch_drop();
}
END_TEST

static void released_by_nobody(struct ArrowSchema *node)
{
    (void)node;
}

START_TEST(a_schema_with_too_many_nodes_has_no_plan)
{
    enum { SHARED = 600 * 1000 };
    struct ArrowSchema leaf = {.format = "i", .release = released_by_nobody};
    struct ArrowSchema row = {.format = "+s",
                              .n_children = SHARED,
                              .children = calloc(SHARED, sizeof(void *)),
                              .release = released_by_nobody};
    struct ArrowSchema *rows[2] = {&row, &row};
    const struct ArrowSchema root = {.format = "+s",
                                     .n_children = 2,
                                     .children = rows,
                                     .release = released_by_nobody};

    for (int i = 0; i < SHARED; i++)
        row.children[i] = &leaf;
    uva__plan_init(&plan, &allocator, &root);
    ck_assert_int_eq(plan.size, 0);
    free(row.children);
}
END_TEST

START_TEST(without_memory_there_is_no_plan)
{
    faulty_allocator_init(&faulty, 1);
    batch_make(0, 2 * UVA__PLAN_NEAR);
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

/* Fields of a node, with a value that is wrong, or only strange. */
static const struct {
    size_t at;
    int64_t value;
} SPOILT[] = {
    {offsetof(struct ArrowArray, length), -1},
    {offsetof(struct ArrowArray, length), 0},
    {offsetof(struct ArrowArray, length), INT64_MAX},
    {offsetof(struct ArrowArray, null_count), -2},
    {offsetof(struct ArrowArray, null_count), 1},
    {offsetof(struct ArrowArray, null_count), 3},
    {offsetof(struct ArrowArray, offset), -1},
    {offsetof(struct ArrowArray, offset), INT64_MAX},
    {offsetof(struct ArrowArray, n_buffers), -1},
    {offsetof(struct ArrowArray, n_children), -1},
    {offsetof(struct ArrowArray, buffers), 0},
    {offsetof(struct ArrowArray, children), 0},
    {offsetof(struct ArrowArray, dictionary), 0},
    {offsetof(struct ArrowArray, release), 0},
};

static void node_spoil(struct ArrowArray *node)
{
    const struct ArrowArray kept = *node;

    if (node->dictionary == NULL) {
        node->dictionary = node;
        ck_assert(!accepts());
        node->dictionary = NULL;
    }
    for (size_t way = 0; way < sizeof(SPOILT) / sizeof(SPOILT[0]); way++) {
        memcpy((char *)node + SPOILT[way].at, &SPOILT[way].value,
               sizeof(SPOILT[way].value));
        (void)accepts();
        *node = kept;
    }
    for (int i = 0; i < node->n_buffers; i++) {
        const void *buffer = node->buffers[i];

        node->buffers[i] = NULL;
        (void)accepts();
        node->buffers[i] = buffer;
    }
    for (int i = 0; i < node->n_children; i++) {
        struct ArrowArray *child = node->children[i];

        node_spoil(child);
        node->children[i] = NULL;
        ck_assert(!accepts());
        node->children[i] = child;
    }
    if (node->dictionary != NULL)
        node_spoil(node->dictionary);
}

START_TEST(a_batch_with_a_fault_is_not_accepted)
{
    batch_make(_i, 2);
    node_spoil(&batch.array);
    ck_assert(accepts());
    batch_drop();
}
END_TEST

/* Offsets of the first and the last row, which are read. */
START_TEST(texts_lie_between_their_offsets)
{
    static const int64_t wrong[][3] = {
        {-1, 0, 3}, {3, 3, 2}, {0, 1, (int64_t)1 << 41}, {5, 0, INT64_MIN}};
    static const int64_t strange[][3] = {
        {0, 9, 3}, {0, -9, 3}, {0, INT64_MAX, 3}, {0, INT64_MIN, 3}};
    static const int64_t huge[] = {8, 8, INT64_MAX};

    batch_make(9, 1); /* "Z" */
    for (size_t i = 0; i < 4; i++) {
        batch.array.children[0]->buffers[1] = wrong[i];
        batch.array.length = 1;
        (void)accepts();
        batch.array.length = 2;
        ck_assert(!accepts());
    }
    for (size_t i = 0; i < 4; i++) {
        batch.array.children[0]->buffers[1] = strange[i];
        ck_assert(accepts());
        batch.array.length = 1;
        (void)accepts();
        batch.array.offset = 1;
        (void)accepts();
        batch.array.length = 2;
        batch.array.offset = 0;
    }
    batch.array.children[0]->buffers[1] = huge;
    batch.array.length = 0;
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

/* Offsets of lists are not checked: those items count that the child has. */
START_TEST(lists_have_the_items_of_their_child)
{
    static const int64_t wrong[][3] = {
        {INT64_MAX, 0, INT64_MIN},
        {-9, 0, INT64_MAX},
        {((int64_t)1 << 50) + 1, 0, INT64_MIN + ((int64_t)1 << 50)}};

    batch_make(17, 1); /* "+L" */
    ck_assert_str_eq(schema.children[0]->format, "+L");
    for (size_t i = 0; i < 3; i++) {
        batch.array.children[0]->buffers[1] = wrong[i];
        ck_assert(accepts());
    }
    batch_drop();
}
END_TEST

/* As many items as no child can have, and as no integer can be. */
START_TEST(lists_of_equal_size_are_short)
{
    struct ArrowArray *column, *below;

    batch_make(20, 1); /* "+w:3" */
    column = batch.array.children[0];
    below = column->children[0];
    batch.array.children[0]->length = 4;
    schema.children[0]->format = "+w:2147483647";
    batch.array.offset = INT32_MAX;
    column->length = INT64_C(3) << 31;
    column->offset = INT32_MAX;
    below->length = INT64_MAX;
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

/* A column without data has empty texts alone. */
START_TEST(empty_texts_need_no_data)
{
    static const int32_t zeros[4];

    batch_make(8, 1); /* "u" */
    batch.array.children[0]->buffers[1] = zeros;
    batch.array.children[0]->buffers[2] = NULL;
    ck_assert(accepts());
    batch.array.length = 1;
    ck_assert(accepts());
    batch_drop();
}
END_TEST

START_TEST(lists_without_rows_have_a_child)
{
    struct ArrowArray *lists;

    batch_make(16, 1); /* "+l" */
    lists = batch.array.children[0];
    batch.array.length = lists->length = 0;
    ck_assert(accepts());
    lists->null_count = 1;
    ck_assert(!accepts());
    lists->null_count = 0;
    lists->children[0]->n_buffers--;
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

/* Their items are more than a plan counts; only the layout can tell. */
START_TEST(large_equal_lists_are_left_to_the_layout)
{
    batch_make(20, 1); /* "+w:3" */
    batch.array.children[0]->offset = INT32_MAX;
    ck_assert(!accepts());
    batch.array.children[0]->offset = 0;
    batch.array.children[0]->length = 4;
    schema.children[0]->format = "+w:2147483647";
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

START_TEST(large_columns_are_left_to_the_layout)
{
    batch_make(FORMAT_COUNT - 1, 1); /* "w:5000" */
    schema.children[0]->format = "w:2147483647";
    ck_assert(accepts());
    batch.array.length = batch.array.children[0]->length = 1024;
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

/* Ways to spoil the second column's schema. */
static void schema_spoil(struct ArrowSchema *column, int way)
{
    if (way == 0)
        column->format = "?";
    else if (way == 1)
        column->format = NULL;
    else if (way == 2)
        column->format = "d:";
    else if (way == 3)
        column->n_children = 1;
    else if (way == 4)
        column->release = NULL;
    else
        column->dictionary = &schema;
}

START_TEST(a_schema_that_no_batch_fits_has_no_plan)
{
    struct ArrowSchema kept;

    batch_make(8, 2); /* "u", "Z" */
    uva__plan_fini(&plan);
    kept = *schema.children[1];
    schema_spoil(schema.children[1], _i);
    uva__plan_init(&plan, &allocator, &schema);
    ck_assert(!accepts());
    *schema.children[1] = kept;
    uva__plan_init(&plan, &allocator, NULL);
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

START_TEST(a_dictionary_that_is_released_has_no_plan)
{
    struct ArrowSchema *dictionary, kept;

    batch_make(25, 1); /* "@i" */
    uva__plan_fini(&plan);
    dictionary = schema.children[0]->dictionary;
    kept = *dictionary;
    dictionary->release = NULL;
    uva__plan_init(&plan, &allocator, &schema);
    ck_assert_int_eq(plan.size, 0);
    *dictionary = kept;
    uva__plan_init(&plan, &allocator, &schema);
    ck_assert(accepts());
    batch_drop();
}
END_TEST

START_TEST(memory_of_a_device_is_not_read)
{
    batch_make(4, 4); /* numbers */
    batch.device_type = ARROW_DEVICE_CUDA;
    ck_assert(accepts());
    batch_drop();
    batch_make(8, 1);
    batch.device_type = ARROW_DEVICE_CUDA;
    batch.array.children[0]->buffers[1] = (const void *)(uintptr_t)8;
    ck_assert(!accepts());
    batch_drop();
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("plan");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_loop_test(tcase, a_column_of_each_type_is_measured, 0,
                        FORMAT_COUNT);
    tcase_add_loop_test(tcase, no_rows_are_measured, 0, FORMAT_COUNT);
    tcase_add_test(tcase, any_number_of_columns_is_measured);
    tcase_add_loop_test(tcase, neighbours_of_one_type_are_measured, 0,
                        FORMAT_COUNT);
    tcase_add_loop_test(tcase, neighbours_of_a_fault_are_not_accepted, 0,
                        FORMAT_COUNT);
    tcase_add_test(tcase, a_schema_with_too_many_nodes_has_no_plan);
    tcase_add_test(tcase, empty_texts_need_no_data);
    tcase_add_test(tcase, lists_without_rows_have_a_child);
    tcase_add_test(tcase, large_equal_lists_are_left_to_the_layout);
    tcase_add_test(tcase, large_columns_are_left_to_the_layout);
    tcase_add_test(tcase, without_memory_there_is_no_plan);
    tcase_add_loop_test(tcase, a_batch_with_a_fault_is_not_accepted, 0,
                        FORMAT_COUNT);
    tcase_add_test(tcase, texts_lie_between_their_offsets);
    tcase_add_test(tcase, lists_have_the_items_of_their_child);
    tcase_add_test(tcase, lists_of_equal_size_are_short);
    tcase_add_loop_test(tcase, a_schema_that_no_batch_fits_has_no_plan, 0, 6);
    tcase_add_test(tcase, a_dictionary_that_is_released_has_no_plan);
    tcase_add_test(tcase, memory_of_a_device_is_not_read);
    return suite_main("plan", NULL, NULL, tcase, NULL);
}
