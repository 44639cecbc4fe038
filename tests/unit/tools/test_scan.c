/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts are traces, and their content. */
#include "scan.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"

static struct uva__scan found;
static struct uva_error error;

/* Scans a copy of its exact size, so that a read beyond its end is found. */
static int scan_copy(const char *text, size_t size)
{
    char *copy = malloc(size + (size == 0));
    int code;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, size);
    code = uva__scan_trace(copy, size, &found, &error);
    free(copy);
    return code;
}

static int scan(const char *text)
{
    return scan_copy(text, strlen(text));
}

static void refused(const char *text, const char *why)
{
    ck_assert_int_eq(scan(text), EINVAL);
    ck_assert_msg(strstr(error.message, why) != NULL, "%s: %s", text,
                  error.message);
}

/* ---- traces ------------------------------------------------------------- */

START_TEST(an_array_of_events_is_a_trace)
{
    static const char TEXT[] = " [\n{\"ph\":\"X\"} , {\"ph\":\"i\"}\n]\n";

    ck_assert_int_eq(uva__scan_trace(TEXT, strlen(TEXT), &found, &error), 0);
    ck_assert_int_eq(found.events, 2);
    ck_assert(!found.cut);
    ck_assert_ptr_eq(found.begin, strchr(TEXT, '{'));
    ck_assert_uint_eq(found.size, strlen("{\"ph\":\"X\"} , {\"ph\":\"i\"}"));
}
END_TEST

START_TEST(so_is_an_object_with_such_an_array)
{
    static const char TEXT[] = "{\"traceEventsOf\":[1],\"other\":{\"a\":[]},"
                               "\"traceEvents\":[{}],\"traceEvents\":0}";

    ck_assert_int_eq(uva__scan_trace(TEXT, strlen(TEXT), &found, &error), 0);
    ck_assert_int_eq(found.events, 1);
    ck_assert_ptr_eq(found.begin, strstr(TEXT, "{}"));
}
END_TEST

START_TEST(a_trace_may_be_empty)
{
    ck_assert_int_eq(scan("[]"), 0);
    ck_assert_int_eq(found.events, 0);
    ck_assert_int_eq(scan("{\"traceEvents\" : [ ] } "), 0);
    ck_assert_int_eq(found.events, 0);
}
END_TEST

START_TEST(every_value_of_json_is_accepted)
{
    static const char *const VALUES[] = {
        "true",
        "false",
        "null",
        "0",
        "-0",
        "12",
        "-1.5",
        "0.25e3",
        "1E+2",
        "2e-3",
        "\"\"",
        "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\ude80\"",
        "\"\xC3\xA4\x7F\"",
        "[]",
        "{}",
        "[1,[2,{\"a\":[ ]}],{}]",
        "[ ]",
        "{ \"a\" : 1 , \"b\" : { } }"};
    char text[200];
    size_t i;

    for (i = 0; i < sizeof(VALUES) / sizeof(*VALUES); i++) {
        (void)snprintf(text, sizeof(text), "[{\"a\":%s}]", VALUES[i]);
        ck_assert_msg(scan(text) == 0, "%s: %s", text, error.message);
        ck_assert_int_eq(found.events, 1);
    }
}
END_TEST

START_TEST(a_missing_bracket_is_allowed)
{
    static const char *const TEXTS[] = {
        "[{\"a\":1},{\"b\":2}",
        "[{\"a\":1},{\"b\":2}\n",
        "[{\"a\":1},{\"b\":2},",
        "[{\"a\":1},{\"b\":2},\n",
        "[{\"a\":1},{\"b\":2},{",
        "[{\"a\":1},{\"b\":2},{\"c",
        "[{\"a\":1},{\"b\":2},{\"c\"",
        "[{\"a\":1},{\"b\":2},{\"c\":",
        "[{\"a\":1},{\"b\":2},{\"c\":t",
        "[{\"a\":1},{\"b\":2},{\"c\":1",
        "[{\"a\":1},{\"b\":2},{\"c\":[",
        "[{\"a\":1},{\"b\":2},{\"c\":{",
        "[{\"a\":1},{\"b\":2},{\"c\":\"\\u00",
        "{\"traceEvents\":[{\"a\":1},{\"b\":2}]",
        "{\"traceEvents\":[{\"a\":1},{\"b\":2}],"};
    size_t i;

    for (i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); i++) {
        ck_assert_msg(scan(TEXTS[i]) == 0, "%s: %s", TEXTS[i], error.message);
        ck_assert(found.cut);
        ck_assert_int_eq(found.events, 2);
        ck_assert_uint_eq(found.size, strlen("{\"a\":1},{\"b\":2}"));
    }
}
END_TEST

