/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts of SQL are taken apart: those of a database whose reading is
 * known. */
#include "script.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#define PROGRAM "DECLARE x INT64; SET x = 1; SELECT x"
#define ESCAPED "SELECT 'it\\'s; fine'"

static const struct {
    const char *driver, *uri, *sql;
    size_t count;
} TEXTS[] = {
    {"sqlite", NULL, "SELECT 1; SELECT 2", 2},
    {"duckdb", NULL, "SELECT E'it\\'s; fine'; SELECT $$;$$", 2},
    {"/lib/libadbc_driver_postgresql.so", NULL, "SELECT E'it\\'s; fine'", 1},
    {NULL, "postgresql://host/db", "SELECT e'\\''; SELECT 2", 2},
    {NULL, "postgres://host/db", "SELECT 1; SELECT 2", 2},
    {"bigquery", NULL, PROGRAM, 1},
    {"flightsql", NULL, PROGRAM, 1},
    {NULL, "grpc://host", PROGRAM, 1},
    {"mysql", NULL, ESCAPED, 1},
    {"mysql", NULL, "SELECT 1 # one; two", 1},
    {"mysql", NULL, " -- nothing\n;", 0},
};

START_TEST(texts_are_taken_apart_where_their_reading_is_known)
{
    const struct uva__options options = {
        .driver = TEXTS[_i].driver, .uri = TEXTS[_i].uri, .sql = TEXTS[_i].sql};
    struct uva__script script;

    ck_assert_int_eq(uva__script_init(&script, &options, NULL), 0);
    ck_assert_uint_eq(script.count, TEXTS[_i].count);
    if (script.count == 1)
        ck_assert_str_eq(script.texts[0], TEXTS[_i].sql);
    uva__script_fini(&script);
}
END_TEST

START_TEST(a_whole_text_is_explained)
{
    const struct uva__options options = {
        .driver = "mysql", .sql = ESCAPED ";", .extras = UVA__EXTRA_EXPLAIN};
    struct uva__script script;

    ck_assert_int_eq(uva__script_init(&script, &options, NULL), 0);
    ck_assert_uint_eq(script.count, 1);
    ck_assert_str_eq(script.texts[0], "EXPLAIN " ESCAPED);
    uva__script_fini(&script);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    const struct uva__options options = {.driver = "sqlite",
                                         .sql = "SELECT 1; SELECT 2"};
    struct uva__script script;
    int code = ENOMEM;

    for (int n = 1; n < 100; n++) {
        faulty_libc_fail(n);
        code = uva__script_init(&script, &options, NULL);
        uva__script_fini(&script);
        if (!faulty_libc_stop()) /* there are not so many */
            break;
        ck_assert_int_eq(code, ENOMEM);
    }
    ck_assert_int_eq(code, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("script");

    suite_add_loops(tc, 0, sizeof(TEXTS) / sizeof(*TEXTS),
                    texts_are_taken_apart_where_their_reading_is_known, NULL);
    suite_add(tc, a_whole_text_is_explained, each_allocation_may_fail, NULL);
    return suite_main("script", NULL, NULL, tc, NULL);
}
