/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with PostgreSQL: Debian's server in a separate folder. A cancel
 * stops its backend, errors have a SQLSTATE, and a server that goes away is
 * reported. Without the server or the driver the test is skipped. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/value_cases.h"
#include "uvarrow/adbc.h"

enum { SKIP = 77, MANY = 1000 };

#define BIN "/usr/lib/postgresql/15/bin/"

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct uva_stream *stream;
static char folder[] = "/tmp/uva_pg_XXXXXX", uri[200];
static char sqlstate[6];

/* Runs a program of the server, which refuses to be root. */
static void server(const char *command)
{
    char whole[600];

    (void)snprintf(whole, sizeof(whole),
                   geteuid() == 0 ? "su postgres -s /bin/sh -c '%s' >/dev/null"
                                  : "%s >/dev/null",
                   command);
    ck_assert_int_eq(system(whole), 0);
}

static void run_server(void)
{
    char command[400];

    (void)snprintf(command, sizeof(command),
                   BIN "pg_ctl -D %s/db -l %s/log -w start -o \"-k %s -c "
                       "listen_addresses=\"",
                   folder, folder, folder);
    server(command);
}

static void start_server(void)
{
    char command[400];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    if (geteuid() == 0) {
        (void)snprintf(command, sizeof(command), "chown postgres %s", folder);
        ck_assert_int_eq(system(command), 0);
    }
    (void)snprintf(command, sizeof(command),
                   BIN "initdb -D %s/db -A trust -U postgres", folder);
    server(command);
    run_server();
    (void)snprintf(uri, sizeof(uri), "postgresql://postgres@/postgres?host=%s",
                   folder);
}

static void stop_server(void)
{
    char command[400];

    (void)snprintf(command, sizeof(command),
                   BIN "pg_ctl -D %s/db -m immediate -w stop", folder);
    server(command);
}

static void end_server(void)
{
    char command[400];

    (void)snprintf(command, sizeof(command),
                   "test ! -e %s/db/postmaster.pid || " BIN
                   "pg_ctl -D %s/db -m immediate -w stop",
                   folder, folder);
    server(command);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void set_up(void)
{
    const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};

    fixture_open(&f, 0);
    ck_assert_int_eq(uva_adbc_pool_new(
                         f.loop.runtime,
                         &(struct uva_adbc_pool_options){
                             .driver = UVA_TEST_POSTGRESQL, .options = options},
                         &pool, NULL),
                     0);
}

static void tear_down(void)
{
    uva_adbc_pool_release(pool);
    fixture_close(&f);
}

static void on_done(struct recording_consumer *c,
                    const struct uva_outcome *outcome)
{
    struct uva_pair pair;

    (void)c;
    sqlstate[0] = '\0';
    if (outcome->metadata != NULL &&
        uva_metadata_get(outcome->metadata, "adbc.sqlstate", &pair) == 0)
        (void)snprintf(sqlstate, sizeof(sqlstate), "%.*s", (int)pair.value_size,
                       pair.value);
}

static void start(const char *sql)
{
    recording_init(&f.got);
    f.got.on_done = on_done;
    stream = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    recording_start(&f.got, stream);
}

static void await_end(void)
{
    recording_await_done(&f.got, &f.loop);
    uva_stream_release(stream);
}

static void ask(const char *sql)
{
    start(sql);
    await_end();
}

START_TEST(rows_come_and_errors_have_a_sqlstate)
{
    ask("SELECT generate_series(1, 100000)");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.rows, 100000);
    ask("SELECT * FROM missing");
    recording_ended(&f.got, UVA_END_FAILED, ENOENT, "does not exist");
    ck_assert_str_eq(sqlstate, "42P01");
    ask("SELECT 1 / 0");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "division by zero");
    ck_assert_str_eq(sqlstate, "22012");
}
END_TEST

/* Returns how many rows a query has changed. */
static int64_t update(const char *sql)
{
    int64_t rows;

    recording_init(&f.got);
    stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = sql, .result = UVA_ADBC_CHANGES});
    recording_start(&f.got, stream);
    recording_await_done(&f.got, &f.loop);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.rows, 0);
    rows = uva_adbc_rows_changed(uva_stream_get_info(stream));
    uva_stream_release(stream);
    return rows;
}

