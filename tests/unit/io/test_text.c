/* SPDX-License-Identifier: Apache-2.0 */
/* CSV and JSON lines: quotes and escapes, options, every type, refused data,
 * and several threads with one encoder. The values of CSV are in test_csv.c;
 * the results of readers, in tests/interop. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "io/encoder.h"
#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

static struct uva_error error;

static void set_up(void)
{
    memset(&error, 0, sizeof(error));
}

static void tear_down(void)
{
    every_type_forget();
    ck_assert_int_eq(plain_live(), 0);
}

/* ---- tables ------------------------------------------------------------- */

static const int32_t steps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

/* A table that is being made. */
struct table {
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;
};

static void table_begin(struct table *t, int64_t rows, int columns)
{
    plain_schema(&t->schema, "+s", "", columns);
    uva_array_clear(&t->batch);
    t->batch.device_type = ARROW_DEVICE_CPU;
    t->batch.device_id = -1;
    plain_array(&t->batch.array, rows, 1, columns);
}

/* Makes a column, and returns its array. */
static struct ArrowArray *table_column(struct table *t, int column,
                                       const char *format, const char *name,
                                       const void *second, const void *third)
{
    struct ArrowArray *array = t->batch.array.children[column];

    plain_schema(t->schema.children[column], format, name, 0);
    plain_array(array, t->batch.array.length, third == NULL ? 2 : 3, 0);
    array->buffers[1] = second;
    if (third != NULL)
        array->buffers[2] = third;
    return array;
}

/* Makes a column of texts. */
static void table_texts(struct table *t, int column, const char *const *texts)
{
    static int32_t offsets[16][16];
    static char data[16][256];
    int32_t at = 0;

    for (int64_t i = 0; i < t->batch.array.length; i++) {
        const size_t size = strlen(texts[i]);

        memcpy(data[column] + at, texts[i], size);
        at += (int32_t)size;
        offsets[column][i + 1] = at;
    }
    (void)table_column(t, column, "u", "text", offsets[column], data[column]);
}

static void table_release(struct table *t)
{
    uva_array_release(&t->batch);
    uva_schema_release(&t->schema);
}

/* ---- encoding ----------------------------------------------------------- */

/* Copies the bytes of a part, and a NUL, after `text`; releases the part. */
static void part_add(char *text, size_t room, struct uva_part *part)
{
    size_t size = strlen(text);

    ck_assert_uint_le(part->count, 1);
    for (size_t i = 0; i < part->count; i++) {
        ck_assert_uint_lt(size + part->buffers[i].len, room);
        ck_assert_int_eq((int64_t)part->buffers[i].len, part->bytes);
        memcpy(text + size, part->buffers[i].base, part->buffers[i].len);
        size += part->buffers[i].len;
    }
    text[size] = '\0';
    uva_part_release(part);
    ck_assert_ptr_null(part->owner);
}

/* Encodes the table, which it takes. */
static const char *encode(const struct uva_encode *options, struct table *t)
{
    static char text[4096];
    struct uva__encoder *encoder = NULL;
    struct uva_part part;

    text[0] = '\0';
    ck_assert_msg(uva__encoder_new(&t->schema, options, &encoder, &error) == 0,
                  "%s", error.message);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    part_add(text, sizeof(text), &part);
    ck_assert_msg(uva__encoder_batch(encoder, &t->batch, &part, &error) == 0,
                  "%s", error.message);
    ck_assert(!uva_array_is_live(&t->batch));
    uva_schema_release(&t->schema);
    part_add(text, sizeof(text), &part);
    ck_assert_int_eq(uva__encoder_end(encoder, &part), 0);
    ck_assert_uint_eq(part.count, 0);
    part_add(text, sizeof(text), &part);
    uva__encoder_free(encoder);
    return text;
}

static const struct uva_encode json = {.format = UVA_FORMAT_JSON};
static const struct uva_encode csv = {.format = UVA_FORMAT_CSV};

/* ---- JSON --------------------------------------------------------------- */

START_TEST(a_row_is_an_object)
{
    static const int64_t numbers[] = {INT64_MIN, INT64_MAX};
    static const uint8_t first[] = {1};
    struct table t;

    table_begin(&t, 2, 4);
    (void)table_column(&t, 0, "l", "n", numbers, NULL);
    table_column(&t, 1, "b", "a \"b\"\n", first, NULL)->buffers[0] = first;
    t.batch.array.children[1]->null_count = 1;
    (void)table_column(&t, 2, "tdD", "n", steps, NULL);
    (void)table_column(&t, 3, "z", NULL, steps, "\x01\xff");
    ck_assert_str_eq(encode(&json, &t),
                     "{\"n\":-9223372036854775808,\"a \\\"b\\\"\\n\":true,"
                     "\"n\":\"1970-01-01\",\"\":\"01\"}\n"
                     "{\"n\":9223372036854775807,\"a \\\"b\\\"\\n\":null,"
                     "\"n\":\"1970-01-02\",\"\":\"ff\"}\n");
}
END_TEST

START_TEST(no_columns_are_empty_objects_and_no_csv)
{
    struct table t;

    table_begin(&t, 2, 0);
    ck_assert_str_eq(encode(&json, &t), "{}\n{}\n");
    table_begin(&t, 2, 0);
    ck_assert_str_eq(encode(&csv, &t), "");
}
END_TEST

