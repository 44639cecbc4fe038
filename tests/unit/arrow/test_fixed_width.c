/* SPDX-License-Identifier: Apache-2.0 */
/* Which schemas have a shape, and that no others are measured by one.
 * test_layout.c checks that the sizes are right, for every way of spoiling. */
#include "arrow/fixed_width.h"

#include <check.h>
#include <errno.h>

#include "arrow/layout.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static int64_t DATA[8];

/* A batch of `n` columns of four int32. */
static void make(struct ArrowSchema *schema, struct ArrowArray *array, int n)
{
    plain_schema(schema, "+s", "x", n);
    plain_array(array, 4, 1, n);
    for (int i = 0; i < n; i++) {
        plain_schema(schema->children[i], "i", "y", 0);
        plain_array(array->children[i], 4, 2, 0);
        array->children[i]->buffers[1] = DATA;
    }
}

static void unmake(struct ArrowSchema *schema, struct ArrowArray *array)
{
    uva_schema_release(schema);
    array->release(array);
    ck_assert_int_eq(plain_live(), 0);
}

START_TEST(a_few_columns_of_numbers_have_a_shape)
{
    for (int n = 1; n <= UVA__FIXED_WIDTH_COLUMNS + 1; n++) {
        struct ArrowSchema schema;
        struct ArrowArray array;
        struct uva__fixed_width shape;
        int64_t size = -1;
        make(&schema, &array, n);
        uva__fixed_width_read(&shape, &schema);
        ck_assert_int_eq(shape.columns, n <= UVA__FIXED_WIDTH_COLUMNS ? n : -1);
        ck_assert(uva__fixed_width_measure(&shape, &array, &size) ==
                  (n <= UVA__FIXED_WIDTH_COLUMNS));
        ck_assert_int_eq(size, n <= UVA__FIXED_WIDTH_COLUMNS ? 16 * n : -1);
        unmake(&schema, &array);
    }
}
END_TEST

/* Ways to spoil a schema. */
enum { TEXT, LIST, INDEX, RELEASED, GONE, ALONE, NAMELESS, FEWER, WAYS };

static void spoil(struct ArrowSchema *schema, int way)
{
    struct ArrowSchema *column = schema->children[1];

    if (way == TEXT)
        column->format = "u";
    else if (way == LIST)
        column->n_children = 1;
    else if (way == INDEX)
        plain_schema(plain_schema_dictionary(column), "u", NULL, 0);
    else if (way == RELEASED)
        column->release = NULL;
    else if (way == FEWER)
        schema->n_children = -1;
    else if (way == GONE)
        uva_schema_release(schema);
    else
        schema->format = way == ALONE ? "i" : NULL;
}

/* Repairs the schema, so that it can be released. */
static void mend(struct ArrowSchema *schema, int way,
                 void (*release)(struct ArrowSchema *schema))
{
    if (way == GONE)
        return;
    schema->n_children = 2;
    schema->children[1]->n_children = 0;
    schema->children[1]->release = release;
}

START_TEST(nothing_else_has_one)
{
    void (*release)(struct ArrowSchema * schema);
    struct uva__fixed_width shape;

    for (int way = 0; way < WAYS; way++) {
        struct ArrowSchema schema;
        struct ArrowArray array;
        int64_t size = -1;
        make(&schema, &array, 2);
        release = schema.children[1]->release;
        spoil(&schema, way);
        uva__fixed_width_read(&shape, &schema);
        ck_assert_int_eq(shape.columns, -1);
        ck_assert(!uva__fixed_width_measure(&shape, &array, &size));
        ck_assert_int_eq(size, -1);
        mend(&schema, way, release);
        unmake(&schema, &array);
    }
    uva__fixed_width_read(&shape, NULL);
    ck_assert_int_eq(shape.columns, -1);
}
END_TEST