START_TEST(changed_rows_are_counted_without_a_result)
{
    ask("CREATE TABLE c (n INTEGER)");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(update("INSERT INTO c VALUES (1), (2), (3)"), 3);
    ck_assert_int_eq(update("UPDATE c SET n = 4 WHERE n > 1"), 2);
    ck_assert_int_eq(update("DELETE FROM c WHERE n > 4"), 0);
    ask("SELECT n FROM c");
    ck_assert_int_eq(f.got.rows, 3);
}
END_TEST

#define OTHERS                                                                 \
    " FROM pg_stat_activity WHERE state = 'active' AND query LIKE "            \
    "'%sleep(1000)%' AND pid <> pg_backend_pid()"

/* Asks until as many backends sleep. */
static void await_backends(int64_t count)
{
    do
        ask("SELECT pid" OTHERS);
    while (f.got.rows != count);
}

static struct recording_consumer sleeper;

START_TEST(a_cancel_stops_the_backend)
{
    struct uva_stream *sleeping;

    recording_init(&sleeper);
    sleeping = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "SELECT pg_sleep(1000)"});
    recording_start(&sleeper, sleeping);
    await_backends(1);
    uva_stream_cancel(sleeping, 0, NULL);
    recording_await_done(&sleeper, &f.loop);
    recording_ended(&sleeper, UVA_END_CANCELLED, ECANCELED, "");
    uva_stream_release(sleeping);
    await_backends(0);
}
END_TEST

START_TEST(many_queries_share_the_connections)
{
    static struct recording_consumer got[MANY];
    static struct uva_stream *streams[MANY];

    for (int i = 0; i < MANY; i++) {
        recording_init(&got[i]);
        streams[i] = uva_stream_from_query(
            pool, &(struct uva_adbc_query){.sql = "SELECT 1"});
        recording_start(&got[i], streams[i]);
    }
    for (int i = 0; i < MANY; i++) {
        recording_await_done(&got[i], &f.loop);
        recording_ended(&got[i], UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(got[i].rows, 1);
        uva_stream_release(streams[i]);
    }
}
END_TEST

/* Each of these lets the next statement write, in a session that lasts. */
static const char *const WAYS_TO_WRITE[] = {
    "SELECT set_config('default_transaction_read_only', 'off', false)",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SET default_transaction_read_only = off",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "BEGIN READ WRITE",
    "START TRANSACTION READ WRITE",
    "SET TRANSACTION READ WRITE",
    "COMMIT",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "RESET ALL",
    "DISCARD ALL",
    "COMMIT; INSERT INTO only_read VALUES (2)",
    "SELECT 1; COMMIT; INSERT INTO only_read VALUES (2)",
    "ROLLBACK; BEGIN READ WRITE; INSERT INTO only_read VALUES (2)",
    "INSERT INTO only_read VALUES (2)",
    "WITH a AS (INSERT INTO only_read VALUES (2) RETURNING n) SELECT * FROM a",
    "DO $$ BEGIN COMMIT; INSERT INTO only_read VALUES (2); END $$",
    ("DO $$ BEGIN SET TRANSACTION READ WRITE; "
     "PERFORM setval('only_read_seq', 99); END $$"), /* a rollback keeps that */
    "EXPLAIN ANALYZE INSERT INTO only_read VALUES (2)",
    "CREATE TEMP TABLE only_read AS SELECT 3 AS n",
    "SELECT lo_from_bytea(4711, 'x')"};

/* Some are refused before they are executed, as no query of a pool begins or
 * ends a transaction. */
static void try_to_write(const struct uva_adbc_query *query)
{
    recording_init(&f.got);
    f.stream = uva_stream_from_query(pool, query);
    if (fixture_try(&f, NULL) == 0)
        (void)fixture_await(&f);
    fixture_release(&f);
}

/* The driver executes each of these in another way. */
static void try_each_way_to_write(const char *sql)
{
    static const struct uva_pair simple[] = {
        {.key = "adbc.postgresql.use_copy", .value = "false"}, {0}};

    try_to_write(&(struct uva_adbc_query){.sql = sql});
    try_to_write(
        &(struct uva_adbc_query){.sql = sql, .result = UVA_ADBC_CHANGES});
    try_to_write(&(struct uva_adbc_query){.sql = sql, .options = simple});
}

/* The whole pool has one connection, of a superuser. */
START_TEST(a_pool_that_only_reads_cannot_be_talked_out_of_it)
{
    const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};
    static const struct uva_pair read_only[] = {
        {.key = ADBC_CONNECTION_OPTION_READ_ONLY, .value = "true"}, {0}};
    struct uva_adbc_pool *plain = pool;

    ask("CREATE TABLE only_read AS SELECT 1 AS n");
    ask("CREATE SEQUENCE only_read_seq");
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = UVA_TEST_POSTGRESQL,
                                           .options = options,
                                           .connections = 1,
                                           .connection_options = read_only},
                                       &pool, NULL),
                     0);
    for (size_t i = 0; i < sizeof(WAYS_TO_WRITE) / sizeof(char *); i++) {
        try_each_way_to_write(WAYS_TO_WRITE[i]);
        ask("INSERT INTO only_read VALUES (2)");
        recording_ended(&f.got, UVA_END_FAILED, EBUSY, "read-only transaction");
        ck_assert_str_eq(sqlstate, "25006");
        ask("SELECT FROM only_read WHERE current_setting("
            "'default_transaction_read_only') = 'on'");
        recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(f.got.rows, 1);
    }
    uva_adbc_pool_release(pool);
    pool = plain;
    ask("SELECT n FROM only_read UNION ALL SELECT 1 FROM pg_largeobject "
        "UNION ALL SELECT 1 FROM only_read_seq WHERE last_value > 1");
    ck_assert_int_eq(f.got.rows, 1);
}
END_TEST