START_TEST(texts_are_escaped)
{
    static const struct {
        const char *text, *json;
    } pairs[] = {
        {"", ""},
        {"a\"b\\c/", "a\\\"b\\\\c/"},
        {"\n\r\t", "\\n\\r\\t"},
        {"\x01\x1f\x7f", "\\u0001\\u001f\x7f"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80",
         "\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80"},
        {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xf1\x80\x80\x80\xc2\x80",
         "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xf1\x80\x80\x80\xc2\x80"},
        {"\xe0\xa0\x80\xf0\x90\x80\x80", "\xe0\xa0\x80\xf0\x90\x80\x80"},
        /* not UTF-8 */
        {"a\x80z", "a\xef\xbf\xbdz"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc3z", "\xef\xbf\xbdz"},
        {"\xc1\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82z", "\xef\xbf\xbd\xef\xbf\xbdz"},
        {"\xe0\x9f\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf0\x8f\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf0\x8f\x80\x80",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80",
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf5z", "\xef\xbf\xbdz"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        char expected[100];
        struct table t;

        table_begin(&t, 1, 1);
        table_texts(&t, 0, &pairs[i].text);
        (void)snprintf(expected, sizeof(expected), "{\"text\":\"%s\"}\n",
                       pairs[i].json);
        ck_assert_str_eq(encode(&json, &t), expected);
        table_begin(&t, 1, 1);
        (void)table_column(&t, 0, "w:1", pairs[i].text, "x", NULL);
        (void)snprintf(expected, sizeof(expected), "{\"%s\":\"78\"}\n",
                       pairs[i].json);
        ck_assert_str_eq(encode(&json, &t), expected);
    }
}
END_TEST

START_TEST(numbers_that_json_lacks_are_strings)
{
    static const double reals[] = {1.5, (double)NAN, (double)INFINITY,
                                   -(double)INFINITY, 1e300};
    static const float floats[] = {0.1f, NAN, INFINITY, -INFINITY, -0.0f};
    static const uint16_t halves[] = {0x3c00, 0x7e00, 0x7c00, 0xfc00, 0};
    static const int32_t decimals[] = {1, -1, 1000, 12345, 0};
    struct table t;

    table_begin(&t, 5, 4);
    (void)table_column(&t, 0, "g", "g", reals, NULL);
    (void)table_column(&t, 1, "f", "f", floats, NULL);
    (void)table_column(&t, 2, "e", "e", halves, NULL);
    (void)table_column(&t, 3, "d:5,2,32", "d", decimals, NULL);
    ck_assert_str_eq(
        encode(&json, &t),
        "{\"g\":1.5,\"f\":0.1,\"e\":1.0,\"d\":0.01}\n"
        "{\"g\":\"nan\",\"f\":\"nan\",\"e\":\"nan\",\"d\":-0.01}\n"
        "{\"g\":\"inf\",\"f\":\"inf\",\"e\":\"inf\",\"d\":10.00}\n"
        "{\"g\":\"-inf\",\"f\":\"-inf\",\"e\":\"-inf\",\"d\":123.45}\n"
        "{\"g\":1e+300,\"f\":-0.0,\"e\":0.0,\"d\":0.00}\n");
}
END_TEST

/* A list of structs, and a dictionary of texts. */
START_TEST(nested_values_are_json_in_both_formats)
{
    static const int32_t lists[] = {0, 2, 2};
    static const int8_t indices[] = {1, 0};
    struct ArrowSchema *schema;
    struct ArrowArray *array;

    for (int i = 0; i < 2; i++) {
        struct table t;

        table_begin(&t, 2, 2);
        schema = t.schema.children[0];
        array = t.batch.array.children[0];
        plain_schema(schema, "+l", "l", 1);
        plain_array(array, 2, 2, 1);
        array->buffers[1] = lists;
        plain_schema(schema->children[0], "+s", "item", 1);
        plain_array(array->children[0], 2, 1, 1);
        plain_schema(schema->children[0]->children[0], "i", "x", 0);
        plain_array(array->children[0]->children[0], 2, 2, 0);
        array->children[0]->children[0]->buffers[1] = steps;
        array = table_column(&t, 1, "c", "d", indices, NULL);
        plain_schema(plain_schema_dictionary(t.schema.children[1]), "u", "", 0);
        plain_array(plain_array_dictionary(array), 2, 3, 0);
        array->dictionary->buffers[1] = steps;
        array->dictionary->buffers[2] = ",b";
        ck_assert_str_eq(encode(i == 0 ? &json : &csv, &t),
                         i == 0 ? "{\"l\":[{\"x\":0},{\"x\":1}],\"d\":\"b\"}\n"
                                  "{\"l\":[],\"d\":\",\"}\n"
                                : "l,d\n\"[{\"\"x\"\":0},{\"\"x\"\":1}]\",b\n"
                                  "[],\",\"\n");
    }
}
END_TEST

/* ---- extension types ---------------------------------------------------- */

static const struct uva_encode json_as_stored = {.format = UVA_FORMAT_JSON,
                                                 .as_stored = true};
static const struct uva_encode csv_as_stored = {.format = UVA_FORMAT_CSV,
                                                .as_stored = true};

/* Gives metadata with the name of an extension type; good until the next call
 * but one. */
static const char *extension(const char *name)
{
    static char blocks[2][128];
    static int next;
    const struct uva_pair pair[] = {
        {.key = "ARROW:extension:name", .value = name}, {0}};
    char *block = blocks[next ^= 1];
    size_t size = sizeof(blocks[0]);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    return block;
}

static void table_of_uuids(struct table *t, const char *name)
{
    static const char bytes[] = "0123456789abcdef\xff\xfe\xfd\xfc\xfb\xfa\xf9"
                                "\xf8\xf7\xf6\xf5\xf4\xf3\xf2\xf1";

    table_begin(t, 2, 1);
    (void)table_column(t, 0, "w:16", "id", bytes, NULL);
    t->schema.children[0]->metadata = extension(name);
}

START_TEST(a_uuid_has_dashes)
{
    struct table t;

    table_of_uuids(&t, "arrow.uuid");
    ck_assert_str_eq(encode(&csv, &t),
                     "id\n30313233-3435-3637-3839-616263646566\n"
                     "fffefdfc-fbfa-f9f8-f7f6-f5f4f3f2f100\n");
    table_of_uuids(&t, "arrow.uuid");
    ck_assert_str_eq(encode(&json, &t),
                     "{\"id\":\"30313233-3435-3637-3839-616263646566\"}\n"
                     "{\"id\":\"fffefdfc-fbfa-f9f8-f7f6-f5f4f3f2f100\"}\n");
}
END_TEST

START_TEST(other_bytes_are_digits_alone)
{
    static const char *const names[] = {"arrow.uuid", "arrow.uui",
                                        "arrow.uuidx", "arrow.json"};
    struct table t;

    table_of_uuids(&t, names[_i]);
    ck_assert_str_eq(encode(_i == 0 ? &csv_as_stored : &csv, &t),
                     "id\n30313233343536373839616263646566\n"
                     "fffefdfcfbfaf9f8f7f6f5f4f3f2f100\n");
}
END_TEST

/* The mark is on the indices. */
START_TEST(the_values_of_a_dictionary_are_uuids)
{
    static const int8_t indices[] = {0, 0};
    struct ArrowSchema *values;
    struct ArrowArray *array;
    struct table t;

    table_begin(&t, 2, 1);
    array = table_column(&t, 0, "c", "id", indices, NULL);
    values = t.schema.children[0]->dictionary = calloc(1, sizeof(*values));
    array->dictionary = calloc(1, sizeof(*array->dictionary));
    plain_schema(values, "w:16", "", 0);
    plain_array(array->dictionary, 1, 2, 0);
    array->dictionary->buffers[1] = "0123456789abcdef";
    t.schema.children[0]->metadata = extension("arrow.uuid");
    ck_assert_str_eq(encode(&json, &t),
                     "{\"id\":\"30313233-3435-3637-3839-616263646566\"}\n"
                     "{\"id\":\"30313233-3435-3637-3839-616263646566\"}\n");
}
END_TEST

static const struct {
    const char *text, *written; /* NULL: as a string */
} jsons[] = {
    {"{}", "{}"},
    {"[]", "[]"},
    {"0", "0"},
    {"-12.5e+3", "-12.5e+3"},
    {"1E-2", "1E-2"},
    {"true", "true"},
    {"false", "false"},
    {"null", "null"},
    {"\"a\\n\\u00fC\"", "\"a\\n\\u00fC\""},
    {" {\n\"a\" :\r[1, {\"b\":[]}],\t\"c\":{} } ",
     " { \"a\" : [1, {\"b\":[]}],\t\"c\":{} } "},
    {"[[[1],[2,3]],\"\"]", "[[[1],[2,3]],\"\"]"},
    {"", "\"\""},
    {" ", "\" \""},
    {"tru", "\"tru\""},
    {"truer", "\"truer\""},
    {"nan", "\"nan\""},
    {"01", "\"01\""},
    {"-", "\"-\""},
    {"1.", "\"1.\""},
    {"1e", "\"1e\""},
    {"+1", "\"+1\""},
    {"1 2", "\"1 2\""},
    {"[1", "\"[1\""},
    {"[1,]", "\"[1,]\""},
    {"[1}", "\"[1}\""},
    {"[", "\"[\""},
    {"]", "\"]\""},
    {"{1:2}", "\"{1:2}\""},
    {"{\"a\"}", "\"{\\\"a\\\"}\""},
    {"{\"a\":}", "\"{\\\"a\\\":}\""},
    {"{\"a\":1,}", "\"{\\\"a\\\":1,}\""},
    {"\"a", "\"\\\"a\""},
    {"\"\\", "\"\\\"\\\\\""},
    {"\"\\x\"", "\"\\\"\\\\x\\\"\""},
    {"\"\\u12g4\"", "\"\\\"\\\\u12g4\\\"\""},
    {"\"\\u12", "\"\\\"\\\\u12\""},
    {"\"a\nb\"", "\"\\\"a\\nb\\\"\""},
    {"\"\xff\"", "\"\\\"\xef\xbf\xbd\\\"\""},
};

static void table_of_json(struct table *t, const char *text)
{
    const char *const texts[] = {text};

    table_begin(t, 1, 1);
    table_texts(t, 0, texts);
    t->schema.children[0]->metadata = extension("arrow.json");
}

START_TEST(json_stands_as_it_is_if_it_is_valid)
{
    char line[200];
    struct table t;

    (void)snprintf(line, sizeof(line), "{\"text\":%s}\n", jsons[_i].written);
    table_of_json(&t, jsons[_i].text);
    ck_assert_str_eq(encode(&json, &t), line);
}
END_TEST

START_TEST(json_of_too_many_levels_is_a_string)
{
    static const char *const begins[] = {"{\"text\":[[", "{\"text\":\"[["};
    char *text = calloc(1, 1100);
    const size_t levels = 512 + (size_t)_i;
    int32_t offsets[] = {0, (int32_t)(2 * levels)};
    struct table t;

    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    table_begin(&t, 1, 1);
    (void)table_column(&t, 0, "u", "text", offsets, text);
    t.schema.children[0]->metadata = extension("arrow.json");
    ck_assert_int_eq(strncmp(encode(&json, &t), begins[_i], 10), 0);
    free(text);
}
END_TEST

START_TEST(json_is_a_string_on_request_and_in_csv)
{
    struct table t;

    table_of_json(&t, "[1, 2]");
    ck_assert_str_eq(encode(&json_as_stored, &t), "{\"text\":\"[1, 2]\"}\n");
    table_of_json(&t, "[1, 2]");
    ck_assert_str_eq(encode(&csv, &t), "text\n\"[1, 2]\"\n");
}
END_TEST

/* ---- styles of CSV ------------------------------------------------------ */

/* Five texts, the second of them null, and five reals. */
static void styled(struct table *t, const char *const *texts)
{
    static const double reals[] = {1.5, -1, 0, 1e300, 7};
    static const uint8_t bits[] = {0x1d};

    table_begin(t, 5, 2);
    table_texts(t, 0, texts);
    t->batch.array.children[0]->buffers[0] = bits;
    t->batch.array.children[0]->null_count = 1;
    (void)table_column(t, 1, "g", "re;al", reals, NULL);
}

START_TEST(delimiters_are_quoted_wherever_they_are)
{
    static const char *const texts[] = {"a;b", "", "", "c,d", "e\"f"};
    struct uva_encode write = csv;
    struct table t;

    styled(&t, texts);
    write.csv.delimiter = ';';
    ck_assert_str_eq(encode(&write, &t),
                     "text;\"re;al\"\n\"a;b\";1.5\n;-1.0\n\"\";0.0\n"
                     "c,d;1e+300\n\"e\"\"f\";7.0\n");
    styled(&t, texts);
    write.csv.delimiter = '.';
    write.csv.rows_only = true;
    ck_assert_str_eq(encode(&write, &t),
                     "a;b.\"1.5\"\n.\"-1.0\"\n\"\".\"0.0\"\n"
                     "c,d.1e+300\n\"e\"\"f\".\"7.0\"\n");
}
END_TEST

START_TEST(what_looks_like_a_null_is_quoted)
{
    static const char *const texts[] = {"NULL", "", "", "NULLS", "-1.0"};
    struct uva_encode write = csv;
    char null_text[8] = "NULL";
    struct table t;

    styled(&t, texts);
    write.csv.null_text = null_text;
    ck_assert_str_eq(encode(&write, &t),
                     "text,re;al\n\"NULL\",1.5\nNULL,-1.0\n\"\",0.0\n"
                     "NULLS,1e+300\n-1.0,7.0\n");
    styled(&t, texts);
    (void)strcpy(null_text, "-1.0");
    ck_assert_str_eq(encode(&write, &t),
                     "text,re;al\nNULL,1.5\n-1.0,\"-1.0\"\n\"\",0.0\n"
                     "NULLS,1e+300\n\"-1.0\",7.0\n");
    styled(&t, texts);
    write.csv.null_text = "text";
    ck_assert_int_eq(strncmp(encode(&write, &t), "\"text\",re;al\n", 13), 0);
}
END_TEST

START_TEST(lines_end_as_wanted)
{
    static const char *const texts[] = {"a", "", "b\r\nc", "", ""};
    struct uva_encode write = csv;
    struct table t;

    styled(&t, texts);
    write.csv.crlf = true;
    write.csv.delimiter = '\t';
    ck_assert_str_eq(encode(&write, &t),
                     "text\tre;al\r\na\t1.5\r\n\t-1.0\r\n\"b\r\nc\"\t0.0\r\n"
                     "\"\"\t1e+300\r\n\"\"\t7.0\r\n");
}
END_TEST

START_TEST(no_rows_are_an_empty_part)
{
    const struct uva_encode *formats[] = {&csv, &json};
    struct uva_part part;
    struct uva__encoder *encoder;
    struct table t;

    table_begin(&t, 0, 1);
    (void)table_column(&t, 0, "i", "i", NULL, NULL);
    ck_assert_int_eq(uva__encoder_new(&t.schema, formats[_i], &encoder, &error),
                     0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    ck_assert_int_eq(part.bytes, _i == 0 ? 2 : 0);
    uva_part_release(&part);
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error), 0);
    ck_assert_int_eq(part.bytes, 0);
    ck_assert_ptr_null(part.owner);
    uva__encoder_free(encoder);
    table_release(&t);
}
END_TEST

/* ---- every type --------------------------------------------------------- */

/* The first types, of which arbitrary values may be read. Later ones hold
 * indices, which are trusted. */
enum { READABLE_TYPES = 24 };

/* Gives a table of one column of type `k`. */
static void every_table(int k, bool nulls, struct table *t)
{
    const struct every_variant variant = {
        .length = 9, .offset = nulls ? 3 : 0, .nulls = nulls};

    struct ArrowDeviceArray array;

    table_begin(t, 9, 1);
    every_type(k, &variant, t->schema.children[0], &array);
    *t->batch.array.children[0] = array.array;
}

START_TEST(arbitrary_values_are_written)
{
    const struct uva_encode *options = _i & 1 ? &json : &csv;
    const bool nulls = (_i & 2) != 0;
    struct uva__encoder *encoder;
    struct uva_part part;
    size_t lines = 0;
    struct table t;

    every_table(_i / 4, nulls, &t);
    ck_assert_msg(uva__encoder_new(&t.schema, options, &encoder, &error) == 0,
                  "type %d: %s", _i / 4, error.message);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    ck_assert_msg(uva__encoder_batch(encoder, &t.batch, &part, &error) == 0,
                  "type %d: %s", _i / 4, error.message);
    for (size_t i = 0; i < part.buffers[0].len; i++)
        lines += part.buffers[0].base[i] == '\n';
    ck_assert_uint_ge(lines, 9); /* CSV may have some in texts */
    if (_i & 1)
        ck_assert_uint_eq(lines, 9);
    uva_part_release(&part);
    uva__encoder_free(encoder);
    table_release(&t);
}
END_TEST

/* ---- refused data ------------------------------------------------------- */

static void refused_options(const struct uva_encode *write, const char *text)
{
    struct uva__encoder *encoder;
    struct table t;

    table_begin(&t, 0, 0);
    ck_assert_int_eq(uva__encoder_new(&t.schema, write, &encoder, &error),
                     EINVAL);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
    table_release(&t);
}

START_TEST(options_are_checked)
{
    static const char delimiters[] = {'"', '\n', '\r', (char)0x80, (char)0xff};
    struct uva_encode write = csv;
    struct table t;

    for (size_t i = 0; i < sizeof(delimiters); i++) {
        write.csv.delimiter = delimiters[i];
        refused_options(&write, "csv.delimiter is 0x");
    }
    write = csv;
    write.csv.null_text = "a,";
    refused_options(&write, "csv.null_text");
    write.csv.delimiter = ';';
    table_begin(&t, 0, 0);
    ck_assert_str_eq(encode(&write, &t), "");
    write.csv.null_text = "a;";
    refused_options(&write, "csv.null_text");
    write.csv.null_text = "\"";
    refused_options(&write, "csv.null_text");
    write.csv.null_text = "x\n";
    refused_options(&write, "csv.null_text");
    write = json;
    write.compression = 1;
    refused_options(&write, "compression is 1");
    write = json;
    write.reserved[3] = &write;
    refused_options(&write, "reserved[3]");
    write = json;
    write.csv.delimiter = '"'; /* not looked at */
    table_begin(&t, 0, 0);
    ck_assert_str_eq(encode(&write, &t), "");
    write.format = (enum uva_format)(UVA_FORMAT_JSON + 1);
    refused_options(&write, "format is 4");
}
END_TEST

static void refused_schema(const struct ArrowSchema *schema, int code,
                           const char *text)
{
    struct uva__encoder *encoder;

    ck_assert_int_eq(uva__encoder_new(schema, &json, &encoder, &error), code);
    ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);
}

