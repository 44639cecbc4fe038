/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a driver for a connection. */
#include "adbc/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "adbc/pairs.h"

static AdbcStatusCode connection_set(void *object, const char *key,
                                     const char *value, struct AdbcError *error)
{
    struct AdbcConnection *connection = object;
    const struct AdbcDriver *driver = connection->private_driver;

    return driver->ConnectionSetOption != NULL
               ? driver->ConnectionSetOption(connection, key, value, error)
               : ADBC_STATUS_NOT_IMPLEMENTED;
}

int uva__connection_set(struct uva__connection *c, char *const *options,
                        struct uva__adbc_failure *failure)
{
    return uva__pairs_set(options, connection_set, &c->adbc,
                          c->adbc.private_driver, "connection", failure);
}

/* Looks for a pooler after the first connect to a database. */
static void connection_look(struct uva__connection *c,
                            struct uva__database *database)
{
    if (uva__known_has(database->named, UVA__KNOWN_LIBPQ) &&
        !database->has_looked) {
        database->pooler = uva__pooler_look(&database->adbc, &c->adbc);
        c->warns = database->pooler == UVA__POOLER_FOUND;
    }
    database->has_looked = true;
    c->shares = database->pooler == UVA__POOLER_SHARES;
}

/* Some options are taken before a connection is open, others only afterwards,
 * such as SQLite's autocommit: refused options are set then. */
static int connection_init(struct uva__connection *c, char **options,
                           struct uva__adbc_failure *failure)
{
    struct AdbcDriver *driver = c->adbc.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    int code;

    uva__pairs_offer(options, connection_set, &c->adbc, driver);
    code = uva__adbc_failure_take(
        failure, "cannot connect",
        driver->ConnectionInit(&c->adbc, &c->database->adbc, &error), &error,
        driver);
    return code == 0 ? uva__connection_set(c, options, failure) : code;
}

static int connection_open(struct uva__connection *c, char *const *options,
                           struct uva__adbc_failure *failure)
{
    char **copy = uva__pairs_copy((const char *const *)options);
    int code;

    if (copy == NULL)
        return uva__adbc_failure_set(failure, ENOMEM, "no memory for options");
    code = connection_init(c, copy, failure);
    free(copy);
    if (code != 0)
        return code;
    if (c->database->known == NULL)
        c->database->known = uva__known_find(&c->adbc);
    c->known = c->database->known;
    if (uva__known_has(c->known, UVA__KNOWN_LOADS_EXTENSIONS))
        c->interrupt = uva__interrupt_find(&c->adbc);
    connection_look(c, c->database);
    return 0;
}

int uva__connection_open(struct uva__connection *c, char *const *options,
                         struct uva__adbc_failure *failure)
{
    struct AdbcDriver *driver = &c->database->driver;
    struct AdbcConnection made = {.private_driver = driver};
    struct AdbcError error = uva__adbc_error(driver);
    int code = uva__adbc_failure_take(failure, "the driver gives no connection",
                                      driver->ConnectionNew(&made, &error),
                                      &error, driver);

    if (code != 0)
        return code;
    c->adbc = made;
    c->adbc.private_driver = driver; /* the driver may have cleared it */
    code = connection_open(c, options, failure);
    if (code != 0)
        uva__connection_close(c);
    return code;
}

static bool connection_answers(const struct uva__connection *c)
{
    static const uint32_t codes[] = {ADBC_INFO_VENDOR_VERSION};
    struct AdbcConnection adbc = c->adbc;
    struct AdbcDriver *driver = adbc.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    struct ArrowArrayStream answer = {0};
    const AdbcStatusCode status =
        driver->ConnectionGetInfo(&adbc, codes, 1, &answer, &error);

    uva__adbc_error_drop(&error);
    if (status == ADBC_STATUS_OK && answer.release != NULL)
        answer.release(&answer);
    return status == ADBC_STATUS_OK;
}

bool uva__connection_is_alive(const struct uva__connection *c)
{
    return !uva__known_has(c->known, UVA__KNOWN_ANSWERS) ||
           connection_answers(c);
}

int uva__connection_execute(struct uva__connection *c, const char *sql,
                            const char *what, struct uva__adbc_failure *failure)
{
    struct AdbcDriver *driver = c->adbc.private_driver;
    struct AdbcStatement statement = {.private_driver = driver};
    struct AdbcError error = uva__adbc_error(driver), ignored = error;
    AdbcStatusCode status = driver->StatementNew(&c->adbc, &statement, &error);

    if (status == ADBC_STATUS_OK) {
        statement.private_driver = driver; /* the driver may have cleared it */
        status = driver->StatementSetSqlQuery != NULL
                     ? driver->StatementSetSqlQuery(&statement, sql, &error)
                     : ADBC_STATUS_NOT_IMPLEMENTED;
        if (status == ADBC_STATUS_OK)
            status =
                driver->StatementExecuteQuery(&statement, NULL, NULL, &error);
        (void)driver->StatementRelease(&statement, &ignored);
        uva__adbc_error_drop(&ignored);
    }
    return uva__adbc_failure_take(failure, what, status, &error, driver);
}

int uva__connection_wait(struct uva__connection *c, int32_t lock_ms,
                         struct uva__adbc_failure *failure)
{
    char sql[64];

    if (c->known->lock_statement == NULL)
        return 0;
    (void)snprintf(sql, sizeof(sql), "%s%d", c->known->lock_statement,
                   (int)lock_ms);
    return uva__connection_execute(c, sql, "cannot set lock_ms", failure);
}

void uva__connection_close(struct uva__connection *c)
{
    struct AdbcDriver *driver = c->adbc.private_driver;
    struct AdbcError error;

    if (driver == NULL)
        return;
    error = uva__adbc_error(driver);
    (void)driver->ConnectionRelease(&c->adbc, &error); /* not reported */
    uva__adbc_error_drop(&error);
    c->adbc = (struct AdbcConnection){0};
}