/* The transaction of the next query cannot begin. */
START_TEST(a_lost_connection_fails_no_query_that_only_reads)
{
    const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};
    static const struct uva_pair read_only[] = {
        {.key = ADBC_CONNECTION_OPTION_READ_ONLY, .value = "true"}, {0}};
    struct uva_adbc_pool *plain = pool, *reads;

    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = UVA_TEST_POSTGRESQL,
                                           .options = options,
                                           .connections = 1,
                                           .connection_options = read_only},
                                       &reads, NULL),
                     0);
    for (int i = 0; i < 5; i++) {
        pool = reads;
        ask("SELECT 1");
        recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
        pool = plain;
        do /* sooner than a connection that was idle is asked */
            ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                "backend_type = 'client backend' AND pid <> pg_backend_pid()");
        while (f.got.rows > 0);
    }
    uva_adbc_pool_release(reads);
}
END_TEST

#define ENDLESS "SELECT generate_series(1, 1000000000) AS lost"

static bool has_batch(void *ctx)
{
    (void)ctx;
    return sleeper.batches > 0;
}

/* Its backend is ended from another connection, in the midst of the rows. */
START_TEST(a_lost_connection_is_reported)
{
    struct uva_stream *lost;

    recording_init(&sleeper);
    sleeper.appetite = 1; /* reads no more until the connection is lost */
    lost =
        uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = ENDLESS});
    recording_start(&sleeper, lost);
    loop_until(&f.loop, has_batch, NULL);
    ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query "
        "LIKE '%AS lost%' AND pid <> pg_backend_pid()");
    ck_assert_int_eq(f.got.rows, 1);
    sleeper.appetite = -1;
    uva_stream_resume(lost);
    recording_await_done(&sleeper, &f.loop);
    ck_assert_int_eq(sleeper.outcome.end, UVA_END_FAILED);
    ck_assert_int_gt(sleeper.rows, 0);
    uva_stream_release(lost);
    ask("SELECT 1"); /* on another connection */
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
}
END_TEST

/* ---- trouble ---------------------------------------------------------------
 */

static struct recording_consumer many[8];

/* Leaves 8 idle connections. */
static void rest(void)
{
    struct uva_stream *streams[8];

    for (int i = 0; i < 8; i++) {
        recording_init(&many[i]);
        streams[i] = uva_stream_from_query(
            pool, &(struct uva_adbc_query){.sql = "SELECT pg_sleep(0.2)"});
        recording_start(&many[i], streams[i]);
    }
    for (int i = 0; i < 8; i++) {
        recording_await_done(&many[i], &f.loop);
        recording_ended(&many[i], UVA_END_COMPLETE, 0, "");
        uva_stream_release(streams[i]);
    }
}

