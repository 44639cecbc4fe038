/* SPDX-License-Identifier: Apache-2.0 */
/* The places of a pool, with the double of a driver: connects that hang,
 * queries that do not end after their cancel, unused connections, and their
 * counts. The double's library uses the counts of this program. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

enum { MANY = 8 };

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct recording_consumer got[MANY];
static struct uva_stream *streams[MANY];
static char folder[] = "/tmp/uva_places_XXXXXX";
static char remote[64]; /* the double under the name of a remote database */

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
}

static void make(const struct uva_adbc_pool_options *options)
{
    struct uva_error error = {0};
    const int code = uva_adbc_pool_new(f.loop.runtime, options, &pool, &error);

    ck_assert_msg(code == 0, "%s", error.message);
}

static void tear_down(void)
{
    fake_driver_go();
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.drivers), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

/* ---- queries and events -------------------------------------------------- */

static void start(int i, const char *sql)
{
    recording_init(&got[i]);
    streams[i] =
        uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    recording_start(&got[i], streams[i]);
}

static void await_end(int i)
{
    recording_await_done(&got[i], &f.loop);
    uva_stream_release(streams[i]);
}

static void play(const char *sql)
{
    start(0, sql);
    await_end(0);
}

static void await_complete(int i)
{
    await_end(i);
    recording_ended(&got[i], UVA_END_COMPLETE, 0, "");
}

static void cancel(int i)
{
    uva_stream_cancel(streams[i], 0, NULL);
    await_end(i);
    recording_ended(&got[i], UVA_END_CANCELLED, ECANCELED, "");
}

static bool is_blocked(void *ctx)
{
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) >= *(long *)ctx;
}

static void await_blocked(long count)
{
    loop_until(&f.loop, is_blocked, &count);
}

static struct uva_adbc_pool_stats stats(void)
{
    struct uva_adbc_pool_stats now;

    uva_adbc_pool_get_stats(pool, &now);
    return now;
}

static bool is_stuck(void *ctx)
{
    loop_nudge(&f.loop);
    return stats().connections_stuck == *(long *)ctx;
}

static void await_stuck(long count)
{
    loop_until(&f.loop, is_stuck, &count);
}

static bool is_left(void *ctx)
{
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.connections) == *(long *)ctx;
}

/* Waits until as many connections are open. */
static void await_connections(long count)
{
    loop_until(&f.loop, is_left, &count);
}

/* ---- connecting ---------------------------------------------------------- */

/* In all, the connect must have begun by then, also on a busy machine. */
START_TEST(a_connect_that_hangs_ends_at_its_limit)
{
    const bool in_all = _i == 1;

    make(&(struct uva_adbc_pool_options){.keeps_session = true,
                                         .driver = FAKE,
                                         .connect_ms = in_all ? 0 : 20,
                                         .wait_ms = in_all ? 500 : 0});
    atomic_store(&fake_driver.late, 1);
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, ETIMEDOUT,
                    in_all ? "cannot connect: the database has not answered"
                           : "cannot connect: the database has not answered "
                             "within 20 ms");
    ck_assert_int_eq(stats().connections_used, 0);
    await_stuck(1);
    fake_driver_go();
    await_stuck(0);
    await_connections(0);
}
END_TEST

/* The database is well again, but its call does not return. Index: of few
 * places, and of as many as an option can say. */
START_TEST(a_connect_that_hangs_takes_no_place_from_others)
{
    make(&(struct uva_adbc_pool_options){.keeps_session = true,
                                         .driver = FAKE,
                                         .connections =
                                             _i == 0 ? 1 : INT32_MAX});
    ck_assert_int_gt(stats().connections_max, 1);
    atomic_store(&fake_driver.late, 1);
    start(0, "rows 1");
    await_blocked(1);
    ck_assert_int_eq(stats().connections_used, 1);
    ck_assert_int_eq(stats().queries_waiting, 1);
    cancel(0);
    await_stuck(1);
    for (int i = 0; i < 3; i++) {
        start(0, "rows 1");
        await_complete(0);
    }
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 2);
    fake_driver_go();
    await_stuck(0);
    await_connections(1);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 2);
}
END_TEST

static bool is_closed_database(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.databases) == 1;
}

