/* SPDX-License-Identifier: Apache-2.0 */
/* A cancel that DuckDB's driver forgets, as it came before the driver has begun
 * the query: the query then ends all the same, and its connection is closed.
 * The execute is held back until the cancel was there. It then returns at once
 * if another thread of DuckDB has begun the query first: with many threads that
 * is one time of three. Without DuckDB the test is skipped. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

enum { SKIP = 77, TRIES = 16 };

static struct fixture f;
static struct AdbcDriver real, held; /* the second holds executes back */
static struct AdbcDatabase database;
static struct AdbcConnection connection;
static struct AdbcError error;
static atomic_long executes, cancels, closed;

static void ok(AdbcStatusCode status)
{
    ck_assert_msg(status == ADBC_STATUS_OK, "%s", error.message);
}

/* ---- the driver -----------------------------------------------------------
 */

static AdbcStatusCode execute_late(struct AdbcStatement *statement,
                                   struct ArrowArrayStream *out, int64_t *rows,
                                   struct AdbcError *failure)
{
    atomic_fetch_add(&executes, 1);
    while (atomic_load(&cancels) == 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    return real.StatementExecuteQuery(statement, out, rows, failure);
}

static AdbcStatusCode cancel_counted(struct AdbcStatement *statement,
                                     struct AdbcError *failure)
{
    const AdbcStatusCode status = real.StatementCancel(statement, failure);

    atomic_fetch_add(&cancels, 1);
    return status;
}

static void driver_load(void)
{
    void *library = dlopen(UVA_TEST_DUCKDB, RTLD_NOW | RTLD_LOCAL);
    AdbcStatusCode (*init)(int version, void *driver, struct AdbcError *error);
    void *entry;

    ck_assert_msg(library != NULL, "%s", dlerror());
    entry = dlsym(library, "duckdb_adbc_init");
    memcpy(&init, &entry, sizeof(init));
    ok(init(ADBC_VERSION_1_1_0, &real, &error));
    held = real;
    held.StatementExecuteQuery = execute_late;
    held.StatementCancel = cancel_counted;
}

/* ---- a statement ----------------------------------------------------------
 */

static void set_up(void)
{
    fixture_open(&f, 0);
    driver_load();
    database.private_driver = connection.private_driver = &real;
    ok(real.DatabaseNew(&database, &error));
    ok(real.DatabaseSetOption(&database, "path", ":memory:", &error));
    ok(real.DatabaseSetOption(&database, "threads", "64", &error));
    ok(real.DatabaseInit(&database, &error));
    ok(real.ConnectionNew(&connection, &error));
    ok(real.ConnectionInit(&connection, &database, &error));
}

static void tear_down(void)
{
    fixture_close(&f);
    ok(real.DatabaseRelease(&database, &error));
}

/* The last call: it would wait for a query that computes. */
static void connection_close(void *ctx)
{
    (void)ctx;
    ok(real.ConnectionRelease(&connection, &error));
    atomic_fetch_add(&closed, 1);
}

static bool is_one(void *ctx)
{
    loop_nudge(&f.loop);
    return atomic_load((atomic_long *)ctx) == 1;
}

START_TEST(a_cancel_before_the_query_has_begun_is_not_lost)
{
    struct AdbcStatement statement = {.private_driver = &held};

    ok(real.StatementNew(&connection, &statement, &error));
    statement.private_driver = &held;
    ok(real.StatementSetSqlQuery(
        &statement, "SELECT count(*) FROM range(1000000000000000)", &error));
    f.stream = uva_stream_from_adbc(
        f.loop.runtime, &statement,
        &(struct uva_adbc_source){.free_ctx = connection_close});
    fixture_start(&f);
    loop_until(&f.loop, is_one, &executes);
    uva_stream_cancel(f.stream, 0, NULL);
    (void)fixture_await(&f);
    recording_ended(&f.got, UVA_END_CANCELLED, ECANCELED, "");
    loop_until(&f.loop, is_one, &closed);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("duckdb");

    if (access(UVA_TEST_DUCKDB, R_OK) != 0 ||
        dlopen(UVA_TEST_LIBPYTHON, RTLD_LAZY | RTLD_GLOBAL) == NULL)
        return SKIP;
    tcase_add_loop_test(tc, a_cancel_before_the_query_has_begun_is_not_lost, 0,
                        TRIES);
    return suite_main("adbc_duckdb_cancel", set_up, tear_down, tc, NULL);
}
