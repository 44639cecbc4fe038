/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with a real driver, that for SQLite which scripts/bootstrap
 * installs: queries, parameters, ingest, errors, many queries at one time, and
 * queries that never end, between their rows or in a call, and are cancelled.
 */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/value_cases.h"
#include "uvarrow/adbc.h"
#include "uvarrow/arrow.h"

enum { SKIP = 77, MANY = 1000 };

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct recording_consumer got[MANY];
static struct uva_stream *streams[MANY];
static char file[] = "/tmp/uva_sqlite_XXXXXX";

static void set_up(void)
{
    const struct uva_pair options[] = {{.key = "uri", .value = file}, {0}};
    struct uva_error error;
    int fd;

    (void)strcpy(file + strlen(file) - 6, "XXXXXX");
    fd = mkstemp(file);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    fixture_open(&f, 0);
    ck_assert_int_eq(
        uva_adbc_pool_new(f.loop.runtime,
                          &(struct uva_adbc_pool_options){
                              .driver = UVA_TEST_DRIVER, .options = options},
                          &pool, &error),
        0);
}

static void tear_down(void)
{
    uva_adbc_pool_release(pool);
    fixture_close(&f);
    ck_assert_int_eq(unlink(file), 0);
}

static void start(int i, const struct uva_adbc_query *query)
{
    recording_init(&got[i]);
    got[i].transcribes = false;
    streams[i] = uva_stream_from_query(pool, query);
    recording_start(&got[i], streams[i]);
}

static void await_end(int i)
{
    recording_await_done(&got[i], &f.loop);
    uva_stream_release(streams[i]);
}

static int ask(const char *sql, struct ArrowArrayStream *parameters)
{
    start(0, &(struct uva_adbc_query){.sql = sql, .parameters = parameters});
    await_end(0);
    return got[0].outcome.error.code;
}

/* Gives five rows with one column, as a blocking stream. */
static struct ArrowArrayStream five_rows(struct fixture *source)
{
    struct ArrowArrayStream rows;

    fixture_open_beside(source, 5, &f);
    source->stream = fixture_blocking(source);
    ck_assert_int_eq(
        uva_stream_to_arrow_stream(source->stream, NULL, &rows, NULL), 0);
    return rows;
}

START_TEST(rows_come_and_errors_are_mapped)
{
    ck_assert_int_eq(ask("CREATE TABLE t (n INTEGER)", NULL), 0);
    ck_assert_int_eq(ask("INSERT INTO t VALUES (1), (2), (3)", NULL), 0);
    ck_assert_int_eq(ask("SELECT n FROM t", NULL), 0);
    ck_assert_int_eq(got[0].rows, 3);
    ck_assert_int_eq(ask("SELECT n FROM missing", NULL), EINVAL);
    text_contains(got[0].outcome.error.message, "no such table: missing");
    ck_assert_int_eq(ask("SELECT n FROM t", NULL), 0);
}
END_TEST

/* Returns how many rows a query has changed. */
static int64_t update(const char *sql, bool states_it)
{
    int64_t rows;

    start(0, &(struct uva_adbc_query){.sql = sql,
                                      .result = states_it ? UVA_ADBC_CHANGES
                                                          : UVA_ADBC_ROWS});
    recording_await_done(&got[0], &f.loop);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got[0].rows, 0);
    rows = uva_adbc_rows_changed(uva_stream_get_info(streams[0]));
    uva_stream_release(streams[0]);
    return rows;
}

START_TEST(changed_rows_are_counted_without_a_result)
{
    ck_assert_int_eq(ask("CREATE TABLE c (n INTEGER)", NULL), 0);
    ck_assert_int_eq(update("INSERT INTO c VALUES (1), (2), (3)", true), 3);
    ck_assert_int_eq(update("UPDATE c SET n = 4 WHERE n > 1", true), 2);
    ck_assert_int_eq(update("DELETE FROM c WHERE n > 4", true), 0);
    ck_assert_int_eq(update("DELETE FROM c WHERE n = 4", false), -1);
    ck_assert_int_eq(ask("SELECT n FROM c", NULL), 0);
    ck_assert_int_eq(got[0].rows, 1);
}
END_TEST