/* Its database is closed after it. */
START_TEST(the_database_of_a_connect_that_hung_is_replaced)
{
    make(
        &(struct uva_adbc_pool_options){.keeps_session = true, .driver = FAKE});
    start(0, "rows 1");
    await_complete(0);
    atomic_store(&fake_driver.late, 1);
    start(0, "execute blocks");
    await_blocked(1);
    start(1, "rows 1"); /* the first connection is in use */
    await_blocked(2);
    cancel(1);
    await_stuck(1);
    start(1, "rows 1");
    await_complete(1);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 2);
    fake_driver_go();
    cancel(0);
    loop_until(&f.loop, is_closed_database, NULL);
    start(1, "rows 1");
    await_complete(1);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 1);
}
END_TEST

START_TEST(connects_to_a_remote_database_run_side_by_side)
{
    make(&(struct uva_adbc_pool_options){.keeps_session = true,
                                         .driver = remote,
                                         .entrypoint = "fake_other_init"});
    atomic_store(&fake_driver.late, 3);
    for (int i = 0; i < 3; i++)
        start(i, "rows 1");
    await_blocked(3);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 3);
    fake_driver_go();
    for (int i = 0; i < 3; i++)
        await_complete(i);
}
END_TEST

/* ADBC allows one call of a database at one time. */
START_TEST(a_connect_that_waits_for_another_ends_with_its_limit)
{
    make(&(struct uva_adbc_pool_options){
        .keeps_session = true, .driver = FAKE, .connect_ms = 20});
    atomic_store(&fake_driver.late, 100);
    for (int i = 0; i < 3; i++)
        start(i, "rows 1");
    for (int i = 0; i < 3; i++) {
        await_end(i);
        recording_ended(&got[i], UVA_END_FAILED, ETIMEDOUT, "cannot connect");
    }
}
END_TEST

START_TEST(as_many_connects_hang_as_may_be_stuck)
{
    make(&(struct uva_adbc_pool_options){.keeps_session = true,
                                         .driver = FAKE,
                                         .connections = 1,
                                         .stuck_connections = 2,
                                         .wait_ms = 300});
    atomic_store(&fake_driver.late, 100);
    ck_assert_int_eq(stats().connections_max, 3);
    for (int i = 0; i < 3; i++) {
        start(i, "rows 1");
        await_blocked(i + 1);
        cancel(i);
        await_stuck(i + 1);
    }
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, ETIMEDOUT,
                    "the pool is full: 1 connections are used");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 3);
    fake_driver_go();
    await_stuck(0);
    start(0, "rows 1");
    await_complete(0);
}
END_TEST

/* A place may be taken by a connection that is being closed, too. */
START_TEST(a_query_with_a_permit_does_not_wait_for_ever)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE,
                                         .connections = 1,
                                         .idle_ms = 5,
                                         .wait_ms = 1000,
                                         .keeps_session = true});
    if (_i == 1) {
        atomic_store(&fake_driver.late, 1);
        start(0, "rows 1");
        await_blocked(1);
        cancel(0);
        await_stuck(1);
    }
    fake_driver.closes_late = true;
    start(0, "rows 1");
    await_complete(0);
    await_blocked(_i + 1); /* the close of that */
    play("rows 1");
    recording_ended(&got[0], UVA_END_FAILED, ETIMEDOUT,
                    _i == 0
                        ? "the pool is full: 1 connections are used, and none "
                          "was free within 1000 ms"
                        : "used, and 1 are in a call that does not return, and "
                          "none was free within");
}
END_TEST

static bool is_calm(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return stats().queries_waiting == 0;
}

