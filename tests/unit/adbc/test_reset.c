/* SPDX-License-Identifier: Apache-2.0 */
/* How a session is made clean, by the calls that a driver gets: which
 * statements of SQLite leave no state, the statements that PostgreSQL gets in
 * each state, the log, and each call failing. Their effect on the real
 * databases is tested in python/tests/test_sessions_clean.py. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "adbc/reset.h"
#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;
static struct AdbcDriver driver;
static struct uva__known known;
static struct uva__connection connection;
static char calls[400]; /* of the driver, in their order */
static char logged[4000];
static const char *autocommit; /* of the connection; NULL: unknown */
static const char *fails;      /* the call that fails, once */
static const char *state;      /* with this SQLSTATE */
static char schema[] = "schema", x[] = "x", *options[] = {schema, x, NULL};

static void write_log(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    ck_assert_int_eq(record->level, UVA_LOG_WARN);
    (void)snprintf(logged, sizeof(logged), "%s", record->message);
}

static void error_release(struct AdbcError *error)
{
    error->release = NULL;
}

static AdbcStatusCode call(const char *what, struct AdbcError *error)
{
    const size_t used = strlen(calls);

    (void)snprintf(calls + used, sizeof(calls) - used, "%s|", what);
    if (fails == NULL || strcmp(what, fails) != 0)
        return ADBC_STATUS_OK;
    fails = NULL;
    error->release = error_release;
    memcpy(error->sqlstate, state, strlen(state));
    return ADBC_STATUS_IO;
}

static AdbcStatusCode statement_new(struct AdbcConnection *c,
                                    struct AdbcStatement *statement,
                                    struct AdbcError *error)
{
    (void)c;
    memset(statement, 0, sizeof(*statement));
    return call("new", error);
}

static AdbcStatusCode statement_set(struct AdbcStatement *statement,
                                    const char *sql, struct AdbcError *error)
{
    ck_assert_ptr_eq(statement->private_driver, &driver);
    return call(sql, error);
}

static AdbcStatusCode statement_execute(struct AdbcStatement *statement,
                                        struct ArrowArrayStream *out,
                                        int64_t *rows, struct AdbcError *error)
{
    (void)statement;
    ck_assert_ptr_null(out);
    ck_assert_ptr_null(rows);
    return call("run", error);
}

static AdbcStatusCode statement_release(struct AdbcStatement *statement,
                                        struct AdbcError *error)
{
    (void)statement;
    return call("release", error);
}

static AdbcStatusCode get_option(struct AdbcConnection *c, const char *key,
                                 char *value, size_t *size,
                                 struct AdbcError *error)
{
    (void)c;
    ck_assert_str_eq(key, ADBC_CONNECTION_OPTION_AUTOCOMMIT);
    if (autocommit == NULL) {
        (void)snprintf(value, *size, "false");
        error->release = error_release;
        return ADBC_STATUS_NOT_FOUND;
    }
    (void)snprintf(value, *size, "%s", autocommit);
    return ADBC_STATUS_OK;
}

static AdbcStatusCode set_option(struct AdbcConnection *c, const char *key,
                                 const char *value, struct AdbcError *error)
{
    char text[100];

    (void)c;
    (void)snprintf(text, sizeof(text), "%s=%s", key, value);
    return call(text, error);
}

static AdbcStatusCode rollback(struct AdbcConnection *c,
                               struct AdbcError *error)
{
    (void)c;
    return call("rollback", error);
}

static void set_up(void)
{
    const struct uva_runtime_options o = {.log = {.write = write_log}};

    fixture_open_with(&f, 0, &o);
    driver = (struct AdbcDriver){.StatementNew = statement_new,
                                 .StatementSetSqlQuery = statement_set,
                                 .StatementExecuteQuery = statement_execute,
                                 .StatementRelease = statement_release,
                                 .ConnectionGetOption = get_option,
                                 .ConnectionSetOption = set_option,
                                 .ConnectionRollback = rollback};
    known = (struct uva__known){.reset = UVA__RESET_DISCARD_ALL};
    connection = (struct uva__connection){.adbc = {.private_driver = &driver},
                                          .known = &known};
    autocommit = "true";
    fails = NULL;
    state = "";
}

static void tear_down(void)
{
    fixture_close(&f);
}

