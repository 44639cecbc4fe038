/* SPDX-License-Identifier: Apache-2.0 */
/* Joining arrays: arrays that are refused, arrays that do not fit into one,
 * memory that runs out, and children that outlive the rest. Whether the values
 * are right is tested with Arrow C++, in tests/interop. */
#include "arrow/concat.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/layout.h"
#include "arrow/share.h"
#include "arrow/slice.h"
#include "arrow/structs.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_allocator.h"
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

/* ---- schemas ------------------------------------------------------------ */

static int new_code(struct ArrowSchema *schema)
{
    struct uva__concat *concat = NULL;
    const int code = uva__concat_new(&allocator, schema, &concat);

    ck_assert((concat != NULL) == (code == 0));
    uva__concat_free(concat);
    if (schema->release != NULL)
        schema->release(schema);
    return code;
}

/* Makes a schema of `format` with up to two children of the formats `first` and
 * `second`; may be NULL. */
static struct ArrowSchema schema_of(const char *format, const char *first,
                                    const char *second)
{
    struct ArrowSchema schema;

    plain_schema(&schema, format, "", (first != NULL) + (second != NULL));
    if (first != NULL)
        plain_schema(schema.children[0], first, "", 0);
    if (second != NULL)
        plain_schema(schema.children[1], second, "", 0);
    return schema;
}

START_TEST(schemas_are_checked)
{
    static const struct {
        const char *format, *first, *second;
        int code;
    } cases[] = {
        {"i", NULL, NULL, 0},        {"?", NULL, NULL, ENOTSUP},
        {"d:x", NULL, NULL, EINVAL}, {"i", "i", NULL, EINVAL},
        {"+l", NULL, NULL, EINVAL},  {"+r", "i", "u", 0},
        {"+r", "u", "u", EINVAL},    {"+r", "tdD", "u", EINVAL},
        {"+ud:5,3", "i", "u", 0},    {"+ud:5", "i", "u", EINVAL},
        {"+s", "?", "i", ENOTSUP},   {"+s", "i", "?", ENOTSUP},
    };
    struct ArrowSchema schema;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        schema = schema_of(cases[i].format, cases[i].first, cases[i].second);
        ck_assert_int_eq(new_code(&schema), cases[i].code);
        ck_assert_int_eq(new_code(&schema), EINVAL); /* released */
    }
    schema = schema_of("u", NULL, NULL);
    plain_schema(plain_schema_dictionary(&schema), "i", "", 0);
    ck_assert_int_eq(new_code(&schema), EINVAL);
}
END_TEST

/* Schemas that the test owns: they are not released. */
static void schema_keep(struct ArrowSchema *schema)
{
    (void)schema;
}

static int children_code(int64_t n_children, struct ArrowSchema **children)
{
    const struct ArrowSchema schema = {.format = "+s",
                                       .n_children = n_children,
                                       .children = children,
                                       .release = schema_keep};
    struct uva__concat *concat;

    return uva__concat_new(&allocator, &schema, &concat);
}

START_TEST(schemas_of_an_impossible_shape_are_refused)
{
    struct ArrowSchema leaf = {.format = "n", .release = schema_keep};
    struct ArrowSchema endless = {
        .format = "+s", .n_children = 1, .release = schema_keep};
    struct ArrowSchema *none_first[] = {NULL, &leaf};
    struct ArrowSchema *itself[] = {&endless};
    struct ArrowSchema **many =
        calloc(UVA__STRUCTS_MAX_NODES, sizeof(struct ArrowSchema *));

    endless.children = itself;
    ck_assert_ptr_nonnull(many);
    for (int i = 0; i < UVA__STRUCTS_MAX_NODES; i++)
        many[i] = &leaf;
    ck_assert_int_eq(children_code(-1, NULL), EINVAL);
    ck_assert_int_eq(children_code(1, NULL), EINVAL);
    ck_assert_int_eq(children_code(2, none_first), EINVAL);
    ck_assert_int_eq(children_code(1, itself), EINVAL); /* too deep */
    ck_assert_int_eq(children_code(UVA__STRUCTS_MAX_NODES, many), EINVAL);
    free(many);
}
END_TEST

/* ---- arrays that are wrong ---------------------------------------------- */

/* A node to measure: its buffers and its children's. */
struct sample {
    struct ArrowSchema schema;
    struct ArrowArray array;
};

static void sample_make(struct sample *s, const char *format, int64_t length,
                        int n_buffers, const void *const *buffers)
{
    const int children =
        s->schema.release != NULL ? (int)s->schema.n_children : 0;

    if (s->schema.release == NULL)
        plain_schema(&s->schema, format, "", 0);
    plain_array(&s->array, length, n_buffers, children);
    for (int i = 0; i < n_buffers; i++)
        s->array.buffers[i] = buffers[i];
}

/* Measures rows of the sample `times` times; ends it. */
static int sample_measure(struct sample *s, int64_t from, int64_t count,
                          int times)
{
    struct uva__concat *concat;
    int code = uva__concat_new(&allocator, &s->schema, &concat);

    ck_assert_int_eq(code, 0);
    uva__concat_reset(concat);
    while (code == 0 && times-- > 0)
        code = uva__concat_measure(concat, &s->array, from, count);
    uva__concat_free(concat);
    s->array.release(&s->array);
    s->schema.release(&s->schema);
    return code;
}