/* Formats that cannot be, and how many children they have. */
static const struct {
    const char *format;
    int children;
    int code;
} misfits[] = {
    {"?", 0, ENOTSUP},        {"d:9", 0, EINVAL},
    {"d:9,2,17", 0, EINVAL},  {"d:9,999", 0, EINVAL},
    {"d:9,2x", 0, EINVAL},    {"w:99999999999", 0, EINVAL},
    {"w:", 0, EINVAL},        {"w:-1", 0, EINVAL},
    {"w:9x", 0, EINVAL},      {"+ud:0,200", 2, EINVAL},
    {"+us:0,1,2", 2, EINVAL}, {"+us:x", 1, EINVAL},
    {"+us:-1", 1, EINVAL},    {"+r", 2, EINVAL},
    {"+l", 0, EINVAL},        {"+w:3", 2, EINVAL},
    {"i", 1, EINVAL},         {"+ud:0,0", 2, EINVAL},
};

START_TEST(schemas_are_checked)
{
    struct ArrowSchema schema;

    refused_schema(NULL, EINVAL, "invalid schema");
    plain_schema(&schema, "i", "", 0);
    refused_schema(&schema, EINVAL, "no struct");
    uva_schema_release(&schema);
    for (size_t i = 0; i < sizeof(misfits) / sizeof(*misfits); i++) {
        plain_schema(&schema, "+s", "", 1);
        plain_schema(schema.children[0], misfits[i].format, "col",
                     misfits[i].children);
        for (int k = 0; k < misfits[i].children; k++)
            plain_schema(schema.children[0]->children[k], "c", "x", 0);
        refused_schema(&schema, misfits[i].code, "column 'col'");
        uva_schema_release(&schema);
    }
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], "u", "col", 0);
    plain_schema(plain_schema_dictionary(schema.children[0]), "u", "", 0);
    refused_schema(&schema, EINVAL, "column 'col'");
    uva_schema_release(&schema);
}
END_TEST

