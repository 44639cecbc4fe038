/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with DuckDB, which is a module of Python here: its entry point has
 * another name. Rows, errors, a cancel, a thousand queries, the catalog.
 * Without it the test is skipped. */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/value_cases.h"
#include "uvarrow/adbc.h"

enum { SKIP = 77, MANY = 1000 };

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct recording_consumer got[MANY];
static struct uva_stream *streams[MANY];

static void set_up(void)
{
    fixture_open(&f, 0);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = UVA_TEST_DUCKDB},
                                       &pool, NULL),
                     0);
}

static void tear_down(void)
{
    uva_adbc_pool_release(pool);
    fixture_close(&f);
}

static void start(int i, struct uva_stream *stream)
{
    recording_init(&got[i]);
    streams[i] = stream;
    recording_start(&got[i], stream);
}

static void await_end(int i)
{
    recording_await_done(&got[i], &f.loop);
    uva_stream_release(streams[i]);
}

static struct uva_stream *query(const char *sql)
{
    return uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
}

static int ask(const char *sql)
{
    start(0, query(sql));
    await_end(0);
    return got[0].outcome.error.code;
}

START_TEST(rows_come_and_errors_are_mapped)
{
    ck_assert_int_eq(ask("CREATE TABLE t AS SELECT * FROM range(100000) r(n)"),
                     0);
    ck_assert_int_eq(ask("SELECT n FROM t"), 0);
    ck_assert_int_eq(got[0].rows, 100000);
    ck_assert_int_ne(ask("SELECT n FROM missing"), 0);
    text_contains(got[0].outcome.error.message, "missing");
    ck_assert_int_eq(ask("SELECT n FROM t LIMIT 1"), 0);
}
END_TEST

/* Returns how many rows a query has changed. */
static int64_t update(const char *sql)
{
    int64_t rows;

    start(0, uva_stream_from_query(
                 pool, &(struct uva_adbc_query){.sql = sql,
                                                .result = UVA_ADBC_CHANGES}));
    recording_await_done(&got[0], &f.loop);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got[0].rows, 0);
    rows = uva_adbc_rows_changed(uva_stream_get_info(streams[0]));
    uva_stream_release(streams[0]);
    return rows;
}

START_TEST(changed_rows_are_counted_without_a_result)
{
    ck_assert_int_eq(ask("CREATE TABLE c (n INTEGER)"), 0);
    ck_assert_int_eq(update("INSERT INTO c VALUES (1), (2), (3)"), 3);
    ck_assert_int_eq(update("UPDATE c SET n = 4 WHERE n > 1"), 2);
    ck_assert_int_eq(update("DELETE FROM c WHERE n > 4"), 0);
    ck_assert_int_eq(ask("SELECT n FROM c"), 0);
    ck_assert_int_eq(got[0].rows, 3);
}
END_TEST

START_TEST(the_catalog_is_listed)
{
    ck_assert_int_eq(ask("CREATE TABLE u (n BIGINT)"), 0);
    start(0, uva_stream_from_objects(pool, NULL));
    await_end(0);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_gt(got[0].rows, 0);
    start(0, uva_stream_from_table_schema(pool, NULL, NULL, "u"));
    await_end(0);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got[0].schemas, 1);
}
END_TEST

START_TEST(many_queries_share_the_connections)
{
    for (int i = 0; i < MANY; i++)
        start(i, query("SELECT * FROM range(2)"));
    for (int i = 0; i < MANY; i++) {
        await_end(i);
        recording_ended(&got[i], UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(got[i].rows, 2);
    }
}
END_TEST

static bool has_rows(void *ctx)
{
    (void)ctx;
    return got[0].rows > 0;
}

START_TEST(a_query_is_cancelled_between_its_rows)
{
    start(0, query("SELECT * FROM range(1000000000000) r(n)"));
    loop_until(&f.loop, has_rows, NULL);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    recording_ended(&got[0], UVA_END_CANCELLED, ECANCELED, "");
    ck_assert_int_eq(ask("SELECT 1"), 0);
}
END_TEST

START_TEST(values_of_each_type_are_bound)
{
    start(0,
          uva_stream_from_query(pool, &(struct uva_adbc_query){
                                          .sql = value_cases[_i].duckdb,
                                          .values = value_cases[_i].values}));
    await_end(0);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got[0].rows, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("duckdb");

    if (access(UVA_TEST_DUCKDB, R_OK) != 0 ||
        dlopen(UVA_TEST_LIBPYTHON, RTLD_LAZY | RTLD_GLOBAL) == NULL)
        return SKIP;
    suite_add(tc, rows_come_and_errors_are_mapped,
              changed_rows_are_counted_without_a_result, the_catalog_is_listed,
              many_queries_share_the_connections,
              a_query_is_cancelled_between_its_rows, NULL);
    tcase_add_loop_test(tc, values_of_each_type_are_bound, 0, VALUE_CASES);
    return suite_main("adbc_duckdb", set_up, tear_down, tc, NULL);
}