static int64_t view_of(int32_t length, int32_t buffer, int32_t offset,
                       int32_t *view)
{
    memset(view, 0, 16);
    view[0] = length;
    view[2] = buffer;
    view[3] = offset;
    return 1;
}

START_TEST(views_must_lie_in_a_buffer)
{
    static const char data[64];
    static const int64_t sizes[] = {64};
    static const struct {
        int32_t length, buffer, offset;
        int code;
    } cases[] = {{12, 9, 99, 0},      {13, 0, 51, 0},
                 {13, 0, 52, EINVAL}, {13, 1, 0, EINVAL},
                 {13, -1, 0, EINVAL}, {13, 0, -1, EINVAL},
                 {-1, 0, 0, EINVAL},  {INT32_MAX, 0, 60, EINVAL}};
    int32_t view[4];
    const void *buffers[] = {NULL, view, data, sizes};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sample s = {.schema = {.release = NULL}};

        (void)view_of(cases[i].length, cases[i].buffer, cases[i].offset, view);
        sample_make(&s, "vu", 1, 4, buffers);
        ck_assert_int_eq(sample_measure(&s, 0, 1, 1), cases[i].code);
    }
    buffers[3] = NULL;
    (void)view_of(13, 0, 0, view);
    for (int i = 2; i < 4; i++) {
        struct sample s = {.schema = {.release = NULL}};

        sample_make(&s, "vu", 1, 4, buffers);
        ck_assert_int_eq(sample_measure(&s, 0, 1, 1), EINVAL);
        buffers[3] = sizes;
        buffers[2] = NULL;
    }
}
END_TEST

/* Makes a sample with one child of numbers, or two. */
static void sample_nested(struct sample *s, const char *format,
                          const char *child, int children, int64_t length,
                          int n_buffers, const void *const *buffers)
{
    *s = (struct sample){
        .schema = schema_of(format, child, children > 1 ? child : NULL)};
    sample_make(s, format, length, n_buffers, buffers);
}

static void child_make(struct sample *s, int i, int64_t length,
                       const void *values)
{
    plain_array(s->array.children[i], length, 2, 0);
    s->array.children[i]->buffers[1] = values;
}

START_TEST(offsets_of_lists_must_lie_in_the_items)
{
    static const int32_t offsets[][3] = {
        {0, 1, 2}, {0, 1, 5}, {-1, 0, 1}, {1, 0, 1}, {0, 3, 1}};
    static const int codes[] = {0, EINVAL, EINVAL, EINVAL, EINVAL};
    static const int32_t items[4];

    for (size_t i = 0; i < 5; i++) {
        const void *const buffers[] = {NULL, offsets[i]};
        struct sample s;

        sample_nested(&s, "+l", "i", 1, 2, 2, buffers);
        child_make(&s, 0, 4, items);
        /* the last of them only where a part is taken */
        ck_assert_int_eq(sample_measure(&s, 0, i == 1 ? 2 : 1, 1), codes[i]);
    }
}
END_TEST

START_TEST(views_of_lists_must_lie_in_the_items)
{
    static const int32_t cases[][3] = {/* offset, size, code */
                                       {0, 4, 0},
                                       {99, 0, 0},
                                       {1, 4, EINVAL},
                                       {-1, 2, EINVAL},
                                       {0, -1, EINVAL}};
    static const int32_t items[4];

    for (size_t i = 0; i < 5; i++) {
        const void *const buffers[] = {NULL, &cases[i][0], &cases[i][1]};
        struct sample s;

        sample_nested(&s, "+vl", "i", 1, 1, 3, buffers);
        child_make(&s, 0, 4, items);
        ck_assert_int_eq(sample_measure(&s, 0, 1, 1), cases[i][2]);
    }
}
END_TEST

START_TEST(views_of_large_lists_must_not_overflow)
{
    static const int64_t cases[][3] = {/* offset, size, code */
                                       {0, 4, 0},
                                       {INT64_MAX - 1, 1, EINVAL},
                                       {INT64_MAX, 1, EINVAL}};
    static const int32_t items[4];

    for (int i = 0; i < 3; i++) {
        const void *const buffers[] = {NULL, &cases[i][0], &cases[i][1]};
        struct sample s;

        sample_nested(&s, "+vL", "i", 1, 1, 3, buffers);
        child_make(&s, 0, 4, items);
        ck_assert_int_eq(sample_measure(&s, 0, 1, 1), cases[i][2]);
    }
}
END_TEST

START_TEST(items_of_dense_unions_must_exist)
{
    static const struct {
        int8_t id;
        int32_t offset;
        int code;
    } cases[] = {
        {5, 3, 0},       {3, 0, 0},       {5, 4, EINVAL},        {4, 0, EINVAL},
        {-1, 0, EINVAL}, {3, -1, EINVAL}, {3, INT32_MAX, EINVAL}};
    static const int32_t items[4];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const void *const buffers[] = {&cases[i].id, &cases[i].offset};
        struct sample s;

        sample_nested(&s, "+ud:5,3", "i", 2, 1, 2, buffers);
        child_make(&s, 0, 4, items);
        child_make(&s, 1, 4, items);
        ck_assert_int_eq(sample_measure(&s, 0, 1, 1), cases[i].code);
    }
}
END_TEST

