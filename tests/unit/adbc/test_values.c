/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a query: the row that is made of them, and the lists that are
 * refused; then queries with values on the fake driver, whose library uses the
 * counts of this program. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "adbc/values.h"
#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* ---- the row ------------------------------------------------------------ */

static const struct uva_value all[] = {
    {.type = UVA_VALUE_NULL},
    {.type = UVA_VALUE_BOOL, .integer = 1},
    {.type = UVA_VALUE_INT, .integer = INT64_MIN},
    {.type = UVA_VALUE_DOUBLE, .number = -0.5},
    {.type = UVA_VALUE_TEXT, .data = "text"},
    {.type = UVA_VALUE_TEXT, .data = "text", .size = 2},
    {.type = UVA_VALUE_TEXT, .data = ""},
    {.type = UVA_VALUE_BYTES, .data = "\0\1", .size = 2},
    {.type = UVA_VALUE_BYTES},
    {0}};

static void read_row(const struct uva_value *values, struct ArrowSchema *schema,
                     struct ArrowArray *row)
{
    struct ArrowArrayStream stream;
    struct ArrowArray end;

    ck_assert_int_eq(uva__values_check(values, NULL), 0);
    ck_assert_int_eq(uva__values_new(values, &stream), 0);
    ck_assert_int_eq(stream.get_schema(&stream, schema), 0);
    ck_assert_int_eq(stream.get_next(&stream, row), 0);
    ck_assert_int_eq(stream.get_next(&stream, &end), 0);
    ck_assert(end.release == NULL);
    ck_assert_ptr_null(stream.get_last_error(&stream));
    stream.release(&stream); /* the row outlives it */
}

static void column_has_bytes(const struct ArrowArray *column, const char *bytes,
                             int32_t size)
{
    const int32_t *offsets = column->buffers[1];

    ck_assert_int_eq(offsets[0], 0);
    ck_assert_int_eq(offsets[1], size);
    ck_assert_mem_eq(column->buffers[2], bytes, (size_t)size);
}

START_TEST(each_value_is_a_column_of_one_row)
{
    static const char *const formats[] = {"n", "b", "l", "g", "u",
                                          "u", "u", "z", "z"};
    struct ArrowSchema schema;
    struct ArrowArray row;
    struct ArrowDeviceArray whole;
    int64_t size;

    read_row(all, &schema, &row);
    ck_assert_str_eq(schema.format, "+s");
    ck_assert_int_eq(schema.n_children, COUNT(formats));
    ck_assert_int_eq(row.n_children, COUNT(formats));
    ck_assert_int_eq(row.length, 1);
    for (size_t i = 0; i < COUNT(formats); i++) {
        const char name[] = {(char)('1' + i), '\0'};

        ck_assert_str_eq(schema.children[i]->format, formats[i]);
        ck_assert_str_eq(schema.children[i]->name, name);
        ck_assert_int_eq(schema.children[i]->flags, ARROW_FLAG_NULLABLE);
        ck_assert_int_eq(row.children[i]->length, 1);
        ck_assert_int_eq(row.children[i]->null_count, i == 0 ? 1 : 0);
    }
    ck_assert_int_eq(*(const uint8_t *)row.children[1]->buffers[1], 1);
    ck_assert(*(const int64_t *)row.children[2]->buffers[1] == INT64_MIN);
    ck_assert(*(const double *)row.children[3]->buffers[1] == -0.5);
    column_has_bytes(row.children[4], "text", 4);
    column_has_bytes(row.children[5], "te", 2);
    column_has_bytes(row.children[6], "", 0);
    column_has_bytes(row.children[7], "\0\1", 2);
    column_has_bytes(row.children[8], "", 0);
    uva_array_from_cpu(&row, &whole);
    ck_assert_int_eq(uva_array_size(&schema, &whole, &size), 0);
    uva_array_release(&whole);
    schema.release(&schema);
}
END_TEST

START_TEST(columns_have_the_names_of_their_values)
{
    char name[] = "b", text[] = "abc";
    const struct uva_value values[] = {
        {.type = UVA_VALUE_TEXT, .name = name, .data = text},
        {.type = UVA_VALUE_NULL, .name = "a\xc3\xa4"},
        {0}};
    struct ArrowSchema schema;
    struct ArrowArray row;

    read_row(values, &schema, &row);
    name[0] = text[0] = 'x'; /* they were copied */
    ck_assert_str_eq(schema.children[0]->name, "b");
    ck_assert_str_eq(schema.children[1]->name, "a\xc3\xa4");
    column_has_bytes(row.children[0], "abc", 3);
    row.release(&row);
    schema.release(&schema);
}
END_TEST

