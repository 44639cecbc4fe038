/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a driver for a connection. */
#include "adbc/connection.h"

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

int uva__connection_new(struct uva__database *database, char *const *options,
                        struct uva__connection **out,
                        struct uva__adbc_failure *failure)
{
    struct AdbcDriver *driver = &database->driver;
    struct uva__connection *c = calloc(1, sizeof(*c));
    struct AdbcError error = uva__adbc_error(driver);
    int code;

    if (c == NULL)
        return uva__adbc_failure_set(failure, ENOMEM,
                                     "no memory for a connection");
    c->adbc.private_driver = driver;
    code = uva__adbc_failure_take(failure, "the driver gives no connection",
                                  driver->ConnectionNew(&c->adbc, &error),
                                  &error, driver);
    if (code != 0) {
        free(c);
        return code;
    }
    c->adbc.private_driver = driver; /* the driver may have cleared it */
    code = uva__pairs_set(options, connection_set, &c->adbc, driver,
                          "connection", failure);
    if (code != 0)
        uva__connection_close(c);
    else
        *out = c;
    return code;
}

/* Looks for a pooler behind the first connect to a database. */
static void connection_look(struct uva__connection *c,
                            struct uva__database *database)
{
    if (database->is_postgresql && !database->has_looked)
        database->pooler = uva__pooler_look(&database->adbc, &c->adbc);
    database->has_looked = true;
    c->shares = database->pooler == UVA__POOLER_SHARES;
}

int uva__connection_init(struct uva__connection *c,
                         struct uva__database *database,
                         struct uva__adbc_failure *failure)
{
    struct AdbcDriver *driver = &database->driver;
    struct AdbcError error = uva__adbc_error(driver);
    const int code = uva__adbc_failure_take(
        failure, "cannot connect",
        driver->ConnectionInit(&c->adbc, &database->adbc, &error), &error,
        driver);

    if (code != 0)
        return code;
    if (atomic_load(&database->known) == NULL)
        atomic_store(&database->known, uva__known_find(&c->adbc));
    c->known = atomic_load(&database->known);
    connection_look(c, database);
    return 0;
}

void uva__connection_close(struct uva__connection *c)
{
    struct AdbcDriver *driver = c->adbc.private_driver;
    struct AdbcError error = uva__adbc_error(driver);

    (void)driver->ConnectionRelease(&c->adbc, &error); /* not reported */
    uva__adbc_error_drop(&error);
    free(c);
}