START_TEST(runs_must_cover_the_rows)
{
    static const int32_t ends[][2] = {{2, 4}, {2, 3}, {4, 2}};
    static const int codes[] = {0, EINVAL, EINVAL};

    for (int i = 0; i < 3; i++) {
        struct sample s;

        sample_nested(&s, "+r", "i", 2, 4, 0, NULL);
        child_make(&s, 0, 2, ends[i]);
        child_make(&s, 1, 2, ends[i]);
        ck_assert_int_eq(sample_measure(&s, 0, 4, 1), codes[i]);
    }
}
END_TEST

START_TEST(children_must_be_long_enough)
{
    static const char *const formats[] = {"+s", "+w:2", "+us:0"};
    static const int64_t needs[] = {3, 6, 3};
    static const int8_t ids[3];
    static const int32_t items[8];

    for (int i = 0; i < 6; i++) {
        const void *const buffers[] = {i / 2 == 2 ? ids : NULL};
        struct sample s;

        sample_nested(&s, formats[i / 2], "i", 1, 3, 1, buffers);
        child_make(&s, 0, needs[i / 2] - i % 2, items);
        ck_assert_int_eq(sample_measure(&s, 0, 3, 1), i % 2 == 0 ? 0 : EINVAL);
    }
}
END_TEST

START_TEST(lists_of_a_fixed_size_must_not_overflow)
{
    static const int64_t rows[] = {0, 1, INT64_C(1) << 40};

    for (int i = 0; i < 6; i++) {
        const void *const buffers[] = {NULL};
        const bool has_items = i % 2 == 1;
        struct sample s;

        sample_nested(&s, has_items ? "+w:2147483647" : "+w:0", "n", 1,
                      rows[i / 2], 1, buffers);
        plain_array(s.array.children[0], INT32_MAX, 0, 0);
        ck_assert_int_eq(sample_measure(&s, 0, rows[i / 2], 1),
                         has_items && i / 2 == 2 ? EINVAL : 0);
    }
}
END_TEST

/* ---- arrays that do not fit into one ------------------------------------ */

/* The sizes are claimed; measuring does not read the data. */
START_TEST(more_than_the_offsets_can_count_does_not_fit)
{
    static const int32_t offsets[] = {0, INT32_MAX};
    static const int64_t wide[] = {0, PTRDIFF_MAX / 4};
    const void *const narrow_buffers[] = {NULL, offsets, "x"};
    const void *const wide_buffers[] = {NULL, wide, "x"};
    struct sample s = {.schema = {.release = NULL}};

    sample_make(&s, "u", 1, 3, narrow_buffers);
    ck_assert_int_eq(sample_measure(&s, 0, 1, 1), 0);
    sample_make(&s, "u", 1, 3, narrow_buffers);
    ck_assert_int_eq(sample_measure(&s, 0, 1, 2), EOVERFLOW);
    sample_make(&s, "U", 1, 3, wide_buffers);
    ck_assert_int_eq(sample_measure(&s, 0, 1, 1), 0);
    sample_make(&s, "U", 1, 3, wide_buffers);
    ck_assert_int_eq(sample_measure(&s, 0, 1, 2), EOVERFLOW);
    sample_make(&s, "n", PTRDIFF_MAX / 64, 0, NULL);
    ck_assert_int_eq(sample_measure(&s, 0, PTRDIFF_MAX / 64, 1), 0);
    sample_make(&s, "n", PTRDIFF_MAX / 64, 0, NULL);
    ck_assert_int_eq(sample_measure(&s, 0, PTRDIFF_MAX / 64, 2), EOVERFLOW);
}
END_TEST

START_TEST(a_string_without_data_is_an_error)
{
    static const int32_t offsets[] = {0, 1};
    const void *const buffers[] = {NULL, offsets, NULL};
    struct sample s = {.schema = {.release = NULL}};

    sample_make(&s, "u", 1, 3, buffers);
    ck_assert_int_eq(sample_measure(&s, 0, 1, 1), EINVAL);
}
END_TEST

START_TEST(one_column_that_does_not_fit_is_enough)
{
    static const int32_t offsets[] = {0, INT32_MAX};
    const void *const none[] = {NULL};

    for (int times = 1; times <= 2; times++) {
        struct sample s;

        sample_nested(&s, "+s", "u", 2, 1, 1, none);
        for (int i = 0; i < 2; i++) {
            plain_array(s.array.children[i], 1, 3, 0);
            s.array.children[i]->buffers[1] = offsets;
            s.array.children[i]->buffers[2] = "x";
        }
        ck_assert_int_eq(sample_measure(&s, 0, 1, times),
                         times == 1 ? 0 : EOVERFLOW);
    }
}
END_TEST

START_TEST(more_items_than_offsets_can_count_do_not_fit)
{
    static const int32_t offsets[] = {0, INT32_MAX};
    const void *const buffers[] = {NULL, offsets};

    for (int times = 1; times <= 2; times++) {
        struct sample s;

        sample_nested(&s, "+l", "n", 1, 1, 2, buffers);
        plain_array(s.array.children[0], INT32_MAX, 0, 0);
        ck_assert_int_eq(sample_measure(&s, 0, 1, times),
                         times == 1 ? 0 : EOVERFLOW);
    }
}
END_TEST

