/* SPDX-License-Identifier: Apache-2.0 */
/* Every valid format string, and many invalid ones. */
#include "arrow/format.h"
#include "support/check_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Describes a layout with a word for each buffer, such as "valid offsets4 data
 * / 0". */
static const char *tell(const char *format)
{
    static const char *const kinds[] = {"valid", "bits", "fixed", "offsets",
                                        "data"};
    static char text[200];
    struct uva__layout layout;
    const int code = uva__format_read(format, &layout);

    if (code != 0)
        return uva_error_name(code);
    text[0] = '\0';
    for (int i = 0; i < layout.n_buffers; i++) {
        strcat(text, kinds[layout.buffers[i].kind]);
        if (layout.buffers[i].width != 0 ||
            layout.buffers[i].kind == UVA__BUFFER_FIXED)
            sprintf(text + strlen(text), "%d", (int)layout.buffers[i].width);
        strcat(text, " ");
    }
    sprintf(text + strlen(text), "/ %d%s%s", (int)layout.n_children,
            layout.variadic ? " variadic" : "", layout.index ? " index" : "");
    return text;
}

static const struct {
    const char *format, *layout;
} KNOWN[] = {
    {"n", "/ 0"},
    {"b", "valid bits / 0"},
    {"c", "valid fixed1 / 0 index"},
    {"C", "valid fixed1 / 0 index"},
    {"s", "valid fixed2 / 0 index"},
    {"S", "valid fixed2 / 0 index"},
    {"i", "valid fixed4 / 0 index"},
    {"I", "valid fixed4 / 0 index"},
    {"l", "valid fixed8 / 0 index"},
    {"L", "valid fixed8 / 0 index"},
    {"e", "valid fixed2 / 0"},
    {"f", "valid fixed4 / 0"},
    {"g", "valid fixed8 / 0"},
    {"z", "valid offsets4 data / 0"},
    {"Z", "valid offsets8 data / 0"},
    {"u", "valid offsets4 data / 0"},
    {"U", "valid offsets8 data / 0"},
    {"vz", "valid fixed16 / 0 variadic"},
    {"vu", "valid fixed16 / 0 variadic"},
    {"d:19,10", "valid fixed16 / 0"},
    {"d:19,-3", "valid fixed16 / 0"},
    {"d:9,2,32", "valid fixed4 / 0"},
    {"d:18,2,64", "valid fixed8 / 0"},
    {"d:38,2,128", "valid fixed16 / 0"},
    {"d:76,2,256", "valid fixed32 / 0"},
    {"w:0", "valid fixed0 / 0"},
    {"w:42", "valid fixed42 / 0"},
    {"w:2147483647", "valid fixed2147483647 / 0"},
    {"tdD", "valid fixed4 / 0"},
    {"tdm", "valid fixed8 / 0"},
    {"tts", "valid fixed4 / 0"},
    {"ttm", "valid fixed4 / 0"},
    {"ttu", "valid fixed8 / 0"},
    {"ttn", "valid fixed8 / 0"},
    {"tss:", "valid fixed8 / 0"},
    {"tsm:Europe/Berlin", "valid fixed8 / 0"},
    {"tsu:+01:00", "valid fixed8 / 0"},
    {"tsn:UTC", "valid fixed8 / 0"},
    {"tDs", "valid fixed8 / 0"},
    {"tDm", "valid fixed8 / 0"},
    {"tDu", "valid fixed8 / 0"},
    {"tDn", "valid fixed8 / 0"},
    {"tiM", "valid fixed4 / 0"},
    {"tiD", "valid fixed8 / 0"},
    {"tin", "valid fixed16 / 0"},
    {"+l", "valid offsets4 / 1"},
    {"+L", "valid offsets8 / 1"},
    {"+vl", "valid fixed4 fixed4 / 1"},
    {"+vL", "valid fixed8 fixed8 / 1"},
    {"+w:3", "valid / 1"},
    {"+s", "valid / -1"},
    {"+m", "valid offsets4 / 1"},
    {"+ud:0,1,5", "fixed1 fixed4 / 3"},
    {"+us:127", "fixed1 / 1"},
    {"+us:", "fixed1 / 0"},
    {"+r", "/ 2"},
};

START_TEST(every_format_has_its_layout)
{
    ck_assert_str_eq(tell(KNOWN[_i].format), KNOWN[_i].layout);
}
END_TEST

START_TEST(the_hurried_way_agrees_with_the_other)
{
    struct uva__layout layout;
    const int32_t width = uva__format_width(KNOWN[_i].format);

    ck_assert_int_eq(uva__format_read(KNOWN[_i].format, &layout), 0);
    if (width == 0)
        return;
    ck_assert_int_eq(layout.n_buffers, 2);
    ck_assert_int_eq(layout.n_children, 0);
    ck_assert_int_eq(layout.buffers[0].kind, UVA__BUFFER_VALIDITY);
    ck_assert_int_eq(layout.buffers[1].kind, UVA__BUFFER_FIXED);
    ck_assert_int_eq(layout.buffers[1].width, width);
}
END_TEST