START_TEST(a_column_may_outlive_its_row)
{
    struct ArrowSchema schema;
    struct ArrowArray row, column;

    read_row(all, &schema, &row);
    column = *row.children[4];
    row.children[4]->release = NULL;
    row.release(&row);
    schema.release(&schema);
    column_has_bytes(&column, "text", 4);
    column.release(&column);
}
END_TEST

/* ---- lists that are refused --------------------------------------------- */

#define HUGE ((size_t)INT32_MAX + 1)

static const struct {
    struct uva_value values[3];
    const char *text;
} refused[] = {
    {{{.type = (enum uva_value_type)7}}, "values[0]: the type is none of"},
    {{{.type = (enum uva_value_type) - 1}}, "values[0]: the type is none of"},
    {{{.type = UVA_VALUE_NULL}, {.integer = 1}}, "values[1]: it has no type"},
    {{{.number = 1}}, "values[0]: it has no type"},
    {{{.name = "a"}}, "values[0]: it has no type"},
    {{{.data = ""}}, "values[0]: it has no type"},
    {{{.size = 1}}, "values[0]: it has no type"},
    {{{.type = UVA_VALUE_BOOL, .integer = 2}}, "values[0]: a truth value is"},
    {{{.type = UVA_VALUE_BOOL, .integer = -1}}, "values[0]: a truth value is"},
    {{{.type = UVA_VALUE_TEXT}}, "values[0]: data is NULL"},
    {{{.type = UVA_VALUE_TEXT, .size = 1}}, "values[0]: data is NULL"},
    {{{.type = UVA_VALUE_BYTES, .size = 1}}, "values[0]: data is NULL"},
    {{{.type = UVA_VALUE_NULL, .name = "a"}, {.type = UVA_VALUE_NULL}},
     "values[1]: either all values have names, or none"},
    {{{.type = UVA_VALUE_NULL}, {.type = UVA_VALUE_NULL, .name = "a"}},
     "values[1]: either all values have names, or none"},
    {{{.type = UVA_VALUE_NULL, .name = ""}}, "values[0]: the name is empty"},
    {{{.type = UVA_VALUE_NULL, .name = "\xff"}},
     "values[0]: the name is not UTF-8"},
    {{{.type = UVA_VALUE_TEXT, .data = "x", .size = HUGE}},
     "values[0]: 2 GiB of texts and bytes"},
    {{{.type = UVA_VALUE_BYTES, .data = "x", .size = SIZE_MAX}},
     "values[0]: 2 GiB of texts and bytes"},
    {{{.type = UVA_VALUE_BYTES, .data = "x", .size = HUGE / 2},
      {.type = UVA_VALUE_BYTES, .data = "x", .size = HUGE / 2}},
     "values[1]: 2 GiB of texts and bytes"},
};

START_TEST(nonsense_is_refused)
{
    struct uva_error error = {0};

    ck_assert_int_eq(uva__values_check(refused[_i].values, &error), EINVAL);
    text_contains(error.message, refused[_i].text);
}
END_TEST

START_TEST(less_than_2_gib_fit)
{
    static const struct uva_value values[] = {
        {.type = UVA_VALUE_BYTES, .data = "x", .size = HUGE / 2},
        {.type = UVA_VALUE_BYTES, .data = "x", .size = HUGE / 2 - 1},
        {0}};
    static const struct uva_value none = {0};

    ck_assert_int_eq(uva__values_check(values, NULL), 0);
    ck_assert_int_eq(uva__values_check(&none, NULL), 0);
    ck_assert_int_eq(uva__values_check(NULL, NULL), 0);
    ck_assert_uint_eq(uva__values_count(values), 2);
    ck_assert_uint_eq(uva__values_count(&none), 0);
    ck_assert_uint_eq(uva__values_count(NULL), 0);
}
END_TEST

static int check_text(const char *text, size_t size)
{
    const struct uva_value values[] = {
        {.type = UVA_VALUE_TEXT, .data = text, .size = size}, {0}};

    return uva__values_check(values, NULL);
}