START_TEST(more_items_than_a_dense_union_can_count_do_not_fit)
{
    static const int8_t ids[2];
    static const int32_t offsets[] = {0, INT32_MAX - 1};
    const void *const buffers[] = {ids, offsets};

    for (int times = 1; times <= 2; times++) {
        struct sample s;

        sample_nested(&s, "+ud:0", "n", 1, 2, 2, buffers);
        plain_array(s.array.children[0], INT32_MAX, 0, 0);
        ck_assert_int_eq(sample_measure(&s, 0, 2, times),
                         times == 1 ? 0 : EOVERFLOW);
    }
}
END_TEST

START_TEST(more_strings_than_a_buffer_of_views_holds_do_not_fit)
{
    static const int64_t sizes[] = {INT32_MAX};
    int32_t view[4];
    const void *const buffers[] = {NULL, view, "x", sizes};

    (void)view_of(INT32_MAX, 0, 0, view);
    for (int times = 1; times <= 2; times++) {
        struct sample s = {.schema = {.release = NULL}};

        sample_make(&s, "vz", 1, 4, buffers);
        ck_assert_int_eq(sample_measure(&s, 0, 1, times),
                         times == 1 ? 0 : EOVERFLOW);
    }
}
END_TEST

START_TEST(more_rows_than_run_ends_can_count_do_not_fit)
{
    static const int16_t end = INT16_MAX;

    for (int times = 1; times <= 2; times++) {
        struct sample s;

        sample_nested(&s, "+r", "s", 2, INT16_MAX, 0, NULL);
        child_make(&s, 0, 1, &end);
        child_make(&s, 1, 1, &end);
        ck_assert_int_eq(sample_measure(&s, 0, INT16_MAX, times),
                         times == 1 ? 0 : EOVERFLOW);
    }
}
END_TEST

/* Two dictionaries of `values` each, indexed by `format`. Returns the code of
 * the second measurement. */
static int two_dictionaries(const char *format, int64_t values)
{
    static const int64_t zero;
    struct ArrowSchema schema = schema_of(format, NULL, NULL);
    struct uva__concat *concat;
    struct ArrowArray arrays[2];
    int code = 0;

    plain_schema(plain_schema_dictionary(&schema), "n", "", 0);
    ck_assert_int_eq(uva__concat_new(&allocator, &schema, &concat), 0);
    uva__concat_reset(concat);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(code, 0);
        plain_array(&arrays[i], 1, 2, 0);
        arrays[i].buffers[1] = &zero;
        plain_array(plain_array_dictionary(&arrays[i]), values + i, 0, 0);
        code = uva__concat_measure(concat, &arrays[i], 0, 1);
    }
    for (int i = 0; i < 2; i++)
        arrays[i].release(&arrays[i]);
    uva__concat_free(concat);
    schema.release(&schema);
    return code;
}

START_TEST(more_values_than_an_index_can_count_do_not_fit)
{
    static const struct {
        const char *format;
        int64_t most; /* of both dictionaries together */
    } cases[] = {{"c", 128},   {"C", 256},       {"s", 32768},
                 {"S", 65536}, {"i", 1LL << 31}, {"I", 1LL << 32}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int64_t half = cases[i].most / 2;

        ck_assert_int_eq(two_dictionaries(cases[i].format, half - 1), 0);
        ck_assert_int_eq(two_dictionaries(cases[i].format, half), EOVERFLOW);
    }
    ck_assert_int_eq(two_dictionaries("l", 1LL << 40), 0);
}
END_TEST

/* ---- results ------------------------------------------------------------ */

/* Joins an array of every type with itself. The values are arbitrary, so
 * types with values that refer to something may be refused. */
START_TEST(every_type_is_joined_to_the_size_that_was_measured)
{
    const struct every_variant variant = {20, 3 * (_i % 2), _i / 2 % 2 == 0};
    struct ArrowDeviceArray array, out = {.device_type = ARROW_DEVICE_CPU};
    struct ArrowSchema schema;
    struct uva__concat *concat;
    int64_t size;
    int code = 0;

    every_type(_i / 4, &variant, &schema, &array);
    ck_assert_int_eq(uva__concat_new(&allocator, &schema, &concat), 0);
    uva__concat_reset(concat);
    for (int i = 0; i < 3 && code == 0; i++)
        code = uva__concat_measure(concat, &array.array, i, 10);
    if (code == 0) {
        ck_assert_int_eq(uva__concat_begin(concat), 0);
        for (int64_t pass = 0; pass < uva__concat_passes(concat); pass++)
            for (int i = 0; i < 3; i++)
                uva__concat_fill(concat, pass, &array.array, i, 10);
        uva__concat_finish(concat, &out.array);
        ck_assert_int_eq(uva__layout_measure(&schema, &out, &size, NULL), 0);
        ck_assert_int_eq(size, uva__concat_bytes(concat));
        ck_assert_int_eq(out.array.length, 30);
        out.array.release(&out.array);
    } else {
        ck_assert_int_eq(code, EINVAL);
    }
    uva__concat_free(concat);
    uva_array_release(&array);
    schema.release(&schema);
}
END_TEST

static void rows_make(struct ArrowArray *array)
{
    static const int32_t values[] = {1, 2, 3, 4};
    static const int8_t indices[] = {0, 1, 0, 1};

    plain_array(array, 4, 1, 2);
    plain_array(array->children[0], 4, 2, 0);
    array->children[0]->buffers[1] = values;
    plain_array(array->children[1], 4, 2, 0);
    array->children[1]->buffers[1] = indices;
    plain_array(plain_array_dictionary(array->children[1]), 2, 2, 0);
    array->children[1]->dictionary->buffers[1] = values;
}