/* Run ends are plain integers. */
START_TEST(run_ends_are_checked)
{
    struct ArrowSchema schema;

    for (int i = 0; i < 2; i++) {
        plain_schema(&schema, "+s", "", 1);
        plain_schema(schema.children[0], "+r", "col", 2);
        plain_schema(schema.children[0]->children[0], i == 0 ? "u" : "i", "",
                     0);
        plain_schema(schema.children[0]->children[1], "i", "", 0);
        if (i == 1)
            plain_schema(
                plain_schema_dictionary(schema.children[0]->children[0]), "u",
                "", 0);
        refused_schema(&schema, EINVAL, "column 'col'");
        uva_schema_release(&schema);
    }
}
END_TEST

/* More type ids than there can be. */
START_TEST(a_union_of_too_many_is_refused)
{
    enum { MANY = 130 };
    struct ArrowSchema schema;
    char format[5 + 2 * MANY] = "+us:0";

    for (int i = 1; i < MANY; i++)
        (void)strcat(format, ",0");
    plain_schema(&schema, "+s", "", 1);
    plain_schema(schema.children[0], format, "col", MANY);
    for (int i = 0; i < MANY; i++)
        plain_schema(schema.children[0]->children[i], "i", "", 0);
    refused_schema(&schema, EINVAL, "");
    uva_schema_release(&schema);
}
END_TEST

