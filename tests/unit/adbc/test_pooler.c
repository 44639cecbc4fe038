/* SPDX-License-Identifier: Apache-2.0 */
/* A pooler that is recognised, and the statements that may be executed through
 * it. The fake driver answers as PostgreSQL would, and is called so. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adbc/known.h"
#include "adbc/pooler.h"
#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

static struct fixture f;
static struct uva_adbc_pool *pool;
static char folder[] = "/tmp/uva_pooler_XXXXXX", path[100];

static void set_up(void)
{
    fake_driver_reset();
    (void)strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/libadbc_driver_postgresql.so",
                   folder);
    ck_assert_int_eq(symlink(FAKE, path), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

/* ---- recognised poolers ------------------------------------------------- */

static const struct {
    const char *settings, *pids;
    enum uva__pooler want;
    long asked; /* for process ids */
} looks[] = {
    {"0", "1", UVA__POOLER_NONE, 0},
    {"1", "1", UVA__POOLER_SHARES, 2},    /* one backend for both */
    {"1", "12", UVA__POOLER_FOUND, 8},    /* each has its own */
    {"1", "1232", UVA__POOLER_SHARES, 3}, /* the first one gets another */
    {"1", "1213", UVA__POOLER_SHARES, 4}, /* the second one does */
    {"1", "1212121", UVA__POOLER_SHARES, 8} /* the last answer */,
    {"1", "x", UVA__POOLER_FOUND, 1},
    {"1", "1x", UVA__POOLER_FOUND, 2},
    {"x", "1", UVA__POOLER_NONE, 0}, /* a failure is no pooler */
    {"s", "1", UVA__POOLER_NONE, 0},
    {"b", "1", UVA__POOLER_NONE, 0},
    {"e", "1", UVA__POOLER_NONE, 0},
    {"n", "1", UVA__POOLER_NONE, 0},
    {"t", "1", UVA__POOLER_NONE, 0},
    {"r", "1", UVA__POOLER_NONE, 0},
};

START_TEST(sessions_that_share_a_backend_are_recognised)
{
    struct fake_query q;

    fake_driver_open(&q, "rows 1");
    fake_driver.settings = looks[_i].settings;
    fake_driver.pids = looks[_i].pids;
    ck_assert_int_eq(uva__pooler_look(&q.database, &q.connection),
                     looks[_i].want);
    ck_assert_int_eq(atomic_load(&fake_driver.asked_pids), looks[_i].asked);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 1);
    fake_driver_close(&q);
}
END_TEST

/* Without a second session no backend can be seen to be shared. */
START_TEST(a_second_session_may_be_refused)
{
    struct fake_query q;

    fake_driver_open(&q, "rows 1");
    fake_driver.settings = fake_driver.pids = "1";
    fake_driver.no_connection = _i == 0;
    fake_driver.no_connect = _i == 1;
    ck_assert_int_eq(uva__pooler_look(&q.database, &q.connection),
                     UVA__POOLER_FOUND);
    fake_driver_close(&q);
}
END_TEST

static AdbcStatusCode refuse_option(struct AdbcStatement *statement,
                                    const char *key, const char *value,
                                    struct AdbcError *error)
{
    (void)statement;
    (void)key;
    (void)value;
    (void)error;
    return ADBC_STATUS_NOT_IMPLEMENTED;
}

START_TEST(a_driver_without_statements_or_queries_has_no_pooler)
{
    struct fake_query q;
    AdbcStatusCode (*sql)(struct AdbcStatement *, const char *,
                          struct AdbcError *);

    fake_driver_open(&q, "rows 1");
    fake_driver.settings = fake_driver.pids = "1";
    sql = q.driver.StatementSetSqlQuery;
    q.driver.StatementSetSqlQuery = NULL;
    ck_assert_int_eq(uva__pooler_look(&q.database, &q.connection),
                     UVA__POOLER_NONE);
    q.driver.StatementSetSqlQuery = sql;
    q.driver.StatementSetOption = refuse_option;
    ck_assert_int_eq(uva__pooler_look(&q.database, &q.connection),
                     UVA__POOLER_NONE);
    q.driver.StatementSetOption = NULL;
    ck_assert_int_eq(uva__pooler_look(&q.database, &q.connection),
                     UVA__POOLER_NONE);
    fake_driver_close(&q);
}
END_TEST