START_TEST(a_trace_may_be_long)
{
    const size_t room = 400000;
    char *text = malloc(room), *at = text;

    *at++ = '[';
    while ((size_t)(at - text) < room - 40)
        at += sprintf(at, "{\"ts\":%ld},", (long)(at - text));
    at[-1] = ']';
    ck_assert_int_eq(scan_copy(text, (size_t)(at - text)), 0);
    ck_assert_int_gt(found.events, 20000);
    free(text);
}
END_TEST

/* ---- texts that are no trace -------------------------------------------- */

START_TEST(what_is_no_json_is_refused_with_its_line)
{
    refused("id,name\n1,a\n", "line 1: expected [ or {");
    refused("[{\"a\":1},\n{\"a\":1}\n{\"a\":1}]", "line 3: expected a comma");
    refused("[{\"a\":1},]", "an event, which is an object");
    refused("[1]", "an event, which is an object");
    refused("[{a:1}]", "a string in double quotes");
    refused("[{\"a\" 1}]", "a colon behind the name");
    refused("[{\"a\":}]", "a value");
    refused("[{\"a\":1,}]", "a string in double quotes");
    refused("[{\"a\":[1,]}]", "a value");
    refused("[{\"a\":[1 2]}]", "a comma or ]");
    refused("[{\"a\":{\"b\":1 2}}]", "a comma or }");
    refused("[{\"a\":nul}]", "true, false or null");
    refused("[{\"a\":True}]", "a value");
    refused("[{\"a\":.5}]", "a value");
    refused("[{\"a\":-x}]", "a digit");
    refused("[{\"a\":1.}]", "a digit");
    refused("[{\"a\":1e}]", "a digit");
    refused("[{\"a\":01}]", "a comma or }");
    refused("[{\"a\":\"\\x\"}]", "an escape");
    refused("[{\"a\":\"\\u00g0\"}]", "four hexadecimal digits");
    refused("[{\"a\":\"\n\"}]", "no control character");
    refused("[{}] []", "nothing behind the trace");
}
END_TEST

START_TEST(a_text_that_ends_before_an_event_is_refused)
{
    refused("", "the text ends in line 1, where [ or {");
    refused(" \n", "the text ends in line 2");
    refused("[", "the text ends");
    refused("[{\"a\":", "the text ends");
    refused("{", "the text ends");
    refused("{\"traceEvents\"", "a colon");
    refused("{\"traceEvents\":", "an array as traceEvents");
}
END_TEST

START_TEST(an_object_without_events_is_refused)
{
    refused("{}", "a string in double quotes");
    refused("{\"a\":1}", "a member traceEvents");
    refused("{\"a\":tru}", "true, false or null");
    refused("{\"traceEvents\":1}", "an array as traceEvents");
    refused("{\"traceEvents\":[{}x]}", "a comma or ]");
    refused("{\"traceEvents\":[{}] \"a\":1}", "a comma or }");
}
END_TEST

START_TEST(a_nul_is_a_character_like_any_other)
{
    ck_assert_int_eq(scan_copy("[{}\0]", 5), EINVAL);
    ck_assert_int_eq(scan_copy("[{\"a\":\"\\\0\"}]", 12), EINVAL);
    ck_assert_int_eq(scan_copy("[{\"a\":\"\\u00\0\"}]", 15), EINVAL);
}
END_TEST

START_TEST(values_within_values_have_a_limit)
{
    char text[300];

    memset(text, '[', sizeof(text));
    memcpy(text, "[{\"a\":", 6);
    ck_assert_int_eq(scan_copy(text, sizeof(text)), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "fewer values"));
}
END_TEST

int main(void)
{
    return suite_main(
        "scan", NULL, NULL,
        suite_tests("traces", an_array_of_events_is_a_trace,
                    so_is_an_object_with_such_an_array, a_trace_may_be_empty,
                    every_value_of_json_is_accepted,
                    a_missing_bracket_is_allowed, a_trace_may_be_long, NULL),
        suite_tests("refused", what_is_no_json_is_refused_with_its_line,
                    a_text_that_ends_before_an_event_is_refused,
                    an_object_without_events_is_refused,
                    a_nul_is_a_character_like_any_other,
                    values_within_values_have_a_limit, NULL),
        NULL);
}
