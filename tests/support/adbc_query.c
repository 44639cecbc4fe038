/* SPDX-License-Identifier: Apache-2.0 */
/* The build passes the path from which the driver is loaded. */
#define _GNU_SOURCE
#include "support/adbc_query.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool adbc_query_is_possible(void)
{
    return access(UVA_TEST_DRIVER, R_OK) == 0 &&
           access(UVA_TEST_FLIGHTS, R_OK) == 0 &&
           access(UVA_TEST_PYTHON, X_OK) == 0;
}

static void fine(AdbcStatusCode status, struct AdbcError *said)
{
    ck_assert_msg(status == ADBC_STATUS_OK, "the driver says: %s",
                  said->message != NULL ? said->message : "nothing");
}

static void load(struct AdbcDriver *driver)
{
    struct AdbcError said = ADBC_ERROR_INIT;
    void *library = dlopen(UVA_TEST_DRIVER, RTLD_NOW | RTLD_LOCAL);
    AdbcDriverInitFunc init;
    void *function;

    ck_assert_msg(library != NULL, "%s", dlerror());
    function = dlsym(library, "AdbcDriverInit");
    ck_assert_ptr_nonnull(function);
    memcpy(&init, &function, sizeof(init));
    fine(init(ADBC_VERSION_1_1_0, driver, &said), &said);
}

void adbc_query_open(struct adbc_query *q, const char *database,
                     const char *sql, struct ArrowArrayStream *out)
{
    struct AdbcDriver *driver = &q->driver;
    struct AdbcError said = ADBC_ERROR_INIT;
    char uri[1000];

    memset(q, 0, sizeof(*q));
    load(driver);
    q->database.private_driver = q->connection.private_driver =
        q->statement.private_driver = driver;
    (void)snprintf(uri, sizeof(uri), "file:%s", database);
    fine(driver->DatabaseNew(&q->database, &said), &said);
    fine(driver->DatabaseSetOption(&q->database, "uri", uri, &said), &said);
    fine(driver->DatabaseInit(&q->database, &said), &said);
    fine(driver->ConnectionNew(&q->connection, &said), &said);
    fine(driver->ConnectionInit(&q->connection, &q->database, &said), &said);
    fine(driver->StatementNew(&q->connection, &q->statement, &said), &said);
    fine(driver->StatementSetSqlQuery(&q->statement, sql, &said), &said);
    fine(driver->StatementExecuteQuery(&q->statement, out, NULL, &said), &said);
}

void adbc_query_close(struct adbc_query *q)
{
    struct AdbcError said = ADBC_ERROR_INIT;

    fine(q->driver.StatementRelease(&q->statement, &said), &said);
    fine(q->driver.ConnectionRelease(&q->connection, &said), &said);
    fine(q->driver.DatabaseRelease(&q->database, &said), &said);
    fine(q->driver.release(&q->driver, &said), &said);
}