static struct ArrowSchema rows_schema(void)
{
    struct ArrowSchema schema = schema_of("+s", "i", "c");

    plain_schema(plain_schema_dictionary(schema.children[1]), "i", "", 0);
    return schema;
}

/* Joins three rows and one, with the `fail_at`-th allocation failing. */
static int rows_join(long fail_at, struct ArrowArray *out)
{
    struct ArrowSchema schema = rows_schema();
    struct uva__concat *concat;
    struct ArrowArray array;
    int code;

    rows_make(&array);
    faulty_allocator_init(&memory, fail_at);
    code = uva__concat_new(&allocator, &schema, &concat);
    if (code == 0) {
        uva__concat_reset(concat);
        ck_assert_int_eq(uva__concat_measure(concat, &array, 1, 3), 0);
        ck_assert_int_eq(uva__concat_measure(concat, &array, 0, 1), 0);
        code = uva__concat_begin(concat);
    }
    if (code == 0) {
        for (int64_t pass = 0; pass < uva__concat_passes(concat); pass++) {
            uva__concat_fill(concat, pass, &array, 1, 3);
            uva__concat_fill(concat, pass, &array, 0, 1);
        }
        uva__concat_finish(concat, out);
    }
    if (fail_at != 1)
        uva__concat_free(concat);
    array.release(&array);
    schema.release(&schema);
    return code;
}

START_TEST(memory_may_run_out)
{
    struct ArrowArray out;

    ck_assert_int_eq(rows_join(1, &out), ENOMEM);
    ck_assert_int_eq(rows_join(2, &out), ENOMEM);
    ck_assert_int_eq(rows_join(3, &out), 0);
    out.release(&out);
    uva__concat_free(NULL);
}
END_TEST

START_TEST(a_child_that_was_moved_out_outlives_the_rest)
{
    static const int32_t joined[] = {2, 3, 4, 1};
    struct ArrowArray out, child, values;

    ck_assert_int_eq(rows_join(0, &out), 0);
    child = *out.children[1];
    out.children[1]->release = NULL;
    values = *child.dictionary;
    child.dictionary->release = NULL;
    ck_assert_mem_eq(out.children[0]->buffers[1], joined, sizeof(joined));
    out.release(&out);
    ck_assert_int_eq(faulty_allocator_live(&memory), 1);
    child.release(&child);
    ck_assert_mem_eq(values.buffers[1], ((const int32_t[]){1, 2}), 8);
    ck_assert_int_eq(values.length, 2); /* one dictionary, not two */
    values.release(&values);
}
END_TEST

/* Joins the rows of `first` with the rows of `second`. */
static struct ArrowArray join(const struct ArrowSchema *schema,
                              const struct ArrowArray *first,
                              const struct ArrowArray *second)
{
    struct uva__concat *concat;
    struct ArrowArray out;

    ck_assert_int_eq(uva__concat_new(&allocator, schema, &concat), 0);
    uva__concat_reset(concat);
    ck_assert_int_eq(uva__concat_measure(concat, first, 0, first->length), 0);
    ck_assert_int_eq(uva__concat_measure(concat, second, 0, second->length), 0);
    ck_assert_int_eq(uva__concat_begin(concat), 0);
    for (int64_t pass = 0; pass < uva__concat_passes(concat); pass++) {
        uva__concat_fill(concat, pass, first, 0, first->length);
        uva__concat_fill(concat, pass, second, 0, second->length);
    }
    uva__concat_finish(concat, &out);
    uva__concat_free(concat);
    return out;
}

/* Joins the array of a sample with itself; ends the sample. */
static struct ArrowArray sample_join(struct sample *s)
{
    const struct ArrowArray out = join(&s->schema, &s->array, &s->array);

    s->array.release(&s->array);
    s->schema.release(&s->schema);
    return out;
}

/* Two indices into the first three rows of rows_make(). */
static void indices_make(struct ArrowArray *array)
{
    static const int8_t indices[] = {2, 0};

    plain_array(array, 2, 2, 0);
    array->buffers[1] = indices;
    rows_make(plain_array_dictionary(array));
    array->dictionary->length = 3;
}

START_TEST(dictionaries_are_joined_unless_they_are_the_same)
{
    static const int32_t other[] = {5, 6, 7, 8};
    static const unsigned char bits = 7;
    static const int8_t once[] = {2, 0, 2, 0}, twice[] = {2, 0, 5, 3};
    struct ArrowSchema schema = schema_of("c", NULL, NULL);
    struct ArrowArray first, second, out, *values;

    *plain_schema_dictionary(&schema) = rows_schema();
    for (int i = 0; i < 6; i++) {
        const int64_t length = i == 0 ? 3 : i == 1 ? 7 : 6;

        indices_make(&first);
        indices_make(&second);
        values = second.dictionary;
        values->length += i == 1;
        values->offset += i == 2;
        values->buffers[0] = i == 3 ? &bits : NULL;
        if (i == 4)
            values->children[0]->buffers[1] = other;
        if (i == 5)
            values->children[1]->dictionary->buffers[1] = other;
        out = join(&schema, &first, &second);
        ck_assert_int_eq(out.dictionary->length, length);
        ck_assert_mem_eq(out.buffers[1], i == 0 ? once : twice, 4);
        out.release(&out);
        first.release(&first);
        second.release(&second);
    }
    schema.release(&schema);
}
END_TEST

