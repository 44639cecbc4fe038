/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of a pool with the fake driver: one connection for their queries,
 * the steps of their transactions, and how these end. The behaviour of real
 * databases is in python/tests/test_session.py. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "support/forked_child.h"
#include "uvarrow/adbc.h"
#include "uvarrow/arrow.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

enum { STREAMS = 4 };

static struct fixture f;
static struct uva_adbc_pool *pool, *session;
static struct recording_consumer got[STREAMS];
static struct uva_stream *streams[STREAMS];

static void make_pool(const struct uva_adbc_pool_options *options)
{
    struct uva_error error = {0};

    ck_assert_msg(uva_adbc_pool_new(f.loop.runtime, options, &pool, &error) ==
                      0,
                  "%s", error.message);
}

static void make_session(const struct uva_adbc_session *options)
{
    struct uva_error error = {0};

    ck_assert_msg(uva_adbc_pool_session(pool, options, &session, &error) == 0,
                  "%s", error.message);
}

static void release_session(void)
{
    uva_adbc_pool_release(session);
    session = NULL;
}

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
    make_pool(&(struct uva_adbc_pool_options){
        .driver = FAKE, .keeps_session = true, .connections = 1});
}

static void finish(void)
{
    release_session();
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.drivers), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

static void tear_down(void)
{
    finish();
}

static struct uva_stream *ask(struct uva_adbc_pool *of, const char *sql)
{
    return uva_stream_from_query(of, &(struct uva_adbc_query){.sql = sql});
}

static void start(int i, struct uva_stream *stream)
{
    recording_init(&got[i]);
    streams[i] = stream;
    recording_start(&got[i], stream);
}

static int await_end(int i)
{
    recording_await_done(&got[i], &f.loop);
    uva_stream_release(streams[i]);
    return got[i].outcome.error.code;
}

static int play(struct uva_stream *stream)
{
    start(0, stream);
    return await_end(0);
}

static bool blocks(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) > 0;
}

/* Starts a query that stays in a call, and cancels it. */
static void cancel(const char *sql)
{
    start(0, ask(session, sql));
    loop_until(&f.loop, blocks, NULL);
    uva_stream_cancel(streams[0], 0, NULL);
    ck_assert_int_eq(await_end(0), ECANCELED);
}

/* A query of the pool needs its only connection: the session has ended. */
static void has_ended(const char *transactions, long connected)
{
    release_session();
    ck_assert_int_eq(play(ask(pool, "rows 1")), 0);
    ck_assert_str_eq(fake_driver.transactions, transactions);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), connected);
}

static int commit(void)
{
    return play(uva_stream_from_commit(session));
}

static int roll_back(void)
{
    return play(uva_stream_from_rollback(session));
}

/* ---- transactions -------------------------------------------------------- */

START_TEST(a_session_is_rolled_back)
{
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 2")), 0);
    ck_assert_int_eq(got[0].rows, 2);
    ck_assert_int_eq(play(ask(session, "update 1")), 0);
    has_ended("begin rollback end ", 1);
}
END_TEST

START_TEST(a_session_commits)
{
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "update 1")), 0);
    ck_assert_int_eq(commit(), 0);
    ck_assert_int_eq(got[0].rows, 0);
    ck_assert_int_eq(play(ask(session, "update 1")), 0);
    ck_assert_int_eq(roll_back(), 0);
    ck_assert_int_eq(play(ask(session, "savepoint a")), 0);
    has_ended("begin commit rollback rollback end ", 1);
}
END_TEST

START_TEST(a_session_without_queries_needs_no_connection)
{
    make_session(NULL);
    ck_assert_int_eq(commit(), 0);
    ck_assert_int_eq(roll_back(), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 0);
    has_ended("", 1);
}
END_TEST

/* The permit of a query of the pool comes after the permit of the session,
 * which has the only connection. */