START_TEST(a_deep_schema_is_refused)
{
    struct ArrowSchema schema;

    plain_schema(&schema, "i", "leaf", 0);
    for (int i = 0; i < 70; i++) {
        struct ArrowSchema up;

        plain_schema(&up, "+s", "up", 1);
        *up.children[0] = schema;
        schema = up;
    }
    refused_schema(&schema, EINVAL, "invalid schema");
    uva_schema_release(&schema);
}
END_TEST

/* ---- arrays that do not fit --------------------------------------------- */

/* Makes a table of one row, which fits. */
static struct ArrowArray *fitting(const char *format, struct table *t)
{
    static const int8_t ids[] = {0};
    static const char empty_view[16];
    const bool is_run = strcmp(format, "+r") == 0;
    const bool is_union = strncmp(format, "+u", 2) == 0;
    const int children = is_run ? 2 : *format == '+' ? 1 : 0;
    const bool is_text = strcmp(format, "u") == 0 || *format == 'v' ||
                         strncmp(format, "+v", 2) == 0;
    const bool has_one =
        strncmp(format, "+us", 3) == 0 || strncmp(format, "+w", 2) == 0;
    const int buffers = is_run ? 0 : has_one ? 1 : is_text ? 3 : 2;
    struct ArrowSchema *schema;
    struct ArrowArray *column;

