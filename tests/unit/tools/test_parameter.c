/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a command line, as JSON and as texts. */
#include "parameter.h"
#include "support/check_suite.h"

#include <check.h>
#include <errno.h>
#include <string.h>

START_TEST(scalars_of_json_have_its_types)
{
    struct uva_value value;

    ck_assert_int_eq(uva__parameter_read("null", &value, NULL), 0);
    ck_assert_int_eq(value.type, UVA_VALUE_NULL);
    ck_assert_int_eq(uva__parameter_read("true", &value, NULL), 0);
    ck_assert(value.type == UVA_VALUE_BOOL && value.integer == 1);
    ck_assert_int_eq(uva__parameter_read("false", &value, NULL), 0);
    ck_assert(value.type == UVA_VALUE_BOOL && value.integer == 0);
    ck_assert_int_eq(uva__parameter_read("-9223372036854775808", &value, NULL),
                     0);
    ck_assert_int_eq(value.type, UVA_VALUE_INT);
    ck_assert(value.integer == INT64_MIN);
    ck_assert_int_eq(uva__parameter_read("0", &value, NULL), 0);
    ck_assert(value.type == UVA_VALUE_INT && value.integer == 0);
    ck_assert_int_eq(uva__parameter_read("-0.5e+1", &value, NULL), 0);
    ck_assert(value.type == UVA_VALUE_DOUBLE && value.number == -5.0);
    ck_assert_int_eq(uva__parameter_read("2E2", &value, NULL), 0);
    ck_assert(value.type == UVA_VALUE_DOUBLE && value.number == 200.0);
    ck_assert_int_eq(uva__parameter_read("1e-400", &value, NULL), 0);
    ck_assert(value.type == UVA_VALUE_DOUBLE && value.number == 0.0);
}
END_TEST

START_TEST(numbers_out_of_range_are_refused)
{
    static const char *const NUMBERS[] = {"9223372036854775808", "1e999",
                                          "-1e999"};
    struct uva_value value;
    struct uva_error error;
    size_t i;

    for (i = 0; i < sizeof(NUMBERS) / sizeof(*NUMBERS); i++) {
        ck_assert_int_eq(uva__parameter_read(NUMBERS[i], &value, &error),
                         EINVAL);
        ck_assert_ptr_nonnull(strstr(error.message, NUMBERS[i]));
    }
}
END_TEST

START_TEST(strings_in_quotes_have_escapes)
{
    static const char *const STRINGS[][2] = {
        {"\"\"", ""},
        {"\"1\"", "1"},
        {"\"null\"", "null"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00E4\\u2603\"", "A\xc3\xa4\xe2\x98\x83"},
        {"\"\\ud83d\\ude80!\"", "\xf0\x9f\x9a\x80!"},
        {"\"\xc3\xa4\"", "\xc3\xa4"},
    };
    struct uva_value value;
    size_t i;

    for (i = 0; i < sizeof(STRINGS) / sizeof(*STRINGS); i++) {
        ck_assert_int_eq(uva__parameter_read(STRINGS[i][0], &value, NULL), 0);
        ck_assert_int_eq(value.type, UVA_VALUE_TEXT);
        ck_assert_str_eq(value.data, STRINGS[i][1]);
        ck_assert_uint_eq(value.size, strlen(STRINGS[i][1]));
        uva__parameter_fini(&value);
        ck_assert_ptr_null(value.data);
    }
}
END_TEST

START_TEST(what_is_no_json_is_a_text_as_it_stands)
{
    static const char *const TEXTS[] = {
        "",
        "text",
        "9E",
        "01",
        "1.",
        "-",
        ".5",
        "1e",
        "+1",
        "0x10",
        "nan",
        "True",
        " 1",
        "[1]",
        "{\"a\":1}",
        "\"",
        "\"a",
        "\"a\"b",
        "\"a\nb\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u0000\"",
        "\"\\udc00\"",
        "\"\\ud800\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\u0041\"",
        "\"\\",
    };
    struct uva_value value;
    size_t i;

    for (i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); i++) {
        ck_assert_int_eq(uva__parameter_read(TEXTS[i], &value, NULL), 0);
        ck_assert_int_eq(value.type, UVA_VALUE_TEXT);
        ck_assert_str_eq(value.data, TEXTS[i]);
        ck_assert_uint_eq(value.size, strlen(TEXTS[i]));
        uva__parameter_fini(&value);
    }
}
END_TEST

int main(void)
{
    TCase *values = tcase_create("values");

    tcase_add_test(values, scalars_of_json_have_its_types);
    tcase_add_test(values, numbers_out_of_range_are_refused);
    tcase_add_test(values, strings_in_quotes_have_escapes);
    tcase_add_test(values, what_is_no_json_is_a_text_as_it_stands);
    return suite_main("parameter", NULL, NULL, values, NULL);
}