START_TEST(queries_of_a_session_run_in_order_and_alone)
{
    make_session(NULL);
    start(0, ask(session, "execute waits"));
    loop_until(&f.loop, blocks, NULL);
    start(1, ask(pool, "rows 1"));
    start(2, ask(session, "rows 2"));
    start(3, uva_stream_from_commit(session));
    loop_settle(&f.loop);
    ck_assert_int_eq(got[1].done + got[2].done + got[3].done, 0);
    fake_driver_go();
    ck_assert_int_eq(await_end(0), 0);
    ck_assert_int_eq(await_end(2), 0);
    ck_assert_int_eq(await_end(3), 0);
    loop_settle(&f.loop);
    ck_assert_int_eq(got[1].done, 0);
    release_session();
    ck_assert_int_eq(await_end(1), 0);
    ck_assert_str_eq(fake_driver.transactions, "begin commit rollback end ");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

/* The user drops it while its query runs. */
START_TEST(a_session_ends_after_its_last_query)
{
    make_session(NULL);
    start(0, ask(session, "execute waits"));
    loop_until(&f.loop, blocks, NULL);
    release_session();
    start(1, ask(pool, "rows 1"));
    loop_settle(&f.loop);
    ck_assert_str_eq(fake_driver.transactions, "begin ");
    fake_driver_go();
    ck_assert_int_eq(await_end(0), 0);
    ck_assert_int_eq(await_end(1), 0);
    ck_assert_str_eq(fake_driver.transactions, "begin rollback end ");
}
END_TEST

/* A query that is queued after the commit, or starts later, would be rolled
 * back though it reports success. Queries before the commit are executed. */
START_TEST(nothing_follows_the_last_commit_of_a_released_session)
{
    struct uva_stream *late;

    make_session(NULL);
    late = ask(session, "update 1");
    start(0, ask(session, "execute waits"));
    loop_until(&f.loop, blocks, NULL);
    start(1, ask(session, "update 1"));
    start(2, uva_stream_from_commit(session));
    start(3, ask(session, "update 1"));
    release_session();
    fake_driver_go();
    for (int i = 0; i < STREAMS; i++)
        ck_assert_int_eq(await_end(i), i < 3 ? 0 : ECANCELED);
    text_contains(got[3].outcome.error.message, "the session is over");
    ck_assert_int_eq(play(late), ECANCELED);
    has_ended("begin commit rollback end ", 1);
}
END_TEST

/* Its commit is dropped, or was never made. */
START_TEST(nothing_starts_in_a_released_session)
{
    struct uva_stream *late, *end = NULL;

    make_session(&(struct uva_adbc_session){.autocommit = _i == 2});
    ck_assert_int_eq(play(ask(session, "update 1")), 0);
    late = ask(session, "update 1");
    if (_i == 1)
        end = uva_stream_from_rollback(session);
    release_session();
    uva_stream_release(end);
    loop_settle(&f.loop);
    ck_assert_int_eq(play(late), _i == 2 ? 0 : ECANCELED);
    has_ended(_i == 2 ? "" : "begin rollback end ", 1);
}
END_TEST

START_TEST(a_session_outlives_the_users_pool)
{
    make_session(NULL);
    uva_adbc_pool_release(pool);
    pool = NULL;
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    ck_assert_int_eq(commit(), 0);
    finish();
    ck_assert_str_eq(fake_driver.transactions, "begin commit rollback end ");
    fixture_open(&f, 0);
}
END_TEST

START_TEST(a_session_ends_with_the_runtime)
{
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    loop_close_runtime(&f.loop, 0);
    release_session();
    ck_assert_str_eq(fake_driver.transactions, "begin rollback end ");
}
END_TEST

/* ---- autocommit ---------------------------------------------------------- */

/* The parent's connections are not called. Exits with how many checks have
 * failed. */
static int release_all(void *ctx)
{
    struct uva_adbc_pool_stats stats;

    (void)ctx;
    uva_adbc_pool_release(session);
    uva_adbc_pool_release(pool);
    uva_adbc_pool_get_stats(pool, &stats);
    return (atomic_load(&fake_driver.connections) != 1) +
           (fake_driver.transactions[0] != '\0') + (stats.queries != 0);
}

START_TEST(a_forked_child_leaves_the_connections_alone)
{
    if (_i == 1)
        make_session(NULL);
    ck_assert_int_eq(play(ask(_i == 1 ? session : pool, "rows 1")), 0);
    fake_driver.transactions[0] = '\0';
    forked_child_run(release_all, NULL);
    ck_assert_int_eq(play(ask(_i == 1 ? session : pool, "rows 1")), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

START_TEST(a_session_may_commit_each_query)
{
    make_session(&(struct uva_adbc_session){.autocommit = true});
    ck_assert_int_eq(play(ask(session, "update 1")), 0);
    fixture_refused(&f, uva_stream_from_commit(session), EINVAL, "autocommit");
    fixture_refused(&f, uva_stream_from_rollback(session), EINVAL,
                    "autocommit");
    has_ended("", 1);
}
END_TEST

START_TEST(sql_may_begin_a_transaction_there)
{
    static const char *const ENDS[] = {"commit", "rollback"};

    make_session(&(struct uva_adbc_session){.autocommit = true});
    ck_assert_int_eq(play(ask(session, "begin")), 0);
    if (_i < 2)
        ck_assert_int_eq(play(ask(session, ENDS[_i])), 0);
    has_ended("", _i < 2 ? 1 : 2);
}
END_TEST

/* Gives rows that fail after the second one to a query of the session. */
static int play_failing_rows(void)
{
    struct AdbcError error = ADBC_ERROR_INIT;
    struct ArrowArrayStream rows;
    struct fake_query q;
    int code;

    fake_driver_open(&q, "batch 2 fails");
    ck_assert_int_eq(
        q.driver.StatementExecuteQuery(&q.statement, &rows, NULL, &error), 0);
    code = play(uva_stream_from_query(
        session,
        &(struct uva_adbc_query){.ingest_table = "t", .parameters = &rows}));
    fake_driver_close(&q);
    return code;
}

START_TEST(rows_that_cannot_be_rolled_back_end_with_their_connection)
{
    fake_driver.lacks_step = LACKS_ROLLBACK;
    make_session(&(struct uva_adbc_session){.autocommit = true});
    ck_assert_int_eq(play_failing_rows(), EIO);
    has_ended("begin ", 3);
}
END_TEST

/* Later queries are no part of it. The connection of the rows counts. */
START_TEST(rows_that_fail_are_rolled_back_there)
{
    make_session(&(struct uva_adbc_session){.autocommit = true});
    ck_assert_int_eq(play_failing_rows(), EIO);
    ck_assert_int_eq(play(ask(session, "update 1")), 0);
    has_ended("begin rollback end ", 2);
}
END_TEST

START_TEST(a_session_that_cannot_undo_rows_is_lost)
{
    fake_driver.no_step = _i == 0 ? "rollback" : "end";
    make_session(&(struct uva_adbc_session){.autocommit = true});
    ck_assert_int_eq(play_failing_rows(), EIO);
    ck_assert_int_eq(play(ask(session, "update 1")), ECONNABORTED);
    has_ended(_i == 0 ? "begin rollback " : "begin rollback end ", 3);
}
END_TEST

START_TEST(rows_are_part_of_the_transaction_of_a_session)
{
    make_session(NULL);
    ck_assert_int_eq(play_failing_rows(), EIO);
    has_ended("begin rollback end ", 2); /* by the session */
}
END_TEST

static const struct uva_pair isolation[] = {
    {.key = "adbc.connection.isolation", .value = "strict"}, {0}};

START_TEST(a_connection_with_options_of_a_session_is_closed)
{
    make_session(
        &(struct uva_adbc_session){.autocommit = true, .options = isolation});
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    has_ended("", 2);
}
END_TEST

START_TEST(a_pool_that_does_not_commit_gets_its_connection_as_it_was)
{
    static const struct uva_pair off[] = {
        {.key = "adbc.connection.autocommit", .value = "false"}, {0}};

    uva_adbc_pool_release(pool);
    make_pool(&(struct uva_adbc_pool_options){.driver = FAKE,
                                              .keeps_session = true,
                                              .connections = 1,
                                              .connection_options = off});
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    has_ended("begin begin rollback ", 1);
}
END_TEST

/* ---- failures ------------------------------------------------------------ */

START_TEST(after_a_failure_the_database_decides)
{
    fake_driver.has_given_up = _i == 1;
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "execute fails")), EIO);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    if (_i == 0) {
        ck_assert_int_eq(commit(), 0);
    } else {
        ck_assert_int_eq(commit(), EBUSY);
        text_contains(got[0].outcome.error.message, "a query has failed");
        fake_driver.has_given_up = false;
        ck_assert_int_eq(commit(), 0); /* of another transaction */
    }
    has_ended(_i == 0 ? "begin commit rollback end "
                      : "begin rollback commit rollback end ",
              1);
}
END_TEST