START_TEST(numbers_and_times_have_a_hurried_way)
{
    ck_assert_int_eq(uva__format_width("i"), 4);
    ck_assert_int_eq(uva__format_width("g"), 8);
    ck_assert_int_eq(uva__format_width("tsu:UTC"), 8);
    ck_assert_int_eq(uva__format_width("tin"), 16);
    ck_assert_int_eq(uva__format_width("u"), 0);
    ck_assert_int_eq(uva__format_width("b"), 0);
    ck_assert_int_eq(uva__format_width("t"), 0);
    ck_assert_int_eq(uva__format_width(""), 0);
    ck_assert_int_eq(uva__format_width("\xC3"), 0);
    ck_assert_int_eq(uva__format_width(NULL), 0);
}
END_TEST

static const char *const UNKNOWN[] = {
    "",    "a",    "\xC3",     "ii",        "i:",       "t",    "ts",
    "tss", "tsx:", "tdx",      "tdDD",      "tis",      "tx",   "v",
    "vx",  "vuu",  "d",        "w",         "+",        "+x",   "+ll",
    "+v",  "+vx",  "+u",       "+ud",       "+ux:",     "+rr",  "+sx",
    "+w",  "nn",   "d:1,2,16", "d:1,2,512", "d:1,2,96", "\x7F",
};

START_TEST(unknown_formats_are_not_supported)
{
    ck_assert_str_eq(tell(UNKNOWN[_i]), "ENOTSUP");
}
END_TEST

static const char *const MALFORMED[] = {
    "d:",
    "d:1",
    "d:1,",
    "d:,1",
    "d:1,--1",
    "d:1,2,",
    "d:1,2,3x",
    "d:1,2x",
    "d:-1,2",
    "w:",
    "w:-1",
    "w:1x",
    "w:4294967296",
    "w:2147483648",
    "w: 1",
    "w:99999999999999999999",
    "+w:",
    "+w:-1",
    "+w:x",
    "+ud:,",
    "+ud:1,",
    "+ud:1,,2",
    "+ud:128",
    "+us:-1",
    "+us:a",
    "+us:1;2",
    "d:99999999999,1",
    "d:1,99999999999",
};

START_TEST(impossible_parameters_are_invalid)
{
    ck_assert_str_eq(tell(MALFORMED[_i]), "EINVAL");
}
END_TEST

START_TEST(a_union_has_at_most_128_members)
{
    char format[2000] = "+ud:0";

    ck_assert_str_eq(tell(NULL), "EINVAL");
    for (int i = 1; i < 128; i++)
        sprintf(format + strlen(format), ",%d", i);
    ck_assert_str_eq(tell(format), "fixed1 fixed4 / 128");
    strcat(format, ",1");
    ck_assert_str_eq(tell(format), "EINVAL");
}
END_TEST

START_TEST(no_bytes_at_all_do_harm)
{
    static const char letters[] = "nbcCsSiIlLefgzZuUvdwtTDmMr+:,0123456789-x";

    for (unsigned seed = 0; seed < 200000; seed++) {
        char format[12];
        struct uva__layout layout;
        int size, code;
        srand(seed);
        size = rand() % 11;
        for (int i = 0; i < size; i++)
            format[i] = letters[(size_t)rand() % (sizeof(letters) - 1)];
        format[size] = '\0';
        code = uva__format_read(format, &layout);
        ck_assert(code == 0 || code == EINVAL || code == ENOTSUP);
        if (uva__format_width(format) != 0)
            ck_assert_int_eq(code, 0);
    }
}
END_TEST

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

int main(void)
{
    TCase *formats = tcase_create("formats");

    tcase_add_loop_test(formats, every_format_has_its_layout, 0, COUNT(KNOWN));
    tcase_add_loop_test(formats, the_hurried_way_agrees_with_the_other, 0,
                        COUNT(KNOWN));
    tcase_add_test(formats, numbers_and_times_have_a_hurried_way);
    tcase_add_loop_test(formats, unknown_formats_are_not_supported, 0,
                        COUNT(UNKNOWN));
    tcase_add_loop_test(formats, impossible_parameters_are_invalid, 0,
                        COUNT(MALFORMED));
    tcase_add_test(formats, a_union_has_at_most_128_members);
    tcase_add_test(formats, no_bytes_at_all_do_harm);
    return suite_main("format", NULL, NULL, formats, NULL);
}