    table_begin(t, 1, 1);
    schema = t->schema.children[0];
    column = t->batch.array.children[0];
    plain_schema(schema, format, "col", children);
    plain_array(column, 1, buffers, children);
    if (is_union)
        column->buffers[0] = ids;
    if (buffers > 1)
        column->buffers[1] = *format == 'v' ? (const void *)empty_view : steps;
    if (buffers > 2)
        column->buffers[2] = children > 0 ? (const void *)steps : "x";
    for (int i = 0; i < children; i++) {
        plain_schema(schema->children[i], "i", "x", 0);
        plain_array(column->children[i], 3, 2, 0);
        column->children[i]->buffers[1] = steps + 1;
    }
    return column;
}

static const int32_t down[] = {1, 0}, below[] = {-1, 1}, beyond[] = {0, 9};
static struct ArrowArray *nothing[] = {NULL, NULL};
static const void *no_buffers[] = {NULL, NULL, NULL};

static const void *no_sizes[] = {NULL, steps, NULL};

static void lacks_sizes(struct ArrowArray *column)
{
    column->buffers = no_sizes;
}

static void is_short(struct ArrowArray *column)
{
    column->length = 0;
}

static void is_negative(struct ArrowArray *column)
{
    column->length = -1;
}

static void begins_before(struct ArrowArray *column)
{
    column->offset = -1;
}

static void ends_beyond(struct ArrowArray *column)
{
    column->offset = INT64_MAX;
}

static void lacks_a_buffer(struct ArrowArray *column)
{
    column->n_buffers--;
}

static void lacks_data(struct ArrowArray *column)
{
    column->buffers = no_buffers;
}

static void lacks_all_buffers(struct ArrowArray *column)
{
    column->buffers = NULL;
}

static void lacks_a_bitmap(struct ArrowArray *column)
{
    column->null_count = 1;
}

static void has_more_nulls(struct ArrowArray *column)
{
    column->null_count = 2;
}

static void is_released(struct ArrowArray *column)
{
    column->release = NULL;
}

static void has_a_child(struct ArrowArray *column)
{
    column->n_children++;
}

static void has_a_dictionary(struct ArrowArray *column)
{
    static struct ArrowArray other;

    column->dictionary = &other;
}

static void has_no_children(struct ArrowArray *column)
{
    column->children = NULL;
}

static void has_null_children(struct ArrowArray *column)
{
    column->children = nothing;
}

static void has_falling_offsets(struct ArrowArray *column)
{
    no_buffers[1] = down;
    column->buffers = no_buffers;
}

static void has_negative_offsets(struct ArrowArray *column)
{
    no_buffers[1] = below;
    column->buffers = no_buffers;
}