START_TEST(a_query_with_a_permit_that_waits_can_be_cancelled)
{
    make(&(struct uva_adbc_pool_options){
        .driver = FAKE, .connections = 1, .idle_ms = 5, .keeps_session = true});
    fake_driver.closes_late = true;
    start(0, "rows 1");
    await_complete(0);
    await_blocked(1); /* the close of that */
    start(1, "rows 1");
    loop_settle(&f.loop);
    ck_assert_int_eq(stats().queries_waiting, 1);
    cancel(1);
    loop_until(&f.loop, is_calm, NULL);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

START_TEST(a_wait_may_be_as_long_as_can_be)
{
    make(&(struct uva_adbc_pool_options){.driver = FAKE, .wait_ms = INT64_MAX});
    start(0, "rows 1");
    await_complete(0);
}
END_TEST

/* ---- queries that do not end --------------------------------------------- */

START_TEST(a_query_that_does_not_end_after_its_cancel_frees_its_place)
{
    make(&(struct uva_adbc_pool_options){.keeps_session = true,
                                         .driver = FAKE,
                                         .connections = 1,
                                         .stuck_connections = 1});
    start(0, "execute stops");
    await_blocked(1);
    cancel(0);
    start(0, "execute stops"); /* when the first one is written off */
    await_blocked(2);
    ck_assert_int_eq(stats().connections_stuck, 1);
    ck_assert_int_eq(stats().connections_used, 1);
    cancel(0);
    await_stuck(2);
    start(0, "rows 1"); /* waits: no more may be stuck */
    loop_settle(&f.loop);
    ck_assert_int_eq(got[0].done, 0);
    ck_assert_int_eq(stats().queries_waiting, 1);
    fake_driver_go();
    await_complete(0);
    await_stuck(0);
    ck_assert_int_eq(atomic_load(&fake_driver.most), 2);
    ck_assert_int_eq(stats().queries, 3);
}
END_TEST

/* ---- unused connections ------------------------------------------------- */

START_TEST(idle_connections_are_closed_by_a_timer)
{
    make(&(struct uva_adbc_pool_options){.keeps_session = true,
                                         .driver = FAKE,
                                         .idle_ms = _i == 0 ? 5 : 0,
                                         .max_age_ms = _i * 5});
    start(0, "rows 1");
    await_complete(0);
    await_connections(0);
    ck_assert_int_eq(stats().connections_idle, 0);
}
END_TEST

/* One in this process may be in memory alone: it stays. */
START_TEST(a_remote_database_that_is_old_is_opened_again)
{
    make(&(struct uva_adbc_pool_options){.driver = _i == 0 ? remote : FAKE,
                                         .entrypoint = "fake_other_init",
                                         .max_age_ms = 5,
                                         .keeps_session = true});
    for (int i = 1; i < 3; i++) {
        start(0, "rows 1");
        await_complete(0);
        await_connections(0);
        ck_assert_int_eq(atomic_load(&fake_driver.opened), _i == 0 ? i : 1);
    }
}
END_TEST

START_TEST(no_connection_is_kept_for_a_millisecond)
{
    make(&(struct uva_adbc_pool_options){
        .keeps_session = true, .driver = FAKE, .idle_ms = 1});
    for (int i = 0; i < 2; i++) {
        start(0, "rows 1");
        await_complete(0);
    }
    await_connections(0);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 2);
}
END_TEST

static bool are_idle(void *ctx)
{
    loop_nudge(&f.loop);
    return stats().connections_idle == *(long *)ctx;
}

static void await_idle(long count)
{
    loop_until(&f.loop, are_idle, &count);
}

START_TEST(the_counts_are_those_of_now)
{
    static const int64_t none[8];
    struct uva_adbc_pool_stats now;

    uva_adbc_pool_get_stats(NULL, &now);
    ck_assert_int_eq(now.connections_max, 0);
    make(&(struct uva_adbc_pool_options){
        .keeps_session = true, .driver = FAKE, .connections = 2});
    ck_assert_int_eq(stats().connections_max, 4);
    start(0, "rows 1");
    await_complete(0);
    await_idle(1);
    for (int i = 0; i < 3; i++)
        start(i, "execute waits");
    await_blocked(2);
    loop_settle(&f.loop);
    now = stats();
    ck_assert_int_eq(now.connections_used, 2);
    ck_assert_int_eq(now.connections_idle, 0);
    ck_assert_int_eq(now.connections_stuck, 0);
    ck_assert_int_eq(now.queries_waiting, 1);
    ck_assert_int_eq(now.queries, 3);
    ck_assert_mem_eq(now.reserved, none, sizeof(none));
    uva_stream_cancel(streams[2], 0, NULL); /* that waits for its permit */
    await_end(2);
    fake_driver_go();
    await_complete(0);
    await_complete(1);
}
END_TEST

/* ---- connections and databases that are lost ----------------------------- */