/* How a result differs in one column, or in one row. */
static int64_t odd_columns, odd_rows;
static struct ArrowArrayStream real;

static int odd_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    const int code = real.get_schema(self, out);

    out->n_children = odd_columns;
    return code;
}

static int odd_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    const int code = real.get_next(self, out);

    out->length = odd_rows;
    return code;
}

static AdbcStatusCode (*execute)(struct AdbcStatement *,
                                 struct ArrowArrayStream *, int64_t *,
                                 struct AdbcError *);

static AdbcStatusCode execute_oddly(struct AdbcStatement *statement,
                                    struct ArrowArrayStream *out, int64_t *rows,
                                    struct AdbcError *error)
{
    const AdbcStatusCode status = execute(statement, out, rows, error);

    real = *out;
    out->get_schema = odd_schema;
    out->get_next = odd_next;
    return status;
}

/* The last ones are a number. */
START_TEST(a_result_that_is_no_number_is_no_pooler)
{
    struct fake_query q;

    odd_columns = _i == 0 ? 0 : 1;
    odd_rows = _i == 1 ? 0 : 1;
    fake_driver_open(&q, "rows 1");
    fake_driver.settings = fake_driver.pids = "1";
    execute = q.driver.StatementExecuteQuery;
    q.driver.StatementExecuteQuery = execute_oddly;
    ck_assert_int_eq(uva__pooler_look(&q.database, &q.connection),
                     _i < 2 ? UVA__POOLER_NONE : UVA__POOLER_SHARES);
    fake_driver_close(&q);
}
END_TEST

/* ---- executed statements ------------------------------------------------ */

static char logged[1000];

static void write_log(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    ck_assert_int_eq(record->level, UVA_LOG_WARN);
    (void)snprintf(logged + strlen(logged), sizeof(logged) - strlen(logged),
                   "%s|", record->message);
}

static void make(const char *uri)
{
    logged[0] = '\0';
    fixture_open_with(&f, 0,
                      &(struct uva_runtime_options){.log.write = write_log});
    ck_assert_int_eq(
        uva_adbc_pool_new(f.loop.runtime,
                          &(struct uva_adbc_pool_options){
                              .driver = path,
                              .entrypoint = "AdbcDriverFakeInit",
                              .options =
                                  (const struct uva_pair[]){
                                      {.key = "uri", .value = uri}, {0}}},
                          &pool, NULL),
        0);
}

static void finish(void)
{
    uva_adbc_pool_release(pool);
    fixture_close(&f);
}

static void play(struct uva_stream *stream)
{
    recording_init(&f.got);
    recording_start(&f.got, stream);
    recording_await_done(&f.got, &f.loop);
    uva_stream_release(stream);
}

static void ask(const struct uva_adbc_query *query, int code)
{
    play(uva_stream_from_query(pool, query));
    recording_ended(&f.got, code == 0 ? UVA_END_COMPLETE : UVA_END_FAILED, code,
                    code == 0 ? "" : "pool_mode=session");
}

static struct ArrowArrayStream rows_of_fake(struct fake_query *q)
{
    struct ArrowArrayStream rows;
    struct AdbcError error = ADBC_ERROR_INIT;
    int64_t count;

    fake_driver_open(q, "rows 1");
    ck_assert_int_eq(
        q->driver.StatementExecuteQuery(&q->statement, &rows, &count, &error),
        ADBC_STATUS_OK);
    return rows;
}