START_TEST(many_queries_share_the_connections)
{
    for (int i = 0; i < MANY; i++)
        start(i, &(struct uva_adbc_query){.sql = "SELECT 1 UNION SELECT 2"});
    for (int i = 0; i < MANY; i++) {
        await_end(i);
        recording_ended(&got[i], UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(got[i].rows, 2);
    }
}
END_TEST

static bool has_first(void *ctx)
{
    (void)ctx;
    return got[0].batches > 0;
}

START_TEST(a_lock_is_waited_for_as_the_pool_has_it)
{
    const struct uva_pair options[] = {{.key = "uri", .value = file}, {0}};

    ck_assert_int_eq(ask("CREATE TABLE t AS SELECT 1 AS i", NULL), 0);
    uva_adbc_pool_release(pool);
    ck_assert_int_eq(
        uva_adbc_pool_new(
            f.loop.runtime,
            &(struct uva_adbc_pool_options){
                .driver = UVA_TEST_DRIVER, .options = options, .lock_ms = 4711},
            &pool, NULL),
        0);
    ck_assert_int_eq(
        ask("INSERT INTO t SELECT timeout FROM pragma_busy_timeout", NULL), 0);
    ck_assert_int_eq(ask("SELECT i FROM t WHERE i = 4711", NULL), 0);
    ck_assert_int_eq(got[0].rows, 1);
}
END_TEST

START_TEST(a_query_without_an_end_is_cancelled)
{
    start(0, &(struct uva_adbc_query){
                 .sql = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL "
                        "SELECT n + 1 FROM c) SELECT n FROM c"});
    loop_until(&f.loop, has_first, NULL);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    recording_ended(&got[0], UVA_END_CANCELLED, ECANCELED, "");
    ck_assert_int_eq(ask("SELECT 1", NULL), 0);
}
END_TEST

static struct uva_adbc_pool_stats stats_now(void)
{
    struct uva_adbc_pool_stats stats;

    uva_adbc_pool_get_stats(pool, &stats);
    loop_nudge(&f.loop); /* a worker gives no event */
    (void)sched_yield();
    return stats;
}

static bool has_connection(void *ctx)
{
    (void)ctx;
    return stats_now().queries > 0;
}

static bool has_returned(void *ctx)
{
    const struct uva_adbc_pool_stats stats = stats_now();

    (void)ctx;
    return stats.connections_used == 0 && stats.connections_stuck == 0;
}

START_TEST(a_call_without_an_end_is_interrupted)
{
    start(0, &(struct uva_adbc_query){
                 .sql = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL "
                        "SELECT n + 1 FROM c) SELECT max(n) FROM c",
                 .result = _i == 1 ? UVA_ADBC_CHANGES : UVA_ADBC_ROWS});
    loop_until(&f.loop, has_connection, NULL);
    uva_stream_cancel(streams[0], 0, NULL);
    await_end(0);
    recording_ended(&got[0], UVA_END_CANCELLED, ECANCELED, "");
    loop_until(&f.loop, has_returned, NULL);
    ck_assert_int_eq(ask("SELECT 1", NULL), 0);
}
END_TEST

START_TEST(rows_are_ingested_and_bound)
{
    struct fixture source = {0};
    struct ArrowArrayStream rows = five_rows(&source);

    start(0, &(struct uva_adbc_query){.ingest_table = "made",
                                      .parameters = &rows});
    await_end(0);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(ask("SELECT * FROM made", NULL), 0);
    ck_assert_int_gt(got[0].rows, 0);
    fixture_close(&source);
}
END_TEST

START_TEST(memory_is_one_database_of_a_pool)
{
    static const char *const names[] = {":memory:", "file::memory:"};
    const struct uva_pair options[] = {{.key = "uri", .value = names[_i]}, {0}};
    struct uva_adbc_pool *file_pool = pool;

    ck_assert_int_eq(
        uva_adbc_pool_new(f.loop.runtime,
                          &(struct uva_adbc_pool_options){
                              .driver = UVA_TEST_DRIVER, .options = options},
                          &pool, NULL),
        0);
    ck_assert_int_eq(ask("CREATE TABLE t (n INTEGER)", NULL), 0);
    ck_assert_int_eq(ask("INSERT INTO t VALUES (1), (2), (3)", NULL), 0);
    ck_assert_int_eq(ask("SELECT n FROM t", NULL), 0);
    ck_assert_int_eq(got[0].rows, 3);
    uva_adbc_pool_release(pool);
    pool = file_pool;
    ck_assert_int_ne(ask("SELECT n FROM t", NULL), 0);
}
END_TEST

START_TEST(what_a_statement_leaves_ends_with_it)
{
    ck_assert_int_eq(ask("CREATE TABLE t (n INTEGER)", NULL), 0);
    ck_assert_int_eq(ask("CREATE TEMP VIEW t AS SELECT 7 UNION SELECT 8", NULL),
                     0);
    ck_assert_int_eq(ask("SELECT * FROM t", NULL), 0);
    ck_assert_int_eq(got[0].rows, 0);
}
END_TEST

/* The driver would execute the first one alone, without an error. */
START_TEST(several_statements_are_refused_before_the_first)
{
    ck_assert_int_eq(ask("CREATE TABLE t (n INTEGER)", NULL), 0);
    for (int update = 0; update < 2; update++) {
        start(0, &(struct uva_adbc_query){
                     .sql = "INSERT INTO t VALUES (1);INSERT INTO t VALUES (2)",
                     .result = update ? UVA_ADBC_CHANGES : UVA_ADBC_ROWS});
        await_end(0);
        recording_ended(&got[0], UVA_END_FAILED, EINVAL, "several statements");
    }
    ck_assert_int_eq(ask("SELECT n FROM t", NULL), 0);
    ck_assert_int_eq(got[0].rows, 0);
    ck_assert_int_eq(ask("CREATE TRIGGER a AFTER INSERT ON t BEGIN"
                         " UPDATE t SET n = 7; DELETE FROM t; END; -- it",
                         NULL),
                     0);
    ck_assert_int_eq(ask("INSERT INTO t VALUES (1); ;", NULL), 0);
    ck_assert_int_eq(ask("SELECT n FROM t", NULL), 0);
    ck_assert_int_eq(got[0].rows, 0);
}
END_TEST

/* The driver takes autocommit of an open connection only. */
START_TEST(a_pool_without_autocommit_executes_queries)
{
    static const struct uva_pair manual[] = {
        {.key = ADBC_CONNECTION_OPTION_AUTOCOMMIT,
         .value = ADBC_OPTION_VALUE_DISABLED},
        {0}};
    const struct uva_pair options[] = {{.key = "uri", .value = file}, {0}};
    struct uva_adbc_pool *other = pool;

    ck_assert_int_eq(ask("CREATE TABLE t (n INTEGER)", NULL), 0);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = UVA_TEST_DRIVER,
                                           .options = options,
                                           .connection_options = manual},
                                       &pool, NULL),
                     0);
    ck_assert_int_eq(ask("INSERT INTO t VALUES (1)", NULL), 0);
    ck_assert_int_eq(ask("SELECT n FROM t", NULL), 0);
    ck_assert_int_eq(got[0].rows, 0); /* a pool does not commit */
    uva_adbc_pool_release(pool);
    pool = other;
}
END_TEST