static void has_wide_offsets(struct ArrowArray *column)
{
    no_buffers[1] = beyond;
    column->buffers = no_buffers;
}

static void lies_behind_its_runs(struct ArrowArray *column)
{
    column->offset = 3;
}

static void is_longer_than_its_child(struct ArrowArray *column)
{
    column->offset = 5;
}

static void has_too_many_items(struct ArrowArray *column)
{
    column->offset = INT64_MAX / 2;
}

static const struct {
    const char *format;
    void (*spoil)(struct ArrowArray *column);
} faults[] = {
    {"i", is_short},
    {"i", is_negative},
    {"i", begins_before},
    {"i", ends_beyond},
    {"i", lacks_a_buffer},
    {"i", lacks_data},
    {"i", lacks_all_buffers},
    {"i", lacks_a_bitmap},
    {"i", has_more_nulls},
    {"i", is_released},
    {"i", has_a_child},
    {"i", has_a_dictionary},
    {"u", has_falling_offsets},
    {"u", has_negative_offsets},
    {"u", has_wide_offsets}, /* and no data */
    {"vu", lacks_a_buffer},
    {"+l", has_no_children},
    {"+l", has_null_children},
    {"+l", has_wide_offsets},
    {"+vl", lacks_sizes},
    {"+vl", lacks_data},
    {"+w:3", is_longer_than_its_child},
    {"+w:3", has_too_many_items},
    {"w:3", lacks_data},
    {"+us:0", lacks_data},
    {"+us:0", is_longer_than_its_child},
    {"+ud:0", lacks_data},
    {"+r", lies_behind_its_runs},
};

START_TEST(arrays_are_checked)
{
    struct uva__encoder *encoder;
    struct uva_part part;
    struct ArrowArray *column, kept;
    struct table t;

    column = fitting(faults[_i].format, &t);
    kept = *column;
    faults[_i].spoil(column);
    ck_assert_int_eq(uva__encoder_new(&t.schema, &csv, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     EINVAL);
    ck_assert_msg(strstr(error.message, "the batch does not fit the schema"),
                  "%s", error.message);
    ck_assert(uva_array_is_live(&t.batch));
    *column = kept;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error), 0);
    uva_part_release(&part);
    uva__encoder_free(encoder);
    table_release(&t);
}
END_TEST

/* Lists without items need no values. */
START_TEST(a_list_of_nothing_fits)
{
    struct table t;

    (void)fitting("+w:0", &t);
    t.batch.array.children[0]->children[0]->length = 0;
    ck_assert_str_eq(encode(&csv, &t), "col\n[]\n");
}
END_TEST

/* Runs without an end, and with too few values. */
START_TEST(runs_are_checked)
{
    struct uva__encoder *encoder;
    struct uva_part part;
    struct ArrowArray *column;
    struct table t;

    column = fitting("+r", &t);
    ck_assert_int_eq(uva__encoder_new(&t.schema, &csv, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    uva_part_release(&part);
    column->children[0]->length = 0;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     EINVAL);
    column->children[0]->length = 3;
    column->children[1]->length = 2;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     EINVAL);
    column->length = 0; /* then there is no value to find */
    t.batch.array.length = 0;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error), 0);
    uva_part_release(&part);
    uva__encoder_free(encoder);
    table_release(&t);
}
END_TEST

START_TEST(calls_are_checked)
{
    static const uint8_t none[] = {2}, all[] = {1};
    struct uva__encoder *encoder;
    struct uva_part part;
    struct table t;

    (void)fitting("i", &t);
    ck_assert_int_eq(uva__encoder_new(&t.schema, &json, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     EINVAL);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    ck_assert_ptr_null(part.owner);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), EINVAL);
    t.batch.device_type = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     ENOTSUP);
    t.batch.device_type = ARROW_DEVICE_CPU;
    t.batch.array.length = -1;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     EINVAL);
    t.batch.array.length = 1;
    t.batch.array.offset = -1;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     EINVAL);
    t.batch.array.offset = 0;
    t.batch.array.null_count = -1;
    t.batch.array.buffers[0] = none;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error),
                     ENOTSUP);
    ck_assert_ptr_nonnull(strstr(error.message, "row 0 is null"));
    t.batch.array.buffers[0] = all;
    ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, &error), 0);
    uva__encoder_free(encoder);
    ck_assert_int_eq(part.bytes, 10); /* {"col":0}, also after the encoder */
    uva_part_release(&part);
    table_release(&t);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static const char *const sweeps[] = {"b",     "i",   "C",   "e",   "f", "g",
                                     "d:9,2", "tdD", "tiM", "tin", "z", "u",
                                     "w:3",   "+l",  "+s",  "tiD"};

enum { SWEPT_ROWS = 300 };