START_TEST(what_takes_two_calls_is_refused_where_sessions_share_a_backend)
{
    static const struct uva_pair at_once[] = {
        {.key = "adbc.postgresql.use_copy", .value = "false"}, {0}};
    static const struct uva_pair copied[] = {
        {.key = "adbc.postgresql.use_copy", .value = "true"}, {0}};
    struct ArrowArrayStream rows;
    struct fake_query q;

    fake_driver.settings = fake_driver.pids = "1";
    make("postgresql://there");
    ask(&(struct uva_adbc_query){.sql = "rows 1"}, ENOTSUP);
    ask(&(struct uva_adbc_query){.sql = "rows 1", .options = copied}, ENOTSUP);
    ask(&(struct uva_adbc_query){.sql = "rows 1", .options = at_once}, 0);
    rows = rows_of_fake(&q);
    ask(&(struct uva_adbc_query){.sql = "rows 1",
                                 .options = at_once,
                                 .parameters = &rows},
        ENOTSUP);
    fake_driver_close(&q);
    rows = rows_of_fake(&q);
    ask(&(struct uva_adbc_query){.ingest_table = "t", .parameters = &rows}, 0);
    fake_driver_close(&q);
    play(uva_stream_from_table_schema(pool, NULL, NULL, "t"));
    recording_ended(&f.got, UVA_END_FAILED, ENOTSUP, "pool_mode=session");
    finish();
    /* it is looked for once, with a second session */
    ck_assert_int_eq(atomic_load(&fake_driver.asked_settings), 1);
    ck_assert_int_eq(atomic_load(&fake_driver.asked_pids), 2);
}
END_TEST

START_TEST(sessions_with_backends_of_their_own_execute_all_with_a_warning)
{
    const char *end;

    fake_driver.settings = "1";
    fake_driver.pids = "12";
    make("postgresql://there");
    for (int i = 0; i < 2; i++)
        ask(&(struct uva_adbc_query){.sql = "rows 1"}, 0);
    finish();
    ck_assert_ptr_nonnull(strstr(logged, "pool_mode=session"));
    end = strchr(logged, '|'); /* it is stated once */
    ck_assert_str_eq(end, "|");
}
END_TEST

/* A transaction keeps its backend to its end. */
START_TEST(sessions_that_are_a_transaction_execute_all)
{
    struct uva_adbc_pool *outer, *session;

    fake_driver.settings = fake_driver.pids = "1";
    make("postgresql://there");
    outer = pool;
    for (int autocommit = 0; autocommit < 2; autocommit++) {
        ck_assert_int_eq(
            uva_adbc_pool_session(
                outer, &(struct uva_adbc_session){.autocommit = autocommit},
                &session, NULL),
            0);
        pool = session;
        ask(&(struct uva_adbc_query){.sql = "rows 1"},
            autocommit ? ENOTSUP : 0);
        uva_adbc_pool_release(session);
    }
    pool = outer;
    finish();
}
END_TEST

/* A pooler is recognised by it. */
START_TEST(the_name_of_the_application_and_limits_are_given)
{
    fake_driver.settings = fake_driver.pids = "0";
    make("postgresql://there?connect_timeout=2");
    ask(&(struct uva_adbc_query){.sql = "rows 1"}, 0);
    ck_assert_str_eq(logged, "");
    ck_assert_str_eq(fake_driver.uri,
                     "postgresql://there?connect_timeout=2&"
                     "fallback_application_name=uvarrow&client_encoding=UTF8&"
                     "keepalives=1&keepalives_idle=6&keepalives_interval=3&"
                     "keepalives_count=3&tcp_user_timeout=15000");
    finish();
    make("host=there keepalives=0");
    ask(&(struct uva_adbc_query){.sql = "rows 1"}, 0);
    ck_assert_str_eq(fake_driver.uri,
                     "host=there keepalives=0 connect_timeout=5 "
                     "fallback_application_name=uvarrow client_encoding=UTF8 "
                     "keepalives_idle=6 keepalives_interval=3 "
                     "keepalives_count=3 tcp_user_timeout=15000");
    finish();
}
END_TEST

static bool is_known; /* by its option, as the fake driver states no name */
static struct uva__known known = {.reset = UVA__RESET_CLOSE,
                                  .batch_option =
                                      "adbc.postgresql.batch_size_hint_bytes"};

const struct uva__known *
__real_uva__known_find(struct AdbcConnection *connection);
const struct uva__known *
__wrap_uva__known_find(struct AdbcConnection *connection);

const struct uva__known *
__wrap_uva__known_find(struct AdbcConnection *connection)
{
    return is_known ? &known : __real_uva__known_find(connection);
}