static int list(struct uva_stream *stream)
{
    recording_init(&got[0]);
    streams[0] = stream;
    recording_start(&got[0], streams[0]);
    await_end(0);
    return got[0].outcome.error.code;
}

static void on_listed(void *ctx, const struct uva_stream_info *info,
                      struct ArrowDeviceArray *batches, size_t count,
                      const struct uva_outcome *outcome)
{
    struct uva_pair name;

    (void)batches;
    (void)count;
    ck_assert_int_eq(outcome->error.code, 0);
    ck_assert_int_eq(uva_metadata_get(info->metadata, "adbc.driver", &name), 0);
    ck_assert_uint_eq(name.value_size, strlen("ADBC SQLite Driver"));
    ck_assert_mem_eq(name.value, "ADBC SQLite Driver", name.value_size);
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

START_TEST(a_list_names_the_driver)
{
    bool done = false;

    streams[0] = uva_stream_from_objects(pool, NULL);
    ck_assert_int_eq(uva_stream_collect(streams[0], 0, on_listed, &done, NULL),
                     0);
    loop_until(&f.loop, is_set, &done);
    uva_stream_release(streams[0]);
}
END_TEST

START_TEST(the_catalog_is_listed)
{
    ck_assert_int_eq(ask("CREATE TABLE t (n INTEGER, name TEXT)", NULL), 0);
    ck_assert_int_eq(list(uva_stream_from_objects(pool, NULL)), 0);
    ck_assert_int_eq(got[0].rows, 1); /* the catalog main */
    ck_assert_int_eq(list(uva_stream_from_table_schema(pool, NULL, NULL, "t")),
                     0);
    ck_assert_int_eq(got[0].schemas, 1);
    ck_assert_int_eq(got[0].rows, 0);
    ck_assert_int_ne(
        list(uva_stream_from_table_schema(pool, NULL, NULL, "missing")), 0);
    ck_assert_int_eq(list(uva_stream_from_partition(pool, "", 0, NULL)),
                     ENOTSUP);
}
END_TEST

START_TEST(values_of_each_type_are_bound)
{
    start(0, &(struct uva_adbc_query){.sql = value_cases[_i].sqlite,
                                      .values = value_cases[_i].values});
    await_end(0);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got[0].rows, 1);
}
END_TEST