START_TEST(texts_are_utf8)
{
    static const char *const sound[] = {"a",
                                        "\x7f",
                                        "\xc2\x80",
                                        "\xdf\xbf",
                                        "\xe0\xa0\x80",
                                        "\xed\x9f\xbf",
                                        "\xee\x80\x80",
                                        "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf",
                                        "a\xc3\xa4\xe2\x98\x83z"};
    static const char *const broken[] = {"\x80",
                                         "\xbf",
                                         "\xc0\x80",
                                         "\xc1\xbf",
                                         "\xc2",
                                         "\xc2\x7f",
                                         "\xc2\xc0",
                                         "\xe0\x9f\xbf",
                                         "\xe2\x82",
                                         "\xe2\x82\x7f",
                                         "\xe2\x82\xc0",
                                         "\xed\xa0\x80",
                                         "\xf0\x8f\xbf\xbf",
                                         "\xf0\x90\x80",
                                         "\xf4\x90\x80\x80",
                                         "\xf5\x80\x80\x80",
                                         "\xff",
                                         "a\xf0\x90\x80\x41"};

    for (size_t i = 0; i < COUNT(sound); i++) {
        ck_assert_int_eq(check_text(sound[i], 0), 0);
        ck_assert_int_eq(check_text(sound[i], strlen(sound[i])), 0);
    }
    for (size_t i = 0; i < COUNT(broken); i++)
        ck_assert_int_eq(check_text(broken[i], 0), EINVAL);
    ck_assert_int_eq(check_text("\xe2\x98\x83", 2), EINVAL);
    ck_assert_int_eq(check_text("\xc3\xa4\xc3", 2), 0);
    ck_assert_int_eq(check_text("a\0b", 3), 0);
}
END_TEST

/* ---- queries ------------------------------------------------------------ */

static struct fixture f;
static struct uva_adbc_pool *pool;
static char columns[80]; /* the names and formats that the driver got */

static void make(void)
{
    ck_assert_int_eq(
        uva_adbc_pool_new(f.loop.runtime,
                          &(struct uva_adbc_pool_options){.driver = FAKE},
                          &pool, NULL),
        0);
}

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
    make();
    columns[0] = '\0';
}

static void finish(void)
{
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
}

static void tear_down(void)
{
    finish();
}

static void on_done(struct recording_consumer *c,
                    const struct uva_outcome *outcome)
{
    const struct uva_stream_info *info = uva_stream_get_info(outcome->stream);
    size_t size = 0;

    (void)c;
    for (int64_t i = 0; info != NULL && i < info->schema->n_children; i++)
        size += (size_t)snprintf(columns + size, sizeof(columns) - size,
                                 "%s=%s ", info->schema->children[i]->name,
                                 info->schema->children[i]->format);
}

static int ask(const struct uva_adbc_query *query)
{
    f.stream = uva_stream_from_query(pool, query);
    f.got.on_done = on_done;
    f.got.transcribes = false;
    return fixture_run(&f);
}

/* The driver gives what was bound. */
START_TEST(values_are_bound_as_one_row)
{
    ck_assert_int_eq(
        ask(&(struct uva_adbc_query){.sql = "parameters", .values = all}), 0);
    ck_assert_int_eq(f.got.rows, 1);
    ck_assert_str_eq(columns, "1=n 2=b 3=l 4=g 5=u 6=u 7=u 8=z 9=z ");
}
END_TEST

START_TEST(values_are_copied)
{
    struct uva_value values[] = {{.type = UVA_VALUE_INT, .integer = 1}, {0}};
    const struct uva_adbc_query query = {.sql = "parameters", .values = values};

    f.stream = uva_stream_from_query(pool, &query);
    values[0].type = (enum uva_value_type)99;
    f.got.on_done = on_done;
    f.got.transcribes = false;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_str_eq(columns, "1=l ");
}
END_TEST

static const struct uva_value named[] = {
    {.type = UVA_VALUE_INT, .name = "b", .integer = 1},
    {.type = UVA_VALUE_BOOL, .name = "n", .integer = 1},
    {0}};

/* The driver's name has a sign. */
START_TEST(named_values_are_bound_by_name)
{
    fake_driver.parameter = ":n";
    ck_assert_int_eq(ask(&(struct uva_adbc_query){.sql = "parameters",
                                                  .values = named,
                                                  .by_name = _i == 1}),
                     0);
    ck_assert_str_eq(columns, "b=l :n=b ");
}
END_TEST