START_TEST(dictionaries_of_views_may_have_different_numbers_of_buffers)
{
    static const int64_t sizes[] = {1};
    static const int8_t zero;
    struct ArrowSchema schema = schema_of("c", NULL, NULL);
    struct ArrowArray arrays[2], out;
    int32_t view[4];

    plain_schema(plain_schema_dictionary(&schema), "vu", "", 0);
    (void)view_of(1, 'a', 0, view);
    for (int i = 0; i < 2; i++) {
        plain_array(&arrays[i], 1, 2, 0);
        arrays[i].buffers[1] = &zero;
        plain_array(plain_array_dictionary(&arrays[i]), 1, 4 - i, 0);
        arrays[i].dictionary->buffers[1] = view;
    }
    arrays[0].dictionary->buffers[3] = sizes;
    out = join(&schema, &arrays[0], &arrays[1]);
    ck_assert_mem_eq(out.buffers[1], "\0\1", 2);
    ck_assert_int_eq(out.dictionary->length, 2);
    for (int i = 0; i < 2; i++)
        arrays[i].release(&arrays[i]);
    out.release(&out);
    schema.release(&schema);
}
END_TEST

START_TEST(values_without_bytes_are_joined)
{
    const void *const buffers[] = {NULL, NULL};
    struct sample s = {.schema = {.release = NULL}};
    struct ArrowArray out;

    sample_make(&s, "w:0", 3, 2, buffers);
    out = sample_join(&s);
    ck_assert_int_eq(out.length, 6);
    out.release(&out);
}
END_TEST

START_TEST(without_a_bitmap_nothing_is_null)
{
    static const int32_t values[] = {1, 2}, joined[] = {1, 2, 1, 2};
    const void *const buffers[] = {NULL, values};
    struct sample s = {.schema = {.release = NULL}};
    struct ArrowArray out;

    sample_make(&s, "i", 2, 2, buffers);
    s.array.null_count = -1;
    out = sample_join(&s);
    ck_assert_int_eq(out.null_count, 0);
    ck_assert_ptr_null(out.buffers[0]);
    ck_assert_mem_eq(out.buffers[1], joined, sizeof(joined));
    out.release(&out);
}
END_TEST

/* Of each member only the items that the rows refer to are copied. */
START_TEST(rows_of_a_dense_union_may_refer_back)
{
    static const int8_t ids[] = {5, 3, 5, 5};
    static const int32_t offsets[] = {2, 0, 1, 2}, items[] = {6, 7, 8, 9};
    static const int32_t joined[] = {1, 0, 0, 1, 3, 1, 2, 3};
    static const int32_t copied[] = {7, 8, 7, 8};
    const void *const buffers[] = {ids, offsets};
    struct ArrowArray out;
    struct sample s;

    sample_nested(&s, "+ud:5,3", "i", 2, 4, 2, buffers);
    child_make(&s, 0, 4, items);
    child_make(&s, 1, 4, items);
    out = sample_join(&s);
    ck_assert_mem_eq(out.buffers[1], joined, sizeof(joined));
    ck_assert_int_eq(out.children[0]->length, 4);
    ck_assert_mem_eq(out.children[0]->buffers[1], copied, sizeof(copied));
    ck_assert_int_eq(out.children[1]->length, 2);
    out.release(&out);
}
END_TEST

/* ---- batches that are noted --------------------------------------------- */

/* A part with room for two columns. */
struct note {
    struct uva__concat_part part;
    const char *values[2];
};

static bool note(const struct uva__concat *concat,
                 const struct ArrowArray *array, struct note *out)
{
    *out = (struct note){.part = {.values = out->values}};
    return uva__concat_note(concat, array, &out->part);
}

/* Five rows of numbers at offset 1, in columns with offsets 0 and 2. */
static void numbers_make(struct ArrowArray *array)
{
    static const int32_t wide[] = {9, 1, 2, 3, 4, 5};
    static const int8_t narrow[] = {9, 9, 9, 6, 7, 8, 9, 10};

    plain_array(array, 5, 1, 2);
    plain_array(array->children[0], 6, 2, 0);
    plain_array(array->children[1], 6, 2, 0);
    array->offset = 1;
    array->children[0]->buffers[1] = wide;
    array->children[1]->buffers[1] = narrow;
    array->children[1]->offset = 2;
}