static struct uva_adbc_pool_stats stats(void)
{
    struct uva_adbc_pool_stats now;

    uva_adbc_pool_get_stats(pool, &now);
    return now;
}

static bool are_idle(void *ctx)
{
    loop_nudge(&f.loop);
    return stats().connections_idle == *(long *)ctx;
}

static void await_idle(long count)
{
    loop_until(&f.loop, are_idle, &count);
}

static bool are_stuck(void *ctx)
{
    loop_nudge(&f.loop);
    return stats().connections_stuck == *(long *)ctx;
}

static void await_stuck(long count)
{
    loop_until(&f.loop, are_stuck, &count);
}

/* Queries of each kind, the first of which finds that all are dead. */
static void ask_all(int first)
{
    static const char *const sql[] = {"SELECT 1", "SELECT 2 AS n"};

    for (int i = 0; i < 6; i++) {
        if ((i + first) % 3 == 2)
            ck_assert_int_eq(update("UPDATE restarts SET n = n + 1"), 1);
        else
            ask(sql[(i + first) % 3]);
        recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    }
}

START_TEST(connections_that_were_ended_fail_no_query)
{
    ask("CREATE TABLE IF NOT EXISTS restarts AS SELECT 1 AS n");
    rest();
    await_idle(8);
    if (_i < 3) {
        ask("SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> "
            "pg_backend_pid()");
        ck_assert_int_eq(f.got.rows, 7);
    } else {
        stop_server();
        run_server();
    }
    ask_all(_i);
}
END_TEST

/* A migration under a service that runs. */
START_TEST(a_new_type_is_read_as_what_it_is)
{
    ask("SELECT 1");
    ask("CREATE TYPE mood AS ENUM ('sad', 'glad')");
    ask("SELECT 'glad'::mood AS m, ARRAY['sad'::mood] AS moods");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ask("SELECT 'glad'::mood AS m");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    start("SELECT 'glad'::mood AS m");
    recording_await_done(&f.got, &f.loop);
    ck_assert_str_eq(uva_stream_get_info(stream)->schema->children[0]->format,
                     "u");
    uva_stream_release(stream);
    ask("DROP TYPE mood");
}
END_TEST

/* Listens, and does not answer. */
static int listener_open(char *out, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    (void)snprintf(
        out, size,
        "postgresql://postgres@127.0.0.1:%d/postgres?connect_timeout=2",
        (int)ntohs(address.sin_port));
    return fd;
}

/* The driver's limit ends the call. */
START_TEST(a_server_that_does_not_answer_takes_no_place_for_good)
{
    char silent[100];
    const struct uva_pair options[] = {{.key = "uri", .value = silent}, {0}};
    const int fd = listener_open(silent, sizeof(silent));

    uva_adbc_pool_release(pool);
    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = UVA_TEST_POSTGRESQL,
                                           .options = options,
                                           .connections = 1},
                                       &pool, NULL),
                     0);
    start("SELECT 1");
    loop_settle(&f.loop);
    uva_stream_cancel(stream, 0, NULL);
    await_end();
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "");
    ask("SELECT 1");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "timeout expired");
    await_stuck(0);
    ck_assert_int_eq(stats().connections_used, 0);
    (void)close(fd);
}
END_TEST

/* Signals the server, and its processes, some of which may end meanwhile, as
 * that of a connection that was closed a moment ago. */
static void signal_server(const char *name)
{
    char command[300];

    (void)snprintf(command, sizeof(command),
                   "p=$(head -n 1 %s/db/postmaster.pid) && kill -%s $p && "
                   "for q in $(ps -o pid= --ppid $p); do kill -%s $q || test ! "
                   "-e /proc/$q; done",
                   folder, name, name);
    server(command);
}

/* Asks until there is an answer, as this machine may be too slow for the limits
 * of the pool. */
static void ask_until_well(void)
{
    do
        ask("SELECT 1");
    while (f.got.outcome.error.code == ETIMEDOUT);
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
}

/* Makes a pool whose limits are so many milliseconds, with a connection. */
static void make_pool(int32_t ms)
{
    const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};

    ck_assert_int_eq(uva_adbc_pool_new(f.loop.runtime,
                                       &(struct uva_adbc_pool_options){
                                           .driver = UVA_TEST_POSTGRESQL,
                                           .options = options,
                                           .connections = 2,
                                           .connect_ms = ms,
                                           .wait_ms = ms},
                                       &pool, NULL),
                     0);
    ask_until_well();
    await_idle(1);
}