/* Leaves as many idle connections. */
static void rest(long count)
{
    for (int i = 0; i < count; i++)
        start(i, "execute waits");
    await_blocked(count);
    fake_driver_go();
    for (int i = 0; i < count; i++)
        await_complete(i);
    await_idle(count);
    atomic_store(&fake_driver.goes, false);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), count);
}

START_TEST(what_was_not_executed_is_tried_once_more)
{
    const bool twice = _i == 1;

    make(
        &(struct uva_adbc_pool_options){.driver = FAKE, .keeps_session = true});
    rest(3);
    atomic_store(&fake_driver.deaths, twice ? 2 : 1);
    play("execute dies");
    if (twice)
        recording_ended(&got[0], UVA_END_FAILED, EIO, "Failed to prepare");
    else
        recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 4); /* a new one */
    await_connections(twice ? 0 : 1);
}
END_TEST

START_TEST(what_may_have_been_executed_is_not_repeated)
{
    make(
        &(struct uva_adbc_pool_options){.driver = FAKE, .keeps_session = true});
    rest(3);
    atomic_store(&fake_driver.deaths, 1);
    play("execute breaks");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "could not receive data");
    await_connections(0); /* as dead as that one */
    ck_assert_int_eq(atomic_load(&fake_driver.executed), 4);
    play("execute breaks");
    recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
}
END_TEST

/* Parameters that may have been read are lost. */
START_TEST(what_has_parameters_is_tried_again_until_they_are_read)
{
    const bool are_read = _i == 1;
    struct fake_query q;
    struct ArrowArrayStream rows;
    int64_t none;

    fake_driver_open(&q, "rows 1");
    ck_assert_int_eq(
        q.driver.StatementExecuteQuery(&q.statement, &rows, &none, NULL),
        ADBC_STATUS_OK);
    make(
        &(struct uva_adbc_pool_options){.driver = FAKE, .keeps_session = true});
    atomic_store(&fake_driver.deaths, 1);
    recording_init(&got[0]);
    streams[0] = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = are_read ? "execute dies"
                                                       : "prepare dies",
                                       .parameters = &rows});
    recording_start(&got[0], streams[0]);
    await_end(0);
    if (are_read)
        recording_ended(&got[0], UVA_END_FAILED, EIO, "Failed to prepare");
    else
        recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
    ck_assert_int_eq(got[0].rows, are_read ? 0 : 1);
    fake_driver_close(&q);
}
END_TEST

/* Earlier work of the session is lost with the connection. */
START_TEST(a_query_of_a_session_is_not_repeated)
{
    struct uva_adbc_pool *outer;

    make(&(struct uva_adbc_pool_options){.driver = FAKE});
    outer = pool;
    ck_assert_int_eq(uva_adbc_pool_session(outer, NULL, &pool, NULL), 0);
    atomic_store(&fake_driver.deaths, 1);
    play("execute dies");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "Failed to prepare");
    uva_adbc_pool_release(pool);
    pool = outer;
}
END_TEST

START_TEST(a_failure_in_the_rows_ends_idle_connections_too)
{
    make(
        &(struct uva_adbc_pool_options){.driver = FAKE, .keeps_session = true});
    rest(2);
    atomic_store(&fake_driver.deaths, 1);
    play("batch 1 breaks");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "could not receive data");
    await_connections(0);
}
END_TEST

START_TEST(a_database_with_a_fatal_error_is_opened_again)
{
    make(
        &(struct uva_adbc_pool_options){.driver = FAKE, .keeps_session = true});
    rest(2);
    play("execute fatal");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "FATAL Error");
    start(0, "rows 1");
    await_complete(0);
    ck_assert_int_eq(atomic_load(&fake_driver.opened), 2);
    while (atomic_load(&fake_driver.databases) != 1) /* a worker closes it */
        loop_settle(&f.loop);
}
END_TEST

/* A query whose call does not return would keep it open, and every other query
 * waiting, for good. */
START_TEST(a_database_that_only_a_stuck_query_keeps_open_holds_up_no_connect)
{
    make(&(struct uva_adbc_pool_options){
        .driver = FAKE, .connections = 1, .keeps_session = true});
    start(0, "execute stops");
    await_blocked(1);
    cancel(0);
    await_stuck(1);
    play("execute fatal");
    recording_ended(&got[0], UVA_END_FAILED, EIO, "FATAL Error");
    start(0, "rows 1");
    await_complete(0);
    ck_assert_int_eq(atomic_load(&fake_driver.opened), 2);
}
END_TEST