/* A batch, of which rows were passed on before, and the begin of another. */
START_TEST(noted_batches_are_joined_from_their_first_row_on)
{
    static const int32_t wide[] = {3, 4, 5, 1, 2};
    static const int8_t narrow[] = {8, 9, 10, 6, 7};
    struct ArrowSchema schema = schema_of("+s", "i", "c");
    struct ArrowArray array, out;
    struct uva__list parts = {0};
    struct uva__concat *concat;
    struct note notes[2];

    faulty_allocator_init(&memory, 3);
    numbers_make(&array);
    array.null_count = array.children[0]->null_count = -1; /* without bitmap */
    ck_assert_int_eq(uva__concat_new(&allocator, &schema, &concat), 0);
    ck_assert_uint_eq(uva__concat_columns(concat), 2);
    ck_assert_int_eq(uva__concat_measure(concat, &array, 0, 5), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert(note(concat, &array, &notes[i]));
        ck_assert_int_eq(notes[i].part.rows, 5);
        uva__list_push(&parts, &notes[i].part.link);
    }
    notes[0].part.from = 2;
    notes[0].part.rows = 3;
    ck_assert_int_eq(uva__concat_join(concat, &parts, 5, &out), 0);
    ck_assert_int_eq(uva__concat_bytes(concat), 0); /* all is forgotten */
    ck_assert_int_eq(out.length, 5);
    ck_assert_int_eq(out.null_count, 0);
    ck_assert_ptr_null(out.children[0]->buffers[0]);
    ck_assert_int_eq(out.children[1]->length, 5);
    ck_assert_mem_eq(out.children[0]->buffers[1], wide, sizeof(wide));
    ck_assert_mem_eq(out.children[1]->buffers[1], narrow, sizeof(narrow));
    out.release(&out);
    ck_assert_int_eq(uva__concat_join(concat, &parts, 5, &out), ENOMEM);
    uva__concat_free(concat);
    array.release(&array);
    schema.release(&schema);
}
END_TEST

/* Ways to have a batch that is not noted; the first two are no such way. */
static void numbers_spoil(struct ArrowArray *array, int way)
{
    static const unsigned char bits = 0xff;

    if (way == 1 || way == 2)
        array->children[1]->buffers[0] = &bits;
    if (way == 2)
        array->children[1]->null_count = -1;
    if (way == 3)
        array->buffers[0] = &bits;
    if (way == 3)
        array->null_count = 1;
    if (way == 4)
        array->children[0]->length = 5;
    if (way == 5)
        array->length = array->children[0]->length =
            array->children[1]->length = (int64_t)INT32_MAX + 1;
}

START_TEST(a_batch_that_may_have_nulls_is_not_noted)
{
    struct ArrowSchema schema = schema_of("+s", "i", "c");
    struct uva__concat *concat;
    struct ArrowArray array;
    struct note noted;

    numbers_make(&array);
    numbers_spoil(&array, _i);
    ck_assert_int_eq(uva__concat_new(&allocator, &schema, &concat), 0);
    ck_assert(note(concat, &array, &noted) == (_i < 2));
    uva__concat_free(concat);
    array.release(&array);
    schema.release(&schema);
}
END_TEST

START_TEST(only_rows_of_numbers_have_columns_to_note)
{
    static const struct {
        const char *format, *first, *second;
        size_t columns;
    } cases[] = {
        {"+s", "i", NULL, 1},    {"+s", "tdD", "w:3", 2}, {"+s", "i", "u", 0},
        {"+s", "b", NULL, 0},    {"+s", "w:0", NULL, 0},  {"+s", "i", "n", 0},
        {"+s", NULL, NULL, 0},   {"i", NULL, NULL, 0},    {"+s", "+s", "i", 0},
        {"+us:1", "i", NULL, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ArrowSchema schema =
            schema_of(cases[i].format, cases[i].first, cases[i].second);
        struct uva__concat *concat;

        ck_assert_int_eq(uva__concat_new(&allocator, &schema, &concat), 0);
        ck_assert_uint_eq(uva__concat_columns(concat), cases[i].columns);
        uva__concat_free(concat);
        schema.release(&schema);
    }
}
END_TEST

/* A row has five bytes. */
START_TEST(noted_rows_are_held_to_a_limit)
{
    struct ArrowSchema schema = schema_of("+s", "i", "c");
    struct uva__concat *concat;

    ck_assert_int_eq(uva__concat_new(&allocator, &schema, &concat), 0);
    ck_assert(uva__concat_holds(concat, 4, 20));
    ck_assert(!uva__concat_holds(concat, 5, 20));
    ck_assert(uva__concat_holds(concat, PTRDIFF_MAX / 64 / 5, 0));
    ck_assert(!uva__concat_holds(concat, PTRDIFF_MAX / 64 / 5 + 1, 0));
    ck_assert(!uva__concat_holds(concat, INT64_MAX, INT64_MAX));
    uva__concat_free(concat);
    schema.release(&schema);
}
END_TEST

/* ---- slices ------------------------------------------------------------- */

START_TEST(the_offset_of_a_slice_goes_into_the_columns)
{
    struct ArrowSchema schema = rows_schema();
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_CPU}, out;

    rows_make(&array.array);
    array.array.null_count = -1; /* without a bitmap: no nulls */
    array.array.children[0]->null_count = 4;
    array.array.children[1]->null_count = 2;
    ck_assert_int_eq(uva__slice_array(&allocator, &schema, &array, 1, 2, &out),
                     0);
    ck_assert_int_eq(out.array.offset, 0);
    ck_assert_int_eq(out.array.length, 2);
    ck_assert_int_eq(out.array.children[0]->offset, 1);
    ck_assert_int_eq(out.array.children[0]->null_count, 2); /* all */
    ck_assert_int_eq(out.array.children[1]->null_count, -1);
    ck_assert_int_eq(array.array.children[0]->offset, 0);
    uva__slice_reduce(&schema, &out.array, 1, 1);
    ck_assert_int_eq(out.array.children[1]->offset, 2);
    uva__slice_reduce(&schema, &out.array, 1, 0);
    ck_assert_int_eq(out.array.children[1]->offset, 0);
    uva_array_release(&array);
    uva_array_release(&out);
    schema.release(&schema);
}
END_TEST