/* Makes a column of many rows, each of the same few bytes. */
static void swept(const char *format, struct table *t)
{
    static int32_t offsets[SWEPT_ROWS + 1];
    static int64_t words[2 * SWEPT_ROWS];
    static char letters[3 * SWEPT_ROWS];
    struct ArrowSchema *schema;
    struct ArrowArray *column;
    const bool is_nested = *format == '+';

    for (int i = 0; i < SWEPT_ROWS; i++)
        offsets[i + 1] = (i + 1) * (is_nested ? 1 : 3);
    for (size_t i = 0; i < sizeof(letters); i++)
        letters[i] = "a\"b,c\""[i % 6];
    table_begin(t, SWEPT_ROWS, 1);
    column = t->batch.array.children[0];
    schema = t->schema.children[0];
    plain_schema(schema, format, "col", is_nested);
    plain_array(column, SWEPT_ROWS,
                *format == 'u' || *format == 'z' ? 3
                : strcmp(format, "+s") == 0      ? 1
                                                 : 2,
                is_nested);
    if (column->n_buffers > 1)
        column->buffers[1] =
            column->n_buffers > 2 || is_nested ? (const void *)offsets : words;
    if (column->n_buffers > 2)
        column->buffers[2] = letters;
    for (int i = 0; i < is_nested; i++) {
        plain_schema(schema->children[0], "tdD", "x", 0);
        plain_array(column->children[0], SWEPT_ROWS, 2, 0);
        column->children[0]->buffers[1] = words;
    }
}

/* Every allocation fails once: the batch stays the caller's, and the next call
 * writes it. */
START_TEST(a_value_without_memory_fails)
{
    struct uva_encode write = _i & 1 ? json : csv;
    bool failed = true;

    if ((_i & 3) == 2)
        write.csv.delimiter = '0'; /* most values are in quotes */
    for (long k = 1; failed; k++) {
        struct uva__encoder *encoder = NULL;
        struct uva_part part = {0};
        struct table t;
        int code;

        swept(sweeps[_i / 4], &t);
        ck_assert_int_eq(uva__encoder_new(&t.schema, &write, &encoder, &error),
                         0);
        ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
        uva_part_release(&part);
        faulty_libc_fail(k);
        code = uva__encoder_batch(encoder, &t.batch, &part, &error);
        failed = faulty_libc_stop();
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        ck_assert(uva_array_is_live(&t.batch) == failed);
        if (failed)
            ck_assert_int_eq(
                uva__encoder_batch(encoder, &t.batch, &part, &error), 0);
        ck_assert_int_gt(part.bytes, SWEPT_ROWS);
        uva_part_release(&part);
        uva__encoder_free(encoder);
        table_release(&t);
    }
}
END_TEST

/* ---- threads ------------------------------------------------------------ */

enum { THREADS = 4, ROUNDS = 200 };

/* Encodes batches of one value each, and looks at each text. */
static void encode_many(void *ctx)
{
    struct uva__encoder *encoder = ctx;

    for (int32_t i = 0; i < ROUNDS; i++) {
        struct uva_part part;
        char expected[40];
        struct table t;

        table_begin(&t, 1, 1);
        (void)table_column(&t, 0, "i", "n", &i, NULL);
        ck_assert_int_eq(uva__encoder_batch(encoder, &t.batch, &part, NULL), 0);
        (void)snprintf(expected, sizeof(expected), "{\"n\":%d}\n", (int)i);
        ck_assert_int_eq(part.bytes, (int64_t)strlen(expected));
        ck_assert_int_eq(
            memcmp(part.buffers[0].base, expected, strlen(expected)), 0);
        uva_part_release(&part);
        table_release(&t);
    }
}

START_TEST(several_threads_encode_at_a_time)
{
    uv_thread_t threads[THREADS];
    struct uva__encoder *encoder;
    struct uva_part part;
    struct table t;

    table_begin(&t, 0, 1);
    (void)table_column(&t, 0, "i", "n", NULL, NULL);
    ck_assert_int_eq(uva__encoder_new(&t.schema, &json, &encoder, &error), 0);
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(uv_thread_create(&threads[i], encode_many, encoder),
                         0);
    for (int i = 0; i < THREADS; i++)
        (void)uv_thread_join(&threads[i]);
    uva__encoder_free(encoder);
    table_release(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *all = suite_case(suite, "text", set_up, tear_down);

    suite_add_loops(all, 0, READABLE_TYPES * 4, arbitrary_values_are_written,
                    NULL);
    suite_add_loops(all, 0, sizeof(faults) / sizeof(*faults),
                    arrays_are_checked, NULL);
    suite_add_loops(all, 0, 4 * sizeof(sweeps) / sizeof(*sweeps),
                    a_value_without_memory_fails, NULL);
    suite_add_loops(all, 0, 2, no_rows_are_an_empty_part,
                    json_of_too_many_levels_is_a_string, NULL);
    suite_add_loops(all, 0, 4, other_bytes_are_digits_alone, NULL);
    suite_add_loops(all, 0, sizeof(jsons) / sizeof(*jsons),
                    json_stands_as_it_is_if_it_is_valid, NULL);
    suite_add(all, a_row_is_an_object, no_columns_are_empty_objects_and_no_csv,
              a_uuid_has_dashes, the_values_of_a_dictionary_are_uuids,
              json_is_a_string_on_request_and_in_csv, texts_are_escaped,
              numbers_that_json_lacks_are_strings,
              nested_values_are_json_in_both_formats,
              delimiters_are_quoted_wherever_they_are,
              what_looks_like_a_null_is_quoted, lines_end_as_wanted,
              options_are_checked, schemas_are_checked,
              a_deep_schema_is_refused, run_ends_are_checked,
              a_union_of_too_many_is_refused, a_list_of_nothing_fits,
              runs_are_checked, calls_are_checked,
              several_threads_encode_at_a_time, NULL);
    return suite_run(suite);
}
