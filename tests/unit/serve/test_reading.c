/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts may be asked of a database that is only read. */
#include "reading.h"

#include <check.h>
#include <string.h>

#include "support/check_suite.h"

enum { SQLITE = 1, DUCKDB = 2, POSTGRESQL = 4, ALL = 7 };

static const struct {
    const char *sql;
    int passes; /* which of them let it pass */
} cases[] = {
    {"SELECT 1", ALL},
    {"select(1)", ALL},
    {"\t/* a */ -- b\n\r\f select 1 -- c", ALL},
    {"with a as (select 1) table a", ALL},
    {"VALUES (1)", ALL},
    {"explain select 1", ALL},
    {"explain analyze select 1", ALL},
    {"explain /* a */ analyse (select 1)", ALL},
    {"explain (format json) from a", ALL},
    {"explain analyze (format json, b) (select 1)", ALL},
    {"explain query plan select 1", SQLITE | POSTGRESQL},
    {"explain create view a as select 1", SQLITE | POSTGRESQL},
    {"explain analyze /* select */ checkpoint", SQLITE | POSTGRESQL},
    {"explain (format json) checkpoint", SQLITE | POSTGRESQL},
    {"explain analyze (checkpoint", SQLITE | POSTGRESQL},
    {"explain (", SQLITE | POSTGRESQL},
    {"explain", SQLITE | POSTGRESQL},
    {"table a", DUCKDB | POSTGRESQL},
    {"show a", DUCKDB | POSTGRESQL},
    {"((select 1))", DUCKDB | POSTGRESQL},
    {"/* /* */ attach */ select 1", DUCKDB | POSTGRESQL},
    {"from a", DUCKDB},
    {"describe a", DUCKDB},
    {"summarize a", DUCKDB},
    {"pivot a on b", DUCKDB},
    {"unpivot a on b", DUCKDB},
    {"", 0},
    {"-- only", 0},
    {"/* open", 0},
    {"/*/ select 1 */ attach 'x'", 0},
    {"/* select */ attach 'x'", 0},
    {"; select 1", ALL},
    {" ;; /* a */ ; select 1", ALL},
    {"; attach 'x'", 0},
    {"selected", 0},
    {"attach 'x' as y", 0},
    {"call enable_logging()", 0},
    {"set threads = 1", 0},
    {"begin read write", 0},
    {"commit", 0},
    {"prepare transaction 'x'", 0},
    {"copy a to 'x'", 0},
    {"pragma a", 0},
    {"\xef\xbb\xbf"
     "select 1",
     0},
    /* a carriage return ends a comment, but not SQLite's */
    {"--\rselect\nattach 'x'", DUCKDB | POSTGRESQL},
    {"--\rattach 'x'\nselect 1", SQLITE},
    /* SQLite executes the first statement alone */
    {"select 1;", ALL},
    {"select 1 ;; /* a */ -- b", ALL},
    {"select 1; attach 'x'", SQLITE},
    {"select 1;--\n;attach 'x'", SQLITE},
    {"select ';', \";\", 'a'';'; -- ;", ALL},
    {"select 'a', '; attach", ALL},
    {"select 'a''; attach 'x", ALL},
    {"select 'a'''; attach 'x'", SQLITE},
    {"select \"a''\"; attach 'x'", SQLITE},
    {"select 1 -- '\n; attach 'x'", SQLITE},
    {"select 1 /* ' */; attach 'x'", SQLITE},
    {"select 1 /* /* ; */ */", ALL},
    {"select 1 /* /* */ ; */", ALL},
    {"select 1 /* /* */ */ ; attach 'x'", SQLITE},
    {"select $$;$$, $a$;$$;$a$", ALL},
    {"select $1, $2", ALL},
    {"select $1;attach $$x$$", SQLITE},
    {"select a$$;attach $$x$$", SQLITE},
    {"select _1\xc3\xa4$a$;attach $a$x", SQLITE},
    {"select $a;attach $a$", SQLITE},
    {"select $a$; attach", ALL},
    {"select 1$$;$$", ALL},
    {"select e'\\'; attach 'x' --'", SQLITE},
    {"select e'\\'", ALL},
    {"select e'a'\n'\\''; attach 'x' --'", SQLITE},
    {"select e'\\';", ALL},
};

START_TEST(only_texts_that_read_pass)
{
    const char *sql = cases[_i].sql;

    const char *why;

    ck_assert_int_eq(uva__reading_check(UVA__KIND_OTHER, sql, &why), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_msg((uva__reading_check(UVA__KIND_SQLITE + i, sql, &why) ==
                       0) == ((cases[_i].passes >> i & 1) == 1),
                      "%d: %s", i, sql);
}
END_TEST

/* Of a text that changes no data, but is no statement. */
START_TEST(a_status_tells_faults_from_changes)
{
    static const struct {
        const char *sql;
        int sqlite, others;
    } texts[] = {{"selec 1", 400, 400},
                 {"", 400, 400},
                 {"-- only", 400, 400},
                 {"create table a (b int)", 403, 403},
                 {"; replace into a values (1)", 403, 403},
                 {"Vacuum", 403, 403},
                 {"(insert into a values (1))", 400, 403},
                 {"select 1; selec", 0, 403}};
    const char *why;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        for (int kind = UVA__KIND_SQLITE; kind <= UVA__KIND_POSTGRESQL; kind++)
            ck_assert_int_eq(
                uva__reading_check((enum uva__kind)kind, texts[i].sql, &why),
                kind == UVA__KIND_SQLITE ? texts[i].sqlite : texts[i].others);
}
END_TEST

START_TEST(a_misspelt_text_is_not_said_to_change_something)
{
    const char *why = NULL;

    ck_assert_int_eq(uva__reading_check(UVA__KIND_SQLITE, "selct 1", &why),
                     400);
    ck_assert_str_eq(why,
                     "a query begins with SELECT, WITH, VALUES or EXPLAIN");
    ck_assert_int_eq(uva__reading_check(UVA__KIND_SQLITE, " ; ", &why), 400);
    ck_assert_str_eq(why, "there is no statement");
    ck_assert_int_eq(uva__reading_check(UVA__KIND_DUCKDB, "insert", &why), 403);
    ck_assert_ptr_nonnull(strstr(why, "only read"));
}
END_TEST

START_TEST(rows_of_no_query_need_a_plain_statement)
{
    ck_assert(uva__reading_needs_plain("show all"));
    ck_assert(uva__reading_needs_plain("; show all"));
    ck_assert(uva__reading_needs_plain("/* a */ EXPLAIN select 1"));
    ck_assert(!uva__reading_needs_plain("select 'show'"));
    ck_assert(!uva__reading_needs_plain("showing"));
    ck_assert(!uva__reading_needs_plain(""));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("reading");

    tcase_add_loop_test(tc, only_texts_that_read_pass, 0,
                        sizeof(cases) / sizeof(*cases));
    tcase_add_test(tc, a_status_tells_faults_from_changes);
    tcase_add_test(tc, a_misspelt_text_is_not_said_to_change_something);
    tcase_add_test(tc, rows_of_no_query_need_a_plain_statement);
    return suite_main("serve_reading", NULL, NULL, tc, NULL);
}