static bool reset(const char *sql)
{
    calls[0] = logged[0] = '\0';
    return uva__reset(&connection, options, sql, f.loop.runtime);
}

/* ---- the state that a statement leaves ---------------------------------- */

static bool leaves(const char *sql)
{
    known.reset = UVA__RESET_CLOSE_IF_WRITES;
    return uva__reset_is_needed(&connection, sql);
}

START_TEST(what_only_reads_leaves_nothing_in_sqlite)
{
    static const char *const reads[] = {"select 1",
                                        "SELECT\n1",
                                        "select",
                                        "Select*from t",
                                        "select'a'",
                                        "  ;\t select 1",
                                        "-- a\n--b\nselect 1",
                                        "/* a */ /**/select 1",
                                        "values(1)",
                                        "with a as (select 1) select * from a",
                                        "select/**/1",
                                        "select-1",
                                        "select(1)",
                                        "select\"a\""};

    for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++)
        ck_assert_msg(!leaves(reads[i]), "%s", reads[i]);
    ck_assert(!leaves(NULL));
}
END_TEST

START_TEST(any_other_statement_may_leave_something_in_sqlite)
{
    static const char *const writes[] = {
        "",
        "--",
        "-- select 1",
        "/* select 1",
        "selected",
        "sel",
        "create temp table t(a)",
        "pragma foreign_keys=1",
        "begin",
        "/* select */ attach 'a' as b",
        "insert into t select 1",
        "with a as (select 1) insert into t select * from a",
        "with a as (select 1) UPDATE t set b = 1",
        "with a as (select 1) Delete from t",
        "with a as (select 1) replace into t select 1",
        "select Load_Extension('a')",
        "select fts3_tokenizer('a', 1)",
        "explain select 1",
        "\xef\xbb\xbfselect 1"};

    for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++)
        ck_assert_msg(leaves(writes[i]), "%s", writes[i]);
}
END_TEST

START_TEST(any_statement_may_leave_something_in_other_databases)
{
    ck_assert(uva__reset_is_needed(&connection, "select 1"));
    ck_assert(uva__reset_is_needed(&connection, ""));
    ck_assert(!uva__reset_is_needed(&connection, NULL));
    known.reset = UVA__RESET_CLOSE;
    ck_assert(uva__reset_is_needed(&connection, "select 1"));
    ck_assert(!uva__reset_is_needed(&connection, NULL));
}
END_TEST

/* ---- PostgreSQL --------------------------------------------------------- */

START_TEST(postgresql_discards_all_and_sets_its_options_again)
{
    ck_assert(reset("select 1"));
    ck_assert_str_eq(calls, "new|DISCARD ALL|run|release|schema=x|");
    ck_assert_str_eq(logged, "");
    driver.ConnectionGetOption = NULL; /* ADBC 1.0 */
    ck_assert(reset("select 1"));
    autocommit = NULL;
    driver.ConnectionGetOption = get_option;
    ck_assert(reset("select 1"));
    ck_assert_str_eq(calls, "new|DISCARD ALL|run|release|schema=x|");
}
END_TEST

START_TEST(a_transaction_that_is_open_is_ended_and_logged)
{
    static const char *const states[] = {"25001", "25P02"};

    state = states[_i];
    fails = "run";
    ck_assert(reset("do something"));
    ck_assert_str_eq(calls,
                     "new|DISCARD ALL|run|release|new|ROLLBACK|run|release|"
                     "new|DISCARD ALL|run|release|schema=x|");
    text_contains(logged, "left open was rolled back");
    text_contains(logged, ": do something");
    fails = "run";
    ck_assert(reset(""));
    ck_assert_str_eq(logged, ""); /* a session's */
}
END_TEST

START_TEST(without_autocommit_it_is_turned_on_for_a_moment)
{
    autocommit = "false";
    ck_assert(reset("insert"));
    ck_assert_str_eq(calls, "rollback|adbc.connection.autocommit=true|"
                            "new|DISCARD ALL|run|release|schema=x|");
    text_contains(logged, ": insert");
    ck_assert(reset("select 1"));
    ck_assert_str_eq(logged, "");
}
END_TEST

