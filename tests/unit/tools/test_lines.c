/* SPDX-License-Identifier: Apache-2.0 */
/* The stage that turns batches into lines: its output, and that everything is
 * released in every case. The sanitizers find leaks. */
#include "lines.h"

#include <check.h>
#include <string.h>

#include "support/check_suite.h"
#include "uvarrow/arrow.h"

/* A batch of one column of integers. Has no memory. */
struct table {
    int32_t values[3];
    const void *buffers[2];
    const void *no_buffers[1];
    struct ArrowArray column;
    struct ArrowArray *columns[1];
    struct ArrowSchema field;
    struct ArrowSchema *fields[1];
    struct ArrowSchema schema;
    struct uva_batch batch;
};

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static const struct uva_write csv = {.format = UVA_FORMAT_CSV};

static void table_init(struct table *t)
{
    *t = (struct table){.values = {7, 8, 9}};
    t->buffers[1] = t->values;
    t->column = (struct ArrowArray){.length = 3,
                                    .n_buffers = 2,
                                    .buffers = t->buffers,
                                    .release = array_release};
    t->columns[0] = &t->column;
    t->batch.data.device_type = ARROW_DEVICE_CPU;
    t->batch.data.array = (struct ArrowArray){.length = 3,
                                              .n_buffers = 1,
                                              .buffers = t->no_buffers,
                                              .n_children = 1,
                                              .children = t->columns,
                                              .release = array_release};
    t->field = (struct ArrowSchema){
        .format = "i", .name = "a,b", .release = schema_release};
    t->fields[0] = &t->field;
    t->schema = (struct ArrowSchema){.format = "+s",
                                     .name = "",
                                     .n_children = 1,
                                     .children = t->fields,
                                     .release = schema_release};
}

START_TEST(a_batch_becomes_one_text_and_its_number_of_rows)
{
    struct table t;
    struct uva_map map = {0};
    struct ArrowSchema schema = {0};
    struct ArrowDeviceArray out = {0};
    struct uva_error error = {0};
    struct uva__lines lines;

    table_init(&t);
    ck_assert_int_eq(uva__lines_map(&csv, &map), 0);
    ck_assert_int_eq(map.schema(map.ctx, &t.schema, &schema, &error), 0);
    ck_assert_str_eq(uva__lines_header(&schema), "\"a,b\"\n");
    ck_assert_int_eq(map.batch(map.ctx, &t.batch, &out, &error), 0);
    lines = uva__lines_read(&out.array);
    ck_assert_uint_eq(lines.size, 6);
    ck_assert_mem_eq(lines.data, "7\n8\n9\n", 6);
    ck_assert_int_eq(lines.rows, 3);
    ck_assert_int_eq(out.device_type, ARROW_DEVICE_CPU);
    map.free_ctx(map.ctx); /* the batch may outlive the stage */
    uva_array_release(&out);
    uva_schema_release(&schema);
    ck_assert(!uva_array_is_live(&out) && !uva_schema_is_live(&schema));
}
END_TEST

START_TEST(what_comes_out_fits_its_schema)
{
    struct table t;
    struct uva_map map = {0};
    struct ArrowSchema schema = {0};
    struct ArrowDeviceArray out = {0};
    int64_t size = 0;

    table_init(&t);
    ck_assert_int_eq(uva__lines_map(&csv, &map), 0);
    ck_assert_int_eq(map.schema(map.ctx, &t.schema, &schema, NULL), 0);
    ck_assert_int_eq(map.batch(map.ctx, &t.batch, &out, NULL), 0);
    ck_assert_int_eq(uva_array_size(&schema, &out, &size), 0);
    ck_assert_int_ge(size, 6 + 2 * 8 + 8);
    uva_array_release(&out);
    uva_schema_release(&schema);
    map.free_ctx(map.ctx);
}
END_TEST

START_TEST(a_type_that_text_cannot_hold_fails_with_the_schema)
{
    struct table t;
    struct uva_map map = {0};
    struct ArrowSchema schema = {0};
    struct uva_error error = {0};

    table_init(&t);
    t.field.format = "strange";
    ck_assert_int_eq(uva__lines_map(&csv, &map), 0);
    ck_assert_int_eq(map.schema(map.ctx, &t.schema, &schema, &error), ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "'a,b'"));
    map.free_ctx(map.ctx);
}
END_TEST

START_TEST(a_batch_that_does_not_fit_gives_nothing)
{
    struct table t;
    struct uva_map map = {0};
    struct ArrowSchema schema = {0};
    struct ArrowDeviceArray out = {0};

    table_init(&t);
    ck_assert_int_eq(uva__lines_map(&csv, &map), 0);
    ck_assert_int_eq(map.schema(map.ctx, &t.schema, &schema, NULL), 0);
    t.column.n_buffers = 1;
    ck_assert_int_eq(map.batch(map.ctx, &t.batch, &out, NULL), EINVAL);
    uva_schema_release(&schema);
    map.free_ctx(map.ctx);
}
END_TEST

int main(void)
{
    TCase *stage = tcase_create("stage");

    tcase_add_test(stage, a_batch_becomes_one_text_and_its_number_of_rows);
    tcase_add_test(stage, what_comes_out_fits_its_schema);
    tcase_add_test(stage, a_type_that_text_cannot_hold_fails_with_the_schema);
    tcase_add_test(stage, a_batch_that_does_not_fit_gives_nothing);
    return suite_main("lines", NULL, NULL, stage, NULL);
}