START_TEST(every_column_is_there_and_live)
{
    struct ArrowSchema schema;
    struct ArrowArray array, *column;
    struct uva__fixed_width shape;
    struct ArrowArray kept;
    int64_t size = -1;

    make(&schema, &array, 2);
    uva__fixed_width_read(&shape, &schema);
    column = array.children[1];
    kept = *column;
    column->release = NULL;
    ck_assert(!uva__fixed_width_measure(&shape, &array, &size));
    *column = kept;
    column->buffers = NULL;
    ck_assert(!uva__fixed_width_measure(&shape, &array, &size));
    *column = kept;
    array.children[1] = NULL;
    ck_assert(!uva__fixed_width_measure(&shape, &array, &size));
    array.children[1] = column;
    kept = array;
    array.buffers = NULL;
    ck_assert(!uva__fixed_width_measure(&shape, &array, &size));
    array = kept;
    ck_assert_int_eq(size, -1);
    unmake(&schema, &array);
}
END_TEST

static void spoil_batch(struct ArrowArray *array, int way)
{
    static const void *const filled[1] = {DATA};

    if (way == 0)
        array->release = NULL;
    else if (way == 1)
        array->dictionary = array->children[0];
    else if (way == 2)
        array->n_buffers = 2;
    else if (way == 3)
        array->buffers = (const void **)(uintptr_t)filled;
    else if (way == 4)
        array->null_count = 1;
    else if (way == 5)
        array->offset = -1;
    else if (way == 6)
        array->n_children = 1;
    else if (way == 7)
        array->children = NULL;
    else
        array->buffers = NULL;
}

/* Any other shape is left to the layout, which accepts a bitmap of nulls. */
START_TEST(a_batch_has_columns_and_nothing_else)
{
    struct ArrowDeviceArray spoilt = {.device_type = ARROW_DEVICE_CPU};
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct uva__fixed_width shape;
    int64_t size = -1;

    make(&schema, &array, 2);
    uva__fixed_width_read(&shape, &schema);
    spoilt.array = array;
    spoil_batch(&spoilt.array, _i);
    ck_assert(!uva__fixed_width_measure(&shape, &spoilt.array, &size));
    ck_assert_int_eq(size, -1);
    ck_assert_int_eq(
        uva__layout_measure_shaped(&shape, &schema, &spoilt, &size, NULL),
        _i == 3 ? 0 : EINVAL);
    ck_assert(uva__fixed_width_measure(&shape, &array, &size));
    unmake(&schema, &array);
}
END_TEST

START_TEST(a_schema_without_its_column_has_none)
{
    struct ArrowDeviceArray nothing = {.device_type = ARROW_DEVICE_CPU};
    struct ArrowSchema schema, *column;
    struct ArrowArray array;
    struct uva__fixed_width shape;
    int64_t size;

    make(&schema, &array, 2);
    column = schema.children[1];
    schema.children[1] = NULL;
    uva__fixed_width_read(&shape, &schema);
    ck_assert_int_eq(shape.columns, -1);
    schema.children[1] = column;
    unmake(&schema, &array);
    ck_assert_int_eq(uva_array_size(NULL, &nothing, &size), EINVAL);
}
END_TEST

START_TEST(a_batch_of_another_schema_is_not_measured)
{
    struct ArrowSchema schema, other;
    struct ArrowArray array, more;
    struct uva__fixed_width shape;
    int64_t size = -1;

    make(&schema, &array, 2);
    make(&other, &more, 3);
    uva__fixed_width_read(&shape, &schema);
    ck_assert(!uva__fixed_width_measure(&shape, &more, &size));
    more.children[0]->n_buffers = 1; /* a batch inside a batch */
    uva__fixed_width_read(&shape, &other);
    ck_assert(!uva__fixed_width_measure(&shape, &more, &size));
    ck_assert_int_eq(size, -1);
    uva_schema_release(&schema);
    array.release(&array);
    unmake(&other, &more);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("fixed width");

    tcase_add_test(tcase, a_few_columns_of_numbers_have_a_shape);
    tcase_add_test(tcase, nothing_else_has_one);
    tcase_add_test(tcase, every_column_is_there_and_live);
    tcase_add_loop_test(tcase, a_batch_has_columns_and_nothing_else, 0, 9);
    tcase_add_test(tcase, a_schema_without_its_column_has_none);
    tcase_add_test(tcase, a_batch_of_another_schema_is_not_measured);
    return suite_main("fixed width", NULL, NULL, tcase, NULL);
}
