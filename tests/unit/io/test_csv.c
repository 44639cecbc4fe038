/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in, CSV out: every type, with nulls, offsets and values that need
 * quoting. */
#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <uv.h>

#include "io/encoder.h"
#include "io/text.h"
#include "io/text_number.h"
#include "support/check_suite.h"
#include "support/native.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

#define COUNT(x) (sizeof(x) / sizeof(*(x)))

/* ---- making arrays ------------------------------------------------------ */

/* A column and everything it may need. Has no memory. */
struct column {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[6];
    struct ArrowSchema *child_schemas[3];
    struct ArrowArray *child_arrays[3];
};

/* Makes a column of `length` values with a bitmap (or NULL), followed by one or
 * two buffers. */
static struct column column_of(const char *format, int64_t length,
                               const void *bitmap, const void *second,
                               const void *third)
{
    struct column c = {0};

    c.schema.format = format;
    c.schema.name = "c";
    c.array.length = length;
    c.array.null_count = bitmap == NULL ? 0 : -1;
    c.buffers[0] = bitmap;
    c.buffers[1] = second;
    c.buffers[2] = third;
    c.array.n_buffers = third == NULL ? 2 : 3;
    return c;
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/* Points a column at its own members; call it once the struct no longer
 * moves. */
static void column_settle(struct column *c)
{
    c->array.release = release_array;
    c->schema.release = release_schema;
    c->array.buffers = c->buffers;
    c->array.children = c->child_arrays;
    c->schema.children = c->child_schemas;
    c->schema.n_children = c->array.n_children;
}

static void column_add(struct column *parent, struct column *child,
                       const char *name)
{
    column_settle(child);
    child->schema.name = name;
    parent->child_schemas[parent->array.n_children] = &child->schema;
    parent->child_arrays[parent->array.n_children++] = &child->array;
}

/* Adds the bytes of a part, and releases it. */
static void part_add(struct uva_part *part, struct uva__text *out)
{
    for (size_t i = 0; i < part->count; i++)
        uva__text_put(out, part->buffers[i].base, part->buffers[i].len);
    uva_part_release(part);
}

/* Writes `table`, a struct, into `out`; returns the code. */
static int table_write(struct column *table, struct uva__text *out,
                       struct uva_error *error)
{
    const struct uva_encode options = {.format = UVA_FORMAT_CSV};
    struct uva__encoder *encoder;
    struct uva_part part;
    struct ArrowDeviceArray batch;
    int code;

    column_settle(table);
    code = uva__encoder_new(&table->schema, &options, &encoder, error);
    if (code != 0)
        return code;
    ck_assert_int_eq(uva__encoder_begin(encoder, &part), 0);
    part_add(&part, out);
    uva_array_from_cpu(&table->array, &batch);
    code = uva__encoder_batch(encoder, &batch, &part, error);
    ck_assert(uva_array_is_live(&batch) == (code != 0));
    if (code == 0)
        part_add(&part, out);
    uva__encoder_free(encoder);
    return code;
}

static struct column table_of(struct column *column)
{
    struct column table =
        column_of("+s", column->array.length, NULL, NULL, NULL);

    table.array.n_buffers = 1;
    column_add(&table, column, "c");
    table.array.length = column->array.length;
    return table;
}

/* Checks the output for a table of this one column. */
static void expect(struct column column, const char *rows)
{
    struct column table = table_of(&column);
    struct uva__text out = {0};
    struct uva_error error = {0};

    ck_assert_msg(table_write(&table, &out, &error) == 0, "%s", error.message);
    uva__text_put_char(&out, '\0');
    ck_assert_str_eq(out.data, rows);
    uva__text_fini(&out);
}

static void expect_error(struct column column, int code, const char *part)
{
    struct column table = table_of(&column);
    struct uva__text out = {0};
    struct uva_error error = {0};

    ck_assert_int_eq(table_write(&table, &out, &error), code);
    ck_assert_ptr_nonnull(strstr(error.message, part));
    uva__text_fini(&out);
}

/* ---- numbers ------------------------------------------------------------ */

START_TEST(integers_of_all_widths_are_written)
{
    const int8_t i8[] = {-128, 127};
    const uint8_t u8[] = {0, 255};
    const int16_t i16[] = {-32768, 32767};
    const uint16_t u16[] = {10, 65535};
    const int32_t i32[] = {INT32_MIN, INT32_MAX};
    const uint32_t u32[] = {99, UINT32_MAX};
    const int64_t i64[] = {INT64_MIN, INT64_MAX};
    const uint64_t u64[] = {100, UINT64_MAX};

    expect(column_of("c", 2, NULL, i8, NULL), "c\n-128\n127\n");
    expect(column_of("C", 2, NULL, u8, NULL), "c\n0\n255\n");
    expect(column_of("s", 2, NULL, i16, NULL), "c\n-32768\n32767\n");
    expect(column_of("S", 2, NULL, u16, NULL), "c\n10\n65535\n");
    expect(column_of("i", 2, NULL, i32, NULL), "c\n-2147483648\n2147483647\n");
    expect(column_of("I", 2, NULL, u32, NULL), "c\n99\n4294967295\n");
    expect(column_of("l", 2, NULL, i64, NULL),
           "c\n-9223372036854775808\n9223372036854775807\n");
    expect(column_of("L", 2, NULL, u64, NULL),
           "c\n100\n18446744073709551615\n");
}
END_TEST

START_TEST(a_null_is_an_empty_field)
{
    const int32_t values[] = {1, 2, 3};
    const uint8_t bitmap[] = {5};

    expect(column_of("i", 3, bitmap, values, NULL), "c\n1\n\n3\n");
    expect((struct column){.schema.format = "n", .array.length = 2}, "c\n\n\n");
}
END_TEST

START_TEST(a_bitmap_is_not_looked_at_when_there_are_no_nulls)
{
    const int32_t values[] = {1, 2};
    const uint8_t bitmap[] = {0};
    struct column c = column_of("i", 2, bitmap, values, NULL);

    c.array.null_count = 0;
    expect(c, "c\n1\n2\n");
    c.array.null_count = -1; /* unknown, and no bitmap */
    c.buffers[0] = NULL;
    expect(c, "c\n1\n2\n");
}
END_TEST

START_TEST(offsets_of_array_and_batch_add_up)
{
    const int32_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const uint8_t bitmap[] = {0x7f, 0x03}; /* all are valid except value 7 */
    struct column c = column_of("i", 7, bitmap, values, NULL);
    struct column table;
    struct uva__text out = {0};

    c.array.offset = 3;
    table = table_of(&c);
    table.array.offset = 2;
    table.array.length = 5;
    ck_assert_int_eq(table_write(&table, &out, NULL), 0);
    uva__text_put_char(&out, '\0');
    ck_assert_str_eq(out.data, "c\n5\n6\n\n8\n9\n");
    uva__text_fini(&out);
}
END_TEST

START_TEST(bools_come_from_bits)
{
    const uint8_t values[] = {0xf5, 0x01};
    const uint8_t bitmap[] = {0xfe, 0x03};
    struct column c = column_of("b", 4, bitmap, values, NULL);

    c.array.offset = 6;
    expect(c, "c\ntrue\ntrue\ntrue\nfalse\n");
    c.array.offset = 0;
    expect(c, "c\n\nfalse\ntrue\nfalse\n");
}
END_TEST

START_TEST(reals_are_short_and_lose_nothing)
{
    const double d[] = {0.1,
                        -0.0,
                        227,
                        1e16,
                        1e15,
                        123456.789,
                        1e-5,
                        5e-324,
                        0.3,
                        1.0 / 3,
                        1.7976931348623157e308};
    const float f[] = {0.1f, 16777216, 1e-45f, 3.4028235e38f, 0.3f};
    const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const uint16_t half[] = {0x3c00, 0xc000, 0x7bff, 0x0001,
                             0x7c00, 0x7e00, 0x2e66, 0x3c01};

    expect(column_of("g", COUNT(d), NULL, d, NULL),
           "c\n0.1\n-0.0\n227.0\n1e+16\n1000000000000000.0\n123456.789\n1e-05\n"
           "5e-324\n0.3\n0.3333333333333333\n1.7976931348623157e+308\n");
    expect(column_of("f", COUNT(f), NULL, f, NULL),
           "c\n0.1\n16777216.0\n1e-45\n3.4028235e+38\n0.3\n");
    expect(column_of("g", COUNT(odd), NULL, odd, NULL), "c\nnan\ninf\n-inf\n");
    expect(column_of("e", COUNT(half), NULL, half, NULL),
           "c\n1.0\n-2.0\n65500.0\n6e-08\ninf\nnan\n0.1\n1.001\n");
}
END_TEST

/* Random bits, and random short decimals. */
START_TEST(reals_read_back_as_they_were)
{
    double tens[16] = {1};
    char text[UVA__TEXT_NUMBER_ROOM];
    unsigned seed = 1;
    int i, k;

    srand(seed);
    for (i = 1; i < 16; i++)
        tens[i] = 10 * tens[i - 1];
    for (i = 0; i < 200000; i++) {
        uint64_t bits = 0;
        uint32_t narrow;
        double d;
        float f;

        for (k = 0; k < 8; k++)
            bits = bits << 8 | (uint64_t)(rand() >> 7 & 255);
        memcpy(&d, &bits, sizeof(d));
        if (i % 2 != 0)
            d = (double)(bits % 100000000) / tens[bits >> 60];
        *uva__text_number_put_double(text, d) = '\0';
        ck_assert_msg(isnan(d) || strtod(text, NULL) == d, "%s %a", text, d);
        narrow = (uint32_t)bits;
        memcpy(&f, &narrow, sizeof(f));
        if (i % 2 != 0)
            f = (float)d;
        *uva__text_number_put_float(text, f) = '\0';
        ck_assert_msg(isnan(f) || strtof(text, NULL) == f, "%s %a", text,
                      (double)f);
    }
}
END_TEST

/* Makes German, where numbers have a comma, if the system can. */
static bool use_german(void)
{
    static const char command[] =
        "mkdir -p " UVA_TEST_BUILD
        "/locale && localedef -i de_DE -f UTF-8 " UVA_TEST_BUILD
        "/locale/de_DE.UTF-8 2>/dev/null";

    (void)!system(command);
    (void)setenv("LOCPATH", UVA_TEST_BUILD "/locale", 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

START_TEST(reals_do_not_depend_on_the_locale)
{
    const double d[] = {1.0 / 3, 1e-5, 5e-324, 1.7976931348623157e308};
    const float f[] = {1.0f / 3, 1e-45f, 3.4028235e38f};

    (void)use_german();
    expect(column_of("g", COUNT(d), NULL, d, NULL),
           "c\n0.3333333333333333\n1e-05\n5e-324\n1.7976931348623157e+308\n");
    expect(column_of("f", COUNT(f), NULL, f, NULL),
           "c\n0.33333334\n1e-45\n3.4028235e+38\n");
    (void)setlocale(LC_ALL, "C");
}
END_TEST

/* The halves of 128 bits, as they lie. */
#define WIDE(low, high)                                                        \
    NATIVE_IS_BIG ? (high) : (low), NATIVE_IS_BIG ? (low) : (high)

START_TEST(decimals_of_all_widths_are_written)
{
    const int32_t d32[] = {12345, -5, 0};
    const int64_t d64[] = {-1234567890123456789, 100, 7};
    const uint64_t d128[] = {WIDE(12345, 0), WIDE((uint64_t)-5, UINT64_MAX),
                             WIDE(UINT64_MAX, UINT64_MAX >> 1)};
    const int32_t nothing[] = {0};
    const uint64_t top = UINT64_C(1) << 63;
    const uint64_t d256[] = {NATIVE_IS_BIG ? top : 0, 0, 0,
                             NATIVE_IS_BIG ? 0 : top};

    expect(column_of("d:9,2,32", 3, NULL, d32, NULL),
           "c\n123.45\n-0.05\n0.00\n");
    expect(column_of("d:18,20,64", 3, NULL, d64, NULL),
           "c\n-0.01234567890123456789\n0.00000000000000000100\n"
           "0.00000000000000000007\n");
    expect(column_of("d:38,3", 3, NULL, d128, NULL),
           "c\n12.345\n-0.005\n170141183460469231731687303715884105.727\n");
    expect(column_of("d:38,0", 2, NULL, d128, NULL), "c\n12345\n-5\n");
    expect(column_of("d:38,-2,128", 2, NULL, d128, NULL), "c\n1234500\n-500\n");
    expect(column_of("d:9,-2,32", 1, NULL, nothing, NULL), "c\n0\n");
    expect(column_of("d:76,0,256", 1, NULL, d256, NULL),
           "c\n-578960446186580977117854925043439539266349923328202820197287920"
           "03956564819968\n");
}
END_TEST

/* ---- time --------------------------------------------------------------- */

START_TEST(dates_are_right_in_all_centuries)
{
    const int32_t days[] = {0,       -1,      11016,   -25509, 19782,
                            -719528, 2932896, 2932897, -719529};
    const int64_t ms[] = {-1, 86400000};

    expect(column_of("tdD", COUNT(days), NULL, days, NULL),
           "c\n1970-01-01\n1969-12-31\n2000-02-29\n1900-02-28\n2024-02-29\n"
           "0000-01-01\n9999-12-31\n+10000-01-01\n-0001-12-31\n");
    expect(column_of("tdm", 2, NULL, ms, NULL), "c\n1969-12-31\n1970-01-02\n");
}
END_TEST

START_TEST(times_have_the_digits_of_their_unit)
{
    const int32_t s[] = {0, 86399}, ms[] = {1, 45296789};
    const int64_t us[] = {45296789012}, ns[] = {45296789012345};

    expect(column_of("tts", 2, NULL, s, NULL), "c\n00:00:00\n23:59:59\n");
    expect(column_of("ttm", 2, NULL, ms, NULL),
           "c\n00:00:00.001\n12:34:56.789\n");
    expect(column_of("ttu", 1, NULL, us, NULL), "c\n12:34:56.789012\n");
    expect(column_of("ttn", 1, NULL, ns, NULL), "c\n12:34:56.789012345\n");
}
END_TEST

/* No time is written as another one. */
START_TEST(times_may_be_beyond_a_day)
{
    const int32_t s[] = {86400, 359999, 360000, -1, INT32_MIN};
    const int64_t ns[] = {-1, INT64_MIN, INT64_MAX};

    expect(column_of("tts", COUNT(s), NULL, s, NULL),
           "c\n24:00:00\n99:59:59\n100:00:00\n-00:00:01\n-596523:14:08\n");
    expect(column_of("ttn", COUNT(ns), NULL, ns, NULL),
           "c\n-00:00:00.000000001\n-2562047:47:16.854775808\n"
           "2562047:47:16.854775807\n");
}
END_TEST

START_TEST(timestamps_show_their_zone)
{
    static const char *const odd[] = {
        "tss:+5:30",  "tss:+05-30",  "tss:+0a:30", "tss:+a5:30", "tss:+05:3a",
        "tss:+24:00", "tss:-05:60",  "tss:+05300", "tss:+0 :30", "tss:+05: 0",
        "tss:+530",   "tss:-05:300", "tss:-5"};
    const int64_t s[] = {0, -1, 1357034400}, ns[] = {-1};

    expect(column_of("tss:", 3, NULL, s, NULL),
           "c\n1970-01-01T00:00:00\n1969-12-31T23:59:59\n"
           "2013-01-01T10:00:00\n");
    expect(column_of("tss:UTC", 1, NULL, s, NULL), "c\n1970-01-01T00:00:00Z\n");
    expect(column_of("tss:America/New_York", 1, NULL, s, NULL),
           "c\n1970-01-01T00:00:00Z\n");
    expect(column_of("tss:+05:30", 2, NULL, s, NULL),
           "c\n1970-01-01T05:30:00+05:30\n1970-01-01T05:29:59+05:30\n");
    expect(column_of("tss:-0800", 1, NULL, s, NULL),
           "c\n1969-12-31T16:00:00-08:00\n");
    for (size_t i = 0; i < COUNT(odd); i++)
        expect(column_of(odd[i], 1, NULL, s, NULL),
               "c\n1970-01-01T00:00:00Z\n");
    expect(column_of("tsm:", 2, NULL, s, NULL),
           "c\n1970-01-01T00:00:00.000\n1969-12-31T23:59:59.999\n");
    expect(column_of("tsu:", 1, NULL, s, NULL),
           "c\n1970-01-01T00:00:00.000000\n");
    expect(column_of("tsn:UTC", 1, NULL, ns, NULL),
           "c\n1969-12-31T23:59:59.999999999Z\n");
}
END_TEST

START_TEST(durations_and_intervals_are_iso)
{
    const int64_t d[] = {12500, -1};
    const int32_t months[] = {14, -1, 0}, days_ms[] = {3, -1500, 0, 0};
    const struct {
        int32_t months, days;
        int64_t ns;
    } all[] = {{1, 2, 3000000000}, {0, 0, -1}};

    expect(column_of("tDm", 2, NULL, d, NULL), "c\nPT12.500S\nPT-0.001S\n");
    expect(column_of("tDs", 1, NULL, d, NULL), "c\nPT12500S\n");
    expect(column_of("tiM", 3, NULL, months, NULL), "c\nP14M\nP-1M\nP0M\n");
    expect(column_of("tiD", 2, NULL, days_ms, NULL),
           "c\nP3DT-1.500S\nP0DT0.000S\n");
    expect(column_of("tin", 2, NULL, all, NULL),
           "c\nP1M2DT3.000000000S\nP0DT-0.000000001S\n");
}
END_TEST

/* ---- text and bytes ----------------------------------------------------- */

START_TEST(text_is_quoted_where_it_must_be)
{
    const int32_t offsets[] = {0, 1, 4, 4, 9, 12, 15};
    const char data[] = "xa,bq\"u\"oa\nb\r\xc3\xa4";

    expect(column_of("u", 6, NULL, offsets, data),
           "c\nx\n\"a,b\"\n\"\"\n\"q\"\"u\"\"o\"\n\"a\nb\"\n\"\r\xc3\xa4\"\n");
}
END_TEST

START_TEST(an_empty_string_is_no_null)
{
    const int64_t offsets[] = {0, 0, 0, 1};
    const uint8_t bitmap[] = {5};

    expect(column_of("U", 3, bitmap, offsets, "y"), "c\n\"\"\n\ny\n");
}
END_TEST

START_TEST(bytes_are_hexadecimal)
{
    const int32_t offsets[] = {0, 2, 2};
    const int64_t wide[] = {1, 3};

    expect(column_of("z", 2, NULL, offsets, "\x00\xfe"), "c\n00fe\n\"\"\n");
    expect(column_of("Z", 1, NULL, wide, "abc"), "c\n6263\n");
    expect(column_of("w:3", 2, NULL, "abcdef", NULL), "c\n616263\n646566\n");
    expect(column_of("w:0", 1, NULL, NULL, NULL), "c\n\"\"\n");
}
END_TEST

START_TEST(views_are_short_or_in_one_of_many_buffers)
{
    const struct view {
        int32_t size;
        char prefix[4];
        int32_t buffer, offset;
    } views[] = {
        {2, "ab", 0, 0}, {13, "defg", 1, 3}, {0, "", 0, 0}, {14, "0123", 0, 0}};
    const int64_t sizes[] = {14, 16};
    struct column c = column_of("vu", 4, NULL, views, "0123456789abcd");

    c.buffers[3] = "abcdefghijklmnop";
    c.buffers[4] = sizes;
    c.array.n_buffers = 5;
    expect(c, "c\nab\ndefghijklmnop\n\"\"\n0123456789abcd\n");
    c.schema.format = "vz";
    c.array.length = 1;
    expect(c, "c\n6162\n");
}
END_TEST

START_TEST(names_are_quoted_too)
{
    const int32_t values[] = {1};
    struct column a = column_of("i", 1, NULL, values, NULL), b = a;
    struct column table = table_of(&a);
    struct uva__text out = {0};

    column_add(&table, &b, "");
    a.schema.name = "x,\"y\"";
    ck_assert_int_eq(table_write(&table, &out, NULL), 0);
    uva__text_put_char(&out, '\0');
    ck_assert_str_eq(out.data, "\"x,\"\"y\"\"\",\"\"\n1,1\n");
    uva__text_fini(&out);
}
END_TEST

/* ---- nested ------------------------------------------------------------- */

START_TEST(dictionaries_are_looked_up)
{
    const int32_t offsets[] = {0, 3, 4, 4};
    const uint8_t indexes[] = {2, 0, 1, 1, 2}, bitmap[] = {0x17};
    const uint8_t values_bitmap[] = {0xfd}; /* the second is null */
    struct column values = column_of("u", 3, values_bitmap, offsets, "a,bx");
    struct column c = column_of("C", 4, bitmap, indexes + 1, NULL);

    column_settle(&values);
    c.schema.dictionary = &values.schema;
    c.array.dictionary = &values.array;
    c.array.length = 1;
    expect(c, "c\n\"a,b\"\n");
    c.buffers[1] = indexes;
    c.array.length = 5;
    expect(c, "c\n\"\"\n\"a,b\"\n\n\n\"\"\n");
}
END_TEST

START_TEST(lists_are_json)
{
    const int32_t offsets[] = {0, 2, 2, 3}, sizes[] = {1, 0, 2};
    const int64_t wide[] = {0, 1, 3};
    const int32_t numbers[] = {7, 8, 9, 10};
    const uint8_t bitmap[] = {0xd}; /* 8 is null */
    const char *const list[] = {
        "c\n\"[7,null]\"\n[]\n[9]\n", "c\n[7]\n\"[null,9]\"\n",
        "c\n[7]\n[]\n\"[9,10]\"\n", "c\n\"[7,null]\"\n\"[9,10]\"\n"};
    struct column values = column_of("i", 4, bitmap, numbers, NULL);
    struct column c = column_of("+l", 3, NULL, offsets, NULL);

    column_add(&c, &values, "item");
    expect(c, list[0]);
    c.schema.format = "+L";
    c.buffers[1] = wide;
    c.array.length = 2;
    expect(c, list[1]);
    c.schema.format = "+vl";
    c.buffers[1] = offsets;
    c.buffers[2] = sizes;
    c.array.n_buffers = 3;
    c.array.length = 3;
    ((int32_t *)c.buffers[1])[2] = 2;
    expect(c, list[2]);
    c.schema.format = "+w:2";
    c.array.n_buffers = 1;
    c.array.length = 2;
    expect(c, list[3]);
}
END_TEST

START_TEST(structs_are_json_with_names_and_escapes)
{
    const int32_t offsets[] = {0, 3, 5};
    const double reals[] = {1.5, (double)NAN};
    const uint8_t bitmap[] = {1};
    struct column text = column_of("u", 2, NULL, offsets, "a\"\n\x01\\");
    struct column real = column_of("g", 2, NULL, reals, NULL);
    struct column c = column_of("+s", 2, NULL, NULL, NULL);

    c.array.n_buffers = 1;
    column_add(&c, &text, "t");
    column_add(&c, &real, "r");
    expect(c, "c\n\"{\"\"t\"\":\"\"a\\\"\"\\n\"\",\"\"r\"\":1.5}\"\n"
              "\"{\"\"t\"\":\"\"\\u0001\\\\\"\",\"\"r\"\":\"\"nan\"\"}\"\n");
    c.buffers[0] = bitmap;
    c.array.null_count = 1;
    c.array.n_children = 1;
    real.array.length = 0;
    expect(c, "c\n\"{\"\"t\"\":\"\"a\\\"\"\\n\"\"}\"\n\n");
}
END_TEST

START_TEST(unions_and_runs_are_what_is_in_them)
{
    const int8_t ids[] = {5, 3, 5}, odd[] = {5, -1, 9};
    const int32_t offsets[] = {0, 0, 1}, numbers[] = {7, 8, 9};
    const int32_t text_offsets[] = {0, 1, 2, 3};
    const int16_t ends[] = {2, 5};
    struct column number = column_of("i", 3, NULL, numbers, NULL);
    struct column text = column_of("u", 3, NULL, text_offsets, "xyz");
    struct column end = column_of("s", 2, NULL, ends, NULL);
    struct column c = column_of("+ud:5,3", 3, ids, offsets, NULL);
    struct column runs = column_of("+r", 3, NULL, NULL, NULL);

    column_add(&c, &number, "n");
    column_add(&c, &text, "t");
    expect(c, "c\n7\nx\n8\n");
    c.schema.format = "+us:5,3";
    c.array.n_buffers = 1;
    expect(c, "c\n7\ny\n9\n");
    c.buffers[0] = odd;
    expect(c, "c\n7\n\n\n"); /* type ids without a child */
    runs.array.n_buffers = 0;
    runs.array.offset = 1;
    column_add(&runs, &end, "run_ends");
    column_add(&runs, &text, "values");
    expect(runs, "c\nx\ny\ny\n");
}
END_TEST

/* ---- bad input ---------------------------------------------------------- */

START_TEST(an_unknown_type_names_the_column)
{
    const int32_t values[] = {1};

    expect_error(column_of("?", 1, NULL, values, NULL), ENOTSUP, "column 'c'");
    expect_error(column_of("d:9", 1, NULL, values, NULL), EINVAL, "column 'c'");
    expect_error(column_of("d:9,2,17", 1, NULL, values, NULL), EINVAL, "d:9,2");
    expect_error(column_of("w:x", 1, NULL, values, NULL), EINVAL, "column 'c'");
    expect_error(column_of("+l", 1, NULL, values, NULL), EINVAL, "column 'c'");
}
END_TEST

START_TEST(an_array_that_is_not_as_the_schema_says_is_refused)
{
    const int32_t values[] = {1};
    struct column c = column_of("i", 1, NULL, NULL, NULL);

    expect_error(c, EINVAL, "column 'c'");
    c = column_of("u", 1, NULL, values, NULL);
    expect_error(c, EINVAL, "column 'c'");
    c = column_of("i", 1, NULL, values, NULL);
    c.array.offset = -1;
    expect_error(c, EINVAL, "column 'c'");
}
END_TEST

START_TEST(a_column_shorter_than_its_batch_is_refused)
{
    const int32_t values[] = {1};
    struct column c = column_of("i", 1, NULL, values, NULL);
    struct column table = table_of(&c);
    struct uva__text out = {0};

    table.array.length = 2;
    ck_assert_int_eq(table_write(&table, &out, NULL), EINVAL);
    uva__text_fini(&out);
}
END_TEST

START_TEST(a_result_without_columns_is_no_text)
{
    struct column table = {.schema.format = "+s", .array.n_buffers = 1};
    struct uva__text out = {0};

    ck_assert_int_eq(table_write(&table, &out, NULL), 0);
    ck_assert_uint_eq(out.size, 0);
    uva__text_fini(&out);
}
END_TEST

static Suite *csv_suite(void)
{
    Suite *suite = suite_create("csv");
    TCase *numbers = tcase_create("numbers"), *time = tcase_create("time");
    TCase *text = tcase_create("text"), *nested = tcase_create("nested");
    TCase *bad = tcase_create("bad input");

    tcase_add_test(numbers, integers_of_all_widths_are_written);
    tcase_add_test(numbers, a_null_is_an_empty_field);
    tcase_add_test(numbers, a_bitmap_is_not_looked_at_when_there_are_no_nulls);
    tcase_add_test(numbers, offsets_of_array_and_batch_add_up);
    tcase_add_test(numbers, bools_come_from_bits);
    tcase_add_test(numbers, reals_are_short_and_lose_nothing);
    tcase_add_test(numbers, reals_read_back_as_they_were);
    tcase_add_test(numbers, reals_do_not_depend_on_the_locale);
    tcase_add_test(numbers, decimals_of_all_widths_are_written);
    tcase_add_test(time, dates_are_right_in_all_centuries);
    tcase_add_test(time, times_have_the_digits_of_their_unit);
    tcase_add_test(time, times_may_be_beyond_a_day);
    tcase_add_test(time, timestamps_show_their_zone);
    tcase_add_test(time, durations_and_intervals_are_iso);
    tcase_add_test(text, text_is_quoted_where_it_must_be);
    tcase_add_test(text, an_empty_string_is_no_null);
    tcase_add_test(text, bytes_are_hexadecimal);
    tcase_add_test(text, views_are_short_or_in_one_of_many_buffers);
    tcase_add_test(text, names_are_quoted_too);
    tcase_add_test(nested, dictionaries_are_looked_up);
    tcase_add_test(nested, lists_are_json);
    tcase_add_test(nested, structs_are_json_with_names_and_escapes);
    tcase_add_test(nested, unions_and_runs_are_what_is_in_them);
    tcase_add_test(bad, an_unknown_type_names_the_column);
    tcase_add_test(bad, an_array_that_is_not_as_the_schema_says_is_refused);
    tcase_add_test(bad, a_column_shorter_than_its_batch_is_refused);
    tcase_add_test(bad, a_result_without_columns_is_no_text);
    suite_add_tcase(suite, numbers);
    suite_add_tcase(suite, time);
    suite_add_tcase(suite, text);
    suite_add_tcase(suite, nested);
    suite_add_tcase(suite, bad);
    return suite;
}

int main(void)
{
    return suite_run(csv_suite());
}