START_TEST(a_call_that_fails_has_the_connection_closed)
{
    static const char *const each[] = {
        "new",      "DISCARD ALL", "run",
        "schema=x", "rollback",    "adbc.connection.autocommit=true"};

    autocommit = "false";
    state = "57P01";
    fails = each[_i];
    ck_assert(!reset("select 1"));
    ck_assert_ptr_null(fails);
    ck_assert(strstr(calls, "ROLLBACK") == NULL);
}
END_TEST

static AdbcStatusCode discard_in_vain(struct AdbcStatement *statement,
                                      const char *sql, struct AdbcError *error)
{
    (void)statement;
    (void)call(sql, error);
    if (strcmp(sql, "ROLLBACK") == 0)
        return ADBC_STATUS_OK;
    memcpy(error->sqlstate, "25001", 5);
    return ADBC_STATUS_IO;
}

static AdbcStatusCode fail_in_a_transaction(struct AdbcStatement *statement,
                                            const char *sql,
                                            struct AdbcError *error)
{
    (void)discard_in_vain(statement, sql, error);
    return ADBC_STATUS_IO;
}

START_TEST(a_transaction_that_does_not_end_has_the_connection_closed)
{
    driver.StatementSetSqlQuery = discard_in_vain;
    ck_assert(!reset("select 1"));
    ck_assert_str_eq(calls, "new|DISCARD ALL|release|new|ROLLBACK|run|release|"
                            "new|DISCARD ALL|release|");
    driver.StatementSetSqlQuery = fail_in_a_transaction;
    ck_assert(!reset("select 1"));
    ck_assert_str_eq(calls, "new|DISCARD ALL|release|new|ROLLBACK|release|");
    driver.StatementSetSqlQuery = NULL;
    ck_assert(!reset("select 1"));
    ck_assert_str_eq(calls, "new|release|");
}
END_TEST

/* ---- closing ------------------------------------------------------------ */

START_TEST(others_are_closed_and_asked_for_a_forgotten_transaction)
{
    known = (struct uva__known){.reset = UVA__RESET_CLOSE,
                                .traits = UVA__KNOWN_REFUSES_ROLLBACK};
    ck_assert(!reset("select 1; BEGIN"));
    ck_assert_str_eq(calls, "new|ROLLBACK|run|release|");
    text_contains(logged, ": select 1; BEGIN");
    fails = "run"; /* not there */
    ck_assert(!reset("select 'begin'"));
    ck_assert_str_eq(logged, "");
    ck_assert(!reset("select 1"));
    ck_assert_str_eq(calls, "");
    known.traits = 0;
    ck_assert(!reset("begin"));
    ck_assert_str_eq(calls, "");
}
END_TEST

/* A driver that states a transaction of SQL as one of its own. */
START_TEST(a_forgotten_transaction_is_logged_once)
{
    known = (struct uva__known){.reset = UVA__RESET_CLOSE,
                                .traits = UVA__KNOWN_REFUSES_ROLLBACK};
    autocommit = "false";
    ck_assert(!reset("begin"));
    ck_assert_str_eq(calls, ""); /* not asked by a ROLLBACK, too */
    text_contains(logged, ": begin");
}
END_TEST

/* The state that it has left is not in a session of its own, but a transaction
 * is. */
START_TEST(where_sessions_share_backends_none_is_discarded)
{
    connection.shares = true;
    ck_assert(reset("select 1"));
    ck_assert_str_eq(calls, "new|ROLLBACK|run|release|schema=x|");
}
END_TEST

int main(void)
{
    TCase *postgresql = suite_tests(
        "postgresql", postgresql_discards_all_and_sets_its_options_again,
        without_autocommit_it_is_turned_on_for_a_moment,
        a_transaction_that_does_not_end_has_the_connection_closed,
        where_sessions_share_backends_none_is_discarded, NULL);

    suite_add_loops(postgresql, 0, 2,
                    a_transaction_that_is_open_is_ended_and_logged, NULL);
    suite_add_loops(postgresql, 0, 6,
                    a_call_that_fails_has_the_connection_closed, NULL);
    return suite_main(
        "reset", set_up, tear_down,
        suite_tests("statements", what_only_reads_leaves_nothing_in_sqlite,
                    any_other_statement_may_leave_something_in_sqlite,
                    any_statement_may_leave_something_in_other_databases, NULL),
        postgresql,
        suite_tests("closing",
                    others_are_closed_and_asked_for_a_forgotten_transaction,
                    a_forgotten_transaction_is_logged_once, NULL),
        NULL);
}