START_TEST(so_it_does_for_a_commit_by_sql)
{
    make_session(&(struct uva_adbc_session){.autocommit = true});
    fake_driver.has_given_up = true;
    ck_assert_int_eq(play(ask(session, "begin")), 0);
    ck_assert_int_eq(play(ask(session, "execute fails")), EIO);
    ck_assert_int_eq(play(ask(session, "commit")), EBUSY);
    ck_assert_int_eq(play(ask(session, "rollback")), 0);
    ck_assert_int_eq(play(ask(session, "begin")), 0);
    ck_assert_int_eq(play(ask(session, "commit")), 0);
    has_ended("", 1);
}
END_TEST

START_TEST(a_commit_that_fails_is_rolled_back)
{
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    fake_driver.no_step = "commit";
    ck_assert_int_eq(commit(), EIO);
    text_contains(got[0].outcome.error.message, "cannot commit");
    fake_driver.no_step = NULL;
    ck_assert_int_eq(commit(), 0);
    has_ended("begin commit rollback commit rollback end ", 1);
}
END_TEST

START_TEST(a_session_that_cannot_roll_back_is_lost)
{
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    fake_driver.no_step = "rollback";
    ck_assert_int_eq(roll_back(), EIO);
    ck_assert_int_eq(play(ask(session, "rows 1")), ECONNABORTED);
    ck_assert_int_eq(roll_back(), ECONNABORTED);
    has_ended("begin rollback ", 2);
}
END_TEST