/* Whether the connection is alive is asked, and the limits of the pool hold for
 * that, too. */
START_TEST(a_frozen_server_is_not_waited_for_behind_a_rest)
{
    struct uva_adbc_pool *patient = pool, *impatient;

    make_pool(1000);
    impatient = pool;
    pool = patient;
    ask("SELECT pg_sleep(0.2)"); /* the rest */
    uva_adbc_pool_release(patient);
    pool = impatient;
    signal_server("STOP");
    ask("SELECT 1");
    recording_ended(&f.got, UVA_END_FAILED, ETIMEDOUT, "has not answered");
    signal_server("CONT");
    await_stuck(0);
    ask_until_well();
}
END_TEST

/* It is frozen, as is a network that swallows all, and goes on. */
START_TEST(a_server_that_was_frozen_is_well_at_once)
{
    uva_adbc_pool_release(pool);
    make_pool(600000); /* the queries have limits of their own */
    signal_server("STOP");
    for (int i = 0; i < 6; i++) {
        recording_init(&f.got);
        stream = uva_stream_from_query(
            pool, &(struct uva_adbc_query){.sql = "SELECT 1"});
        ck_assert_int_eq(
            uva_stream_timeout(stream, &(struct uva_timeout){.first_ms = 500}),
            0);
        recording_start(&f.got, stream);
        await_end();
        ck_assert_int_eq(f.got.outcome.error.code, ETIMEDOUT);
    }
    signal_server("CONT");
    await_stuck(0);
    ask("SELECT 1");
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
}
END_TEST

static bool has_rows(void *ctx)
{
    (void)ctx;
    return f.got.schemas > 0;
}

START_TEST(a_server_that_goes_away_is_reported)
{
    start("SELECT n, pg_sleep(0.001) FROM generate_series(1, 1000000) s (n)");
    loop_until(&f.loop, has_rows, NULL);
    stop_server();
    await_end();
    recording_ended(&f.got, UVA_END_FAILED, EIO,
                    "server closed the connection");
    ask("SELECT 1");
    recording_ended(&f.got, UVA_END_FAILED, EIO, "cannot connect");
}
END_TEST

START_TEST(values_of_each_type_are_bound)
{
    recording_init(&f.got);
    stream = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = value_cases[_i].postgresql,
                                       .values = value_cases[_i].values});
    recording_start(&f.got, stream);
    await_end();
    recording_ended(&f.got, UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(f.got.rows, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("postgresql");

    if (access(UVA_TEST_POSTGRESQL, R_OK) != 0 ||
        access(BIN "initdb", X_OK) != 0)
        return SKIP;
    tcase_set_timeout(tc, 60); /* a restart takes seconds */
    tcase_add_unchecked_fixture(tc, start_server, end_server);
    tcase_add_test(tc, rows_come_and_errors_have_a_sqlstate);
    tcase_add_test(tc, changed_rows_are_counted_without_a_result);
    tcase_add_test(tc, a_pool_that_only_reads_cannot_be_talked_out_of_it);
    tcase_add_test(tc, a_lost_connection_fails_no_query_that_only_reads);
    tcase_add_test(tc, a_cancel_stops_the_backend);
    tcase_add_test(tc, many_queries_share_the_connections);
    tcase_add_test(tc, a_lost_connection_is_reported);
    tcase_add_loop_test(tc, connections_that_were_ended_fail_no_query, 0, 6);
    tcase_add_test(tc, a_new_type_is_read_as_what_it_is);
    tcase_add_test(tc, a_server_that_was_frozen_is_well_at_once);
    tcase_add_test(tc, a_frozen_server_is_not_waited_for_behind_a_rest);
    tcase_add_test(tc, a_server_that_does_not_answer_takes_no_place_for_good);
    tcase_add_loop_test(tc, values_of_each_type_are_bound, 0, VALUE_CASES);
    tcase_add_test(tc, a_server_that_goes_away_is_reported); /* the last one */
    return suite_main("adbc_postgresql", set_up, tear_down, tc, NULL);
}