START_TEST(a_driver_that_binds_in_order_refuses_names)
{
    fake_driver.binds_in_order = true;
    ck_assert_int_eq(
        ask(&(struct uva_adbc_query){.sql = "parameters", .values = named}),
        ENOTSUP);
    text_contains(f.got.outcome.error.message, "by_name: the driver cannot");
}
END_TEST

START_TEST(a_name_is_not_given_twice)
{
    static const struct uva_value twice[] = {
        {.type = UVA_VALUE_NULL, .name = "n"},
        {.type = UVA_VALUE_NULL, .name = ":n"},
        {0}};

    fake_driver.parameter = ":n";
    ck_assert_int_eq(
        ask(&(struct uva_adbc_query){.sql = "parameters", .values = twice}),
        EINVAL);
    text_contains(f.got.outcome.error.message, "two of the parameters are :n");
}
END_TEST

START_TEST(an_empty_list_is_no_list)
{
    static const struct uva_value none = {0};

    ck_assert_int_eq(
        ask(&(struct uva_adbc_query){.sql = "rows 3", .values = &none}), 0);
    ck_assert_int_eq(f.got.rows, 3);
}
END_TEST

START_TEST(values_may_be_of_any_result)
{
    static const enum uva_adbc_result results[] = {UVA_ADBC_CHANGES,
                                                   UVA_ADBC_PARTITIONS};
    static const char *const sql[] = {"changes 5", "partitions 3"};

    f.stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){
                  .sql = sql[_i], .result = results[_i], .values = all});
    f.got.transcribes = false;
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_eq(f.got.rows, _i == 0 ? 0 : 3);
    ck_assert_int_eq(uva_adbc_rows_changed(uva_stream_get_info(f.stream)),
                     _i == 0 ? 5 : -1);
}
END_TEST

static void query_refuses(const struct uva_adbc_query *query, const char *text)
{
    fixture_refused(&f, uva_stream_from_query(pool, query), EINVAL, text);
}

static void on_rows_release(struct ArrowArrayStream *rows)
{
    rows->release = NULL;
}

START_TEST(queries_of_nonsense_are_refused)
{
    struct ArrowArrayStream rows = {.release = on_rows_release};

    query_refuses(
        &(struct uva_adbc_query){.sql = "a", .values = refused[0].values},
        "values[0]: the type is none of");
    query_refuses(&(struct uva_adbc_query){.sql = "a",
                                           .values = all,
                                           .parameters = &rows},
                  "either values or parameters");
    ck_assert(rows.release == NULL);
    query_refuses(&(struct uva_adbc_query){.ingest_table = "t", .values = all},
                  "ingest_table needs the rows as parameters");
    query_refuses(
        &(struct uva_adbc_query){.sql = "a", .values = all, .by_name = true},
        "by_name: the values have no names");
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const struct uva_adbc_query query = {.sql = "parameters",
                                         .values = _i == 0 ? all : named};
    bool failed = true;

    for (long k = 1; failed; k++) {
        fake_driver.parameter = ":n";
        faulty_libc_fail(k);
        f.stream = uva_stream_from_query(pool, &query);
        if (fixture_try(&f, NULL) == 0 && fixture_await(&f) == 0)
            ck_assert_int_eq(f.got.rows, 1); /* whole, or none */
        failed = faulty_libc_stop();
        ck_assert(failed || f.got.rows == 1);
        fixture_release(&f);
        finish();
        fixture_open(&f, 0);
        make();
        ck_assert_int_lt(k, 1000);
    }
}
END_TEST

int main(void)
{
    TCase *row = tcase_create("row"), *queries = tcase_create("queries");

    suite_add(row, each_value_is_a_column_of_one_row,
              columns_have_the_names_of_their_values,
              a_column_may_outlive_its_row, less_than_2_gib_fit, texts_are_utf8,
              values_are_bound_as_one_row, values_are_copied,
              a_driver_that_binds_in_order_refuses_names,
              a_name_is_not_given_twice, an_empty_list_is_no_list,
              queries_of_nonsense_are_refused, NULL);
    suite_add_loops(row, 0, COUNT(refused), nonsense_is_refused, NULL);
    suite_add_loops(queries, 0, 2, named_values_are_bound_by_name,
                    values_may_be_of_any_result, every_allocation_may_fail,
                    NULL);
    return suite_main("values", set_up, tear_down, row, queries, NULL);
}