START_TEST(a_connection_that_cannot_be_set_back_is_closed)
{
    static const char *const STEPS[] = {"rollback", "end"};

    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    fake_driver.no_step = STEPS[_i];
    has_ended(_i == 0 ? "begin rollback " : "begin rollback end ", 2);
}
END_TEST

START_TEST(a_roll_back_that_hangs_keeps_no_place)
{
    struct uva_adbc_pool_stats now;

    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    uva_adbc_pool_get_stats(session, &now);
    ck_assert_int_eq(now.connections_used, 1);
    fake_driver.rolls_back_late = true;
    release_session();
    ck_assert_int_eq(play(ask(pool, "rows 1")), 0);
    uva_adbc_pool_get_stats(pool, &now);
    ck_assert_int_eq(now.connections_stuck, 1);
    fake_driver_go();
}
END_TEST

START_TEST(a_session_needs_transactions)
{
    fake_driver.no_transactions = true;
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), ENOTSUP);
    text_contains(got[0].outcome.error.message, "autocommit");
    has_ended("", 2);
}
END_TEST

/* Its work is undone as its connection is closed. */
START_TEST(a_session_may_lack_the_end_of_a_transaction)
{
    fake_driver.lacks_step = _i == 0 ? LACKS_COMMIT : LACKS_ROLLBACK;
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    ck_assert_int_eq(_i == 0 ? commit() : roll_back(), ENOTSUP);
    text_contains(got[0].outcome.error.message,
                  _i == 0 ? "cannot commit" : "cannot roll back");
    release_session();
    ck_assert_int_eq(play(ask(pool, "rows 1")), 0);
}
END_TEST

/* The pool opens its database again after the session. */
START_TEST(a_type_that_a_session_meets_is_known_later)
{
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "strange unnamed<oid:1>")), 0);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.opened), 1);
    release_session();
    ck_assert_int_eq(play(ask(pool, "rows 1")), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.opened), 2);
}
END_TEST

static struct ArrowDeviceArray partitions;