/* It stays open for the query that runs on it. The third one knows the type no
 * more than the second one, and stays. */
START_TEST(a_database_that_is_given_up_is_not_used_again)
{
    static const char sql[] = "strange unnamed<oid:1>";

    make(&(struct uva_adbc_pool_options){.driver = remote,
                                         .entrypoint = "fake_other_init",
                                         .keeps_session = true});
    start(0, "execute waits");
    await_blocked(1);
    for (int i = 1; i < 5; i++) {
        start(1, i == 1 ? "execute fatal" : i < 4 ? sql : "rows 1");
        await_end(1);
        ck_assert_int_eq(got[1].outcome.error.code, i == 1 ? EIO : 0);
        ck_assert_int_eq(atomic_load(&fake_driver.opened), i < 3 ? i : 3);
    }
    fake_driver_go();
    await_complete(0);
}
END_TEST

/* A type that was made after the open of the database is known to the next one;
 * a type that no database knows is not asked for again and again. */
START_TEST(a_database_that_does_not_know_a_type_is_opened_again)
{
    char sql[40];

    make(
        &(struct uva_adbc_pool_options){.driver = FAKE, .keeps_session = true});
    for (int i = 0; i < 12; i++) {
        (void)snprintf(sql, sizeof(sql), "strange unnamed<oid:%d>", i);
        play(sql);
        recording_ended(&got[0], UVA_END_COMPLETE, 0, "");
        ck_assert_int_eq(atomic_load(&fake_driver.opened), i + 1);
        start(0, "rows 1");
        await_complete(0);
        play(sql);
        ck_assert_int_eq(atomic_load(&fake_driver.opened), i + 2);
    }
    play("strange bytea");
    ck_assert_int_eq(atomic_load(&fake_driver.opened), 13);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("places");
    int code;

    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(remote, sizeof(remote), "%s/flightsql.so", folder);
    if (symlink(FAKE, remote) != 0)
        return 1;
    suite_add_loops(tc, 0, 2, a_connect_that_hangs_ends_at_its_limit,
                    a_connect_that_hangs_takes_no_place_from_others,
                    idle_connections_are_closed_by_a_timer, NULL);
    tcase_add_test(tc, the_database_of_a_connect_that_hung_is_replaced);
    tcase_add_test(tc, connects_to_a_remote_database_run_side_by_side);
    tcase_add_test(tc, a_connect_that_waits_for_another_ends_with_its_limit);
    tcase_add_test(tc, as_many_connects_hang_as_may_be_stuck);
    tcase_add_test(tc,
                   a_query_that_does_not_end_after_its_cancel_frees_its_place);
    tcase_add_test(
        tc, a_database_that_only_a_stuck_query_keeps_open_holds_up_no_connect);
    tcase_add_test(tc, no_connection_is_kept_for_a_millisecond);
    tcase_add_test(tc, the_counts_are_those_of_now);
    tcase_add_loop_test(tc, what_was_not_executed_is_tried_once_more, 0, 2);
    tcase_add_test(tc, what_may_have_been_executed_is_not_repeated);
    tcase_add_loop_test(
        tc, what_has_parameters_is_tried_again_until_they_are_read, 0, 2);
    tcase_add_test(tc, a_query_of_a_session_is_not_repeated);
    tcase_add_test(tc, a_query_with_a_permit_that_waits_can_be_cancelled);
    tcase_add_test(tc, a_wait_may_be_as_long_as_can_be);
    suite_add_loops(tc, 0, 2, a_query_with_a_permit_does_not_wait_for_ever,
                    a_remote_database_that_is_old_is_opened_again, NULL);
    tcase_add_test(tc, a_failure_in_the_rows_ends_idle_connections_too);
    tcase_add_test(tc, a_database_with_a_fatal_error_is_opened_again);
    tcase_add_test(tc, a_database_that_is_given_up_is_not_used_again);
    tcase_add_test(tc, a_database_that_does_not_know_a_type_is_opened_again);
    code = suite_main("places", set_up, tear_down, tc, NULL);
    (void)unlink(remote);
    (void)rmdir(folder);
    return code;
}