START_TEST(values_are_bound_by_name)
{
    static const struct uva_value values[] = {
        {.type = UVA_VALUE_TEXT, .name = "b", .data = "x"},
        {.type = UVA_VALUE_INT, .name = "a", .integer = 1},
        {0}};
    static const char *const queries[] = {"SELECT 1 WHERE :a = 1 AND :b = 'x'",
                                          "SELECT 1 WHERE @a = 1 AND $b = 'x'"};

    start(0, &(struct uva_adbc_query){.sql = queries[_i], .values = values});
    await_end(0);
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got[0].rows, 1);
}
END_TEST

START_TEST(values_are_written)
{
    static const struct uva_value values[] = {
        {.type = UVA_VALUE_INT, .integer = 7}, {.type = UVA_VALUE_NULL}, {0}};

    ck_assert_int_eq(ask("CREATE TABLE t (n INTEGER, m INTEGER)", NULL), 0);
    start(0, &(struct uva_adbc_query){.sql = "INSERT INTO t VALUES (?, ?)",
                                      .result = UVA_ADBC_CHANGES,
                                      .values = values});
    recording_await_done(&got[0], &f.loop);
    ck_assert_int_eq(uva_adbc_rows_changed(uva_stream_get_info(streams[0])), 1);
    uva_stream_release(streams[0]);
    ck_assert_int_eq(ask("SELECT n FROM t WHERE n = 7 AND m IS NULL", NULL), 0);
    ck_assert_int_eq(got[0].rows, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sqlite");

    if (access(UVA_TEST_DRIVER, R_OK) != 0)
        return SKIP;
    tcase_add_test(tc, rows_come_and_errors_are_mapped);
    tcase_add_test(tc, changed_rows_are_counted_without_a_result);
    tcase_add_test(tc, what_a_statement_leaves_ends_with_it);
    tcase_add_loop_test(tc, memory_is_one_database_of_a_pool, 0, 2);
    tcase_add_test(tc, many_queries_share_the_connections);
    tcase_add_test(tc, a_query_without_an_end_is_cancelled);
    tcase_add_loop_test(tc, a_call_without_an_end_is_interrupted, 0, 2);
    tcase_add_test(tc, a_lock_is_waited_for_as_the_pool_has_it);
    tcase_add_test(tc, rows_are_ingested_and_bound);
    tcase_add_test(tc, a_list_names_the_driver);
    tcase_add_test(tc, the_catalog_is_listed);
    tcase_add_test(tc, a_pool_without_autocommit_executes_queries);
    tcase_add_test(tc, several_statements_are_refused_before_the_first);
    tcase_add_test(tc, values_are_written);
    tcase_add_loop_test(tc, values_of_each_type_are_bound, 0, VALUE_CASES);
    tcase_add_loop_test(tc, values_are_bound_by_name, 0, 2);
    return suite_main("adbc_sqlite", set_up, tear_down, tc, NULL);
}