static void on_partitions(void *ctx, const struct uva_stream_info *info,
                          struct ArrowDeviceArray *batches, size_t count,
                          const struct uva_outcome *outcome)
{
    (void)info;
    ck_assert_int_eq(outcome->error.code, 0);
    ck_assert_uint_eq(count, 1);
    uva_array_move(&batches[0], &partitions);
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

/* One after the other, as there is one connection. */
START_TEST(partitions_are_read_in_a_session)
{
    struct uva_stream *stream;
    bool done = false;

    make_session(NULL);
    stream = uva_stream_from_query(
        session, &(struct uva_adbc_query){.sql = "partitions 3",
                                          .result = UVA_ADBC_PARTITIONS});
    ck_assert_int_eq(uva_stream_collect(stream, 0, on_partitions, &done, NULL),
                     0);
    loop_until(&f.loop, is_set, &done);
    uva_stream_release(stream);
    ck_assert_int_eq(
        play(uva_stream_from_partitions(session, &partitions.array, NULL)), 0);
    ck_assert_int_eq(got[0].rows, 1 + 2 + 3);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
    uva_array_release(&partitions);
}
END_TEST

START_TEST(a_session_that_cannot_connect_may_try_again)
{
    fake_driver.no_connect = true;
    make_session(NULL);
    ck_assert_int_ne(play(ask(session, "rows 1")), 0);
    fake_driver.no_connect = false;
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    ck_assert_int_eq(commit(), 0);
}
END_TEST

/* ---- a cancel ------------------------------------------------------------ */

START_TEST(a_session_with_a_cancelled_query_is_lost)
{
    make_session(NULL);
    ck_assert_int_eq(play(ask(session, "rows 1")), 0);
    cancel(_i == 0 ? "execute blocks" : "batch 1 blocks");
    ck_assert_int_eq(play(ask(session, "rows 1")), ECONNABORTED);
    text_contains(got[0].outcome.error.message, "cancelled");
    ck_assert_int_eq(commit(), ECONNABORTED);
    has_ended("begin ", 2);
}
END_TEST

/* It is cancelled before it has a permit: it was not executed. */
START_TEST(a_query_that_waits_may_be_cancelled)
{
    make_session(NULL);
    start(0, ask(session, "execute waits"));
    loop_until(&f.loop, blocks, NULL);
    start(1, ask(session, "rows 1"));
    loop_settle(&f.loop);
    uva_stream_cancel(streams[1], 0, NULL);
    ck_assert_int_eq(await_end(1), ECANCELED);
    fake_driver_go();
    ck_assert_int_eq(await_end(0), 0);
    ck_assert_int_eq(commit(), 0);
    has_ended("begin commit rollback end ", 1);
}
END_TEST

/* For another query of the session, or for a connection of the pool. */
START_TEST(what_a_query_has_waited_for_is_named)
{
    uva_adbc_pool_release(pool);
    make_pool(&(struct uva_adbc_pool_options){.driver = FAKE,
                                              .keeps_session = true,
                                              .connections = 1,
                                              .wait_ms = 20});
    while (play(ask(pool, "rows 1")) == ETIMEDOUT)
        continue; /* until a busy machine has connected, and keeps that */
    make_session(NULL);
    start(0, ask(_i == 0 ? session : pool, "execute waits"));
    loop_until(&f.loop, blocks, NULL);
    start(1, ask(session, "rows 1"));
    ck_assert_int_eq(await_end(1), ETIMEDOUT);
    text_contains(got[1].outcome.error.message,
                  _i == 0 ? "another query of the session is not finished"
                          : "connections");
    fake_driver_go();
    ck_assert_int_eq(await_end(0), 0);
}
END_TEST

/* ---- refused statements ------------------------------------------------- */

static const char *const TRANSACTIONS[] = {"begin",
                                           "/* now */ START TRANSACTION;",
                                           "commit", "rollback", "savepoint a"};

enum { KINDS = sizeof(TRANSACTIONS) / sizeof(*TRANSACTIONS) };

START_TEST(a_pool_has_no_transactions)
{
    uva_adbc_pool_release(pool);
    make_pool(&(struct uva_adbc_pool_options){.driver = FAKE});
    fixture_refused(&f, ask(pool, TRANSACTIONS[_i]), EINVAL,
                    "uva_adbc_pool_session()");
    ck_assert_int_eq(atomic_load(&fake_driver.drivers), 0);
    ck_assert_int_eq(play(ask(pool, "rows 1")), 0);
}
END_TEST

START_TEST(a_pool_that_keeps_its_session_may_have_them)
{
    uva_adbc_pool_release(pool);
    make_pool(&(struct uva_adbc_pool_options){
        .driver = FAKE, .connections = 1, .keeps_session = true});
    ck_assert_int_eq(play(ask(pool, "begin")), 0);
    ck_assert_int_eq(play(ask(pool, "commit")), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

START_TEST(sql_does_not_end_the_transaction_of_a_session)
{
    static const char *const texts[KINDS] = {
        "in a transaction", "in a transaction", "uva_stream_from_commit()",
        "uva_stream_from_rollback()", NULL};

    make_session(NULL);
    if (texts[_i] != NULL)
        fixture_refused(&f, ask(session, TRANSACTIONS[_i]), EINVAL, texts[_i]);
    else
        ck_assert_int_eq(play(ask(session, TRANSACTIONS[_i])), 0);
}
END_TEST

START_TEST(what_is_invalid_is_refused)
{
    static const struct uva_pair odd[] = {
        {.key = "k\0y", .value = "x", .key_size = 3}, {0}};
    struct uva_adbc_pool *none = NULL;
    struct uva_adbc_session reserved = {.reserved = {&f}};

    ck_assert_int_eq(uva_adbc_pool_session(NULL, NULL, &none, NULL), EINVAL);
    ck_assert_int_eq(uva_adbc_pool_session(pool, NULL, NULL, NULL), EINVAL);
    ck_assert_int_eq(uva_adbc_pool_session(pool, &reserved, &none, NULL),
                     EINVAL);
    ck_assert_int_eq(
        uva_adbc_pool_session(pool, &(struct uva_adbc_session){.options = odd},
                              &none, NULL),
        EINVAL);
    make_session(NULL);
    ck_assert_int_eq(uva_adbc_pool_session(session, NULL, &none, NULL), EINVAL);
    ck_assert_ptr_null(none);
    fixture_refused(&f, uva_stream_from_commit(pool), EINVAL, "not a session");
    uva_adbc_pool_release(NULL);
}
END_TEST

START_TEST(a_pool_that_only_reads_has_no_sessions)
{
    static const struct uva_pair reads[] = {
        {.key = "adbc.connection.readonly", .value = "true"}, {0}};
    struct uva_adbc_pool *none = NULL;

    uva_adbc_pool_release(pool);
    make_pool(&(struct uva_adbc_pool_options){
        .driver = FAKE, .keeps_session = true, .connection_options = reads});
    ck_assert_int_eq(uva_adbc_pool_session(pool, NULL, &none, NULL), EINVAL);
}
END_TEST

START_TEST(an_option_of_a_session_may_be_refused)
{
    static const struct uva_pair refused[] = {{.key = "refused", .value = "x"},
                                              {0}};

    make_session(&(struct uva_adbc_session){.options = refused});
    ck_assert_int_eq(play(ask(session, "rows 1")), ENOTSUP);
    text_contains(got[0].outcome.error.message, "refused");
    has_ended("", 2);
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

static void try_session(void)
{
    if (uva_adbc_pool_session(pool,
                              &(struct uva_adbc_session){.options = isolation},
                              &session, NULL) != 0)
        return;
    f.stream = ask(session, "rows 2");
    if (fixture_try(&f, NULL) == 0)
        (void)fixture_await(&f);
    fixture_release(&f);
    f.stream = uva_stream_from_commit(session);
    recording_init(&f.got);
    if (fixture_try(&f, NULL) == 0)
        (void)fixture_await(&f);
    fixture_release(&f);
}

START_TEST(every_allocation_may_fail)
{
    bool failed = true;

    for (long k = 1; failed; k++) {
        faulty_libc_fail(k);
        try_session();
        failed = faulty_libc_stop();
        finish();
        set_up();
        ck_assert_int_lt(k, 1000);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("session");

    suite_add(
        tc, a_type_that_a_session_meets_is_known_later,
        partitions_are_read_in_a_session, a_session_is_rolled_back,
        a_session_commits, a_roll_back_that_hangs_keeps_no_place,
        a_session_without_queries_needs_no_connection,
        queries_of_a_session_run_in_order_and_alone,
        a_session_ends_after_its_last_query, a_session_outlives_the_users_pool,
        nothing_follows_the_last_commit_of_a_released_session,
        a_session_ends_with_the_runtime, a_session_may_commit_each_query,
        rows_that_fail_are_rolled_back_there,
        rows_that_cannot_be_rolled_back_end_with_their_connection,
        rows_are_part_of_the_transaction_of_a_session,
        a_connection_with_options_of_a_session_is_closed,
        a_pool_that_does_not_commit_gets_its_connection_as_it_was,
        so_it_does_for_a_commit_by_sql, a_commit_that_fails_is_rolled_back,
        a_session_that_cannot_roll_back_is_lost, a_session_needs_transactions,
        a_session_that_cannot_connect_may_try_again,
        a_query_that_waits_may_be_cancelled, what_is_invalid_is_refused,
        a_pool_that_keeps_its_session_may_have_them,
        a_pool_that_only_reads_has_no_sessions,
        an_option_of_a_session_may_be_refused, every_allocation_may_fail, NULL);
    suite_add_loops(tc, 0, 3, sql_may_begin_a_transaction_there,
                    nothing_starts_in_a_released_session, NULL);
    suite_add_loops(tc, 0, 2, a_session_may_lack_the_end_of_a_transaction,
                    a_session_that_cannot_undo_rows_is_lost,
                    a_forked_child_leaves_the_connections_alone, NULL);
    suite_add_loops(tc, 0, 2, after_a_failure_the_database_decides,
                    a_connection_that_cannot_be_set_back_is_closed,
                    a_session_with_a_cancelled_query_is_lost,
                    what_a_query_has_waited_for_is_named, NULL);
    suite_add_loops(tc, 0, KINDS, a_pool_has_no_transactions,
                    sql_does_not_end_the_transaction_of_a_session, NULL);
    return suite_main("adbc_session", set_up, tear_down, tc, NULL);
}