/* The pool's size is for queries without their own; some drivers count rows. */
START_TEST(the_size_of_batches_is_that_of_the_pool_or_in_rows)
{
    static const struct {
        int64_t pool, query;
        bool counts_rows;
        const char *given;
    } cases[] = {{0, 0, false, "262144"},
                 {5, 0, false, "5"},
                 {5, 7, false, "7"},
                 {0, 0, true, "1024"},
                 {1, 0, true, "1"},
                 {0, 257, true, "2"},
                 {0, INT64_MAX, true, "2147483647"}};
    const struct uva_pair uri[] = {
        {.key = "uri", .value = "postgresql://there"}, {0}};

    is_known = true;
    fake_driver.settings = fake_driver.pids = "0";
    known.traits = cases[_i].counts_rows ? UVA__KNOWN_COUNTS_ROWS : 0;
    make("postgresql://there");
    uva_adbc_pool_release(pool);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = path,
                                           .entrypoint = "AdbcDriverFakeInit",
                                           .options = uri,
                                           .batch_bytes = cases[_i].pool},
                                       &pool, NULL),
                     0);
    ask(&(struct uva_adbc_query){.sql = "rows 1",
                                 .batch_bytes = cases[_i].query},
        0);
    ck_assert_str_eq(fake_driver.batch_bytes, cases[_i].given);
    finish();
}
END_TEST

/* The user's option goes before; the rows of an ingest are no batches of the
 * driver. */
START_TEST(the_size_of_batches_is_given)
{
    static const struct uva_pair own[] = {
        {.key = "adbc.postgresql.batch_size_hint_bytes", .value = "7"}, {0}};
    struct ArrowArrayStream rows;
    struct fake_query q;

    is_known = true;
    fake_driver.settings = fake_driver.pids = "0";
    make("postgresql://there");
    rows = rows_of_fake(&q);
    ask(&(struct uva_adbc_query){.ingest_table = "t", .parameters = &rows}, 0);
    ck_assert_str_eq(fake_driver.batch_bytes, "");
    fake_driver_close(&q);
    ask(&(struct uva_adbc_query){.sql = "rows 1", .batch_bytes = 4096}, 0);
    ck_assert_str_eq(fake_driver.batch_bytes, "4096");
    ask(&(struct uva_adbc_query){.sql = "rows 1",
                                 .batch_bytes = 4096,
                                 .options = own},
        0);
    ck_assert_str_eq(fake_driver.batch_bytes, "7");
    finish();
}
END_TEST

START_TEST(without_memory_nothing_is_left)
{
    bool failed = true;

    fake_driver.settings = fake_driver.pids = "1";
    for (long k = 1; failed; k++) {
        fixture_open(&f, 0);
        faulty_libc_fail(k);
        if (uva_adbc_pool_new(f.loop.runtime,
                              &(struct uva_adbc_pool_options){
                                  .driver = path,
                                  .entrypoint = "AdbcDriverFakeInit",
                                  .options =
                                      (const struct uva_pair[]){
                                          {.key = "uri", .value = "x"}, {0}}},
                              &pool, NULL) == 0) {
            f.stream = uva_stream_from_query(
                pool, &(struct uva_adbc_query){.sql = "rows 1"});
            if (fixture_try(&f, NULL) == 0)
                (void)fixture_await(&f);
        }
        failed = faulty_libc_stop();
        fixture_release(&f);
        finish();
        pool = NULL;
        ck_assert_int_lt(k, 1000);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pooler");

    tcase_add_loop_test(tc, sessions_that_share_a_backend_are_recognised, 0,
                        sizeof(looks) / sizeof(*looks));
    tcase_add_loop_test(tc, a_second_session_may_be_refused, 0, 2);
    tcase_add_loop_test(tc, a_result_that_is_no_number_is_no_pooler, 0, 3);
    tcase_add_loop_test(tc, the_size_of_batches_is_that_of_the_pool_or_in_rows,
                        0, 7);
    suite_add(tc, a_driver_without_statements_or_queries_has_no_pooler,
              what_takes_two_calls_is_refused_where_sessions_share_a_backend,
              sessions_with_backends_of_their_own_execute_all_with_a_warning,
              sessions_that_are_a_transaction_execute_all,
              the_name_of_the_application_and_limits_are_given,
              the_size_of_batches_is_given, without_memory_nothing_is_left,
              NULL);
    return suite_main("pooler", set_up, tear_down, tc, NULL);
}