START_TEST(a_batch_without_a_place_for_a_bitmap_is_cut)
{
    struct ArrowSchema schema = rows_schema();
    struct ArrowArray array;

    rows_make(&array);
    array.n_buffers = 0;
    uva__slice_reduce(&schema, &array, 1, 2);
    ck_assert_int_eq(array.offset, 0);
    ck_assert_int_eq(array.children[0]->offset, 1);
    array.n_buffers = 1;
    array.release(&array);
    schema.release(&schema);
}
END_TEST

/* Its bits would belong to other rows; and its whole is known. */
START_TEST(a_bitmap_without_nulls_is_left_out_of_a_slice)
{
    static const unsigned char bits = 14; /* a row in front is null */
    struct ArrowSchema schema = rows_schema();
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_CPU}, out;

    rows_make(&array.array);
    array.array.buffers[0] = &bits;
    array.array.null_count = 0;
    array.array.offset = 1;
    array.array.length = 3;
    ck_assert_int_eq(uva__slice_array(&allocator, &schema, &array, 0, 2, &out),
                     0);
    ck_assert_int_eq(out.array.offset, 0);
    ck_assert_int_eq(out.array.children[0]->offset, 1);
    ck_assert_ptr_null(out.array.buffers[0]);
    ck_assert_ptr_nonnull(uva__array_share_whole(&out.array));
    ck_assert_ptr_null(uva__array_share_whole(out.array.children[0]));
    ck_assert_ptr_eq(array.array.buffers[0], &bits);
    uva_array_release(&array);
    uva_array_release(&out);
    schema.release(&schema);
}
END_TEST

/* Rows that may be null cannot give their bitmap to the columns. */
START_TEST(nullable_rows_keep_their_offset)
{
    static const unsigned char bits = 5;
    struct ArrowSchema schema = rows_schema();
    struct ArrowDeviceArray array = {.device_type = ARROW_DEVICE_CPU}, out;

    rows_make(&array.array);
    array.array.buffers[0] = &bits;
    array.array.null_count = 2;
    ck_assert_int_eq(uva__slice_array(&allocator, &schema, &array, 1, 2, &out),
                     0);
    ck_assert_int_eq(out.array.offset, 1);
    ck_assert_int_eq(out.array.children[0]->offset, 0);
    ck_assert_int_eq(out.array.children[0]->length, 3); /* to the last row */
    ck_assert_int_eq(array.array.children[0]->length, 4);
    uva__slice_reduce(&schema, &out.array, 1, 0);
    ck_assert_int_eq(out.array.children[0]->length, 0);
    uva_array_release(&array);
    uva_array_release(&out);
    faulty_allocator_init(&memory, 1);
    rows_make(&array.array);
    ck_assert_int_eq(uva__slice_array(&allocator, &schema, &array, 1, 2, &out),
                     ENOMEM);
    uva_array_release(&array);
    schema.release(&schema);
}
END_TEST

int main(void)
{
    TCase *results = tcase_create("results");

    suite_add_loops(results, 0, 4 * EVERY_TYPES,
                    every_type_is_joined_to_the_size_that_was_measured, NULL);
    suite_add_loops(results, 0, 6, a_batch_that_may_have_nulls_is_not_noted,
                    NULL);
    suite_add(results, noted_batches_are_joined_from_their_first_row_on,
              only_rows_of_numbers_have_columns_to_note,
              noted_rows_are_held_to_a_limit, memory_may_run_out,
              a_child_that_was_moved_out_outlives_the_rest,
              dictionaries_are_joined_unless_they_are_the_same,
              dictionaries_of_views_may_have_different_numbers_of_buffers,
              values_without_bytes_are_joined, without_a_bitmap_nothing_is_null,
              rows_of_a_dense_union_may_refer_back,
              the_offset_of_a_slice_goes_into_the_columns,
              a_batch_without_a_place_for_a_bitmap_is_cut,
              a_bitmap_without_nulls_is_left_out_of_a_slice,
              nullable_rows_keep_their_offset, NULL);
    return suite_main(
        "concat", set_up, tear_down,
        suite_tests("wrong", schemas_are_checked,
                    schemas_of_an_impossible_shape_are_refused,
                    views_must_lie_in_a_buffer,
                    offsets_of_lists_must_lie_in_the_items,
                    views_of_lists_must_lie_in_the_items,
                    views_of_large_lists_must_not_overflow,
                    items_of_dense_unions_must_exist, runs_must_cover_the_rows,
                    children_must_be_long_enough,
                    lists_of_a_fixed_size_must_not_overflow,
                    a_string_without_data_is_an_error, NULL),
        suite_tests("too many", more_than_the_offsets_can_count_does_not_fit,
                    one_column_that_does_not_fit_is_enough,
                    more_items_than_offsets_can_count_do_not_fit,
                    more_items_than_a_dense_union_can_count_do_not_fit,
                    more_strings_than_a_buffer_of_views_holds_do_not_fit,
                    more_rows_than_run_ends_can_count_do_not_fit,
                    more_values_than_an_index_can_count_do_not_fit, NULL),
        results, NULL);
}
