/* SPDX-License-Identifier: Apache-2.0 */
/* A database is opened with its own driver: so two of one pool share only the
 * library. */
#include "adbc/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/libpq.h"
#include "adbc/library.h"
#include "adbc/pairs.h"

/* Parameters that PostgreSQL gets unless the URI has another value. By the name
 * a pooler is recognised, see adbc/pooler.c. Texts of Arrow are UTF-8, whatever
 * the database has. A server or a network that is gone is noticed in 15
 * seconds. */
/* clang-format off */
static const char *const postgresql_parameters[] = {
    "fallback_application_name", "uvarrow",
    "client_encoding", "UTF8",
    "keepalives", "1",
    "keepalives_idle", "6",
    "keepalives_interval", "3",
    "keepalives_count", "3",
    "tcp_user_timeout", "15000",
    NULL};
/* clang-format on */

static AdbcStatusCode database_set(void *object, const char *key,
                                   const char *value, struct AdbcError *error)
{
    struct AdbcDatabase *database = object;
    const struct AdbcDriver *driver = database->private_driver;

    return driver->DatabaseSetOption != NULL
               ? driver->DatabaseSetOption(database, key, value, error)
               : ADBC_STATUS_NOT_IMPLEMENTED;
}

static int database_set_all(struct uva__database *d, char *const *options,
                            struct uva__adbc_failure *failure)
{
    return uva__pairs_set(options, database_set, &d->adbc, &d->driver,
                          "database", failure);
}

/* Gives the URI with parameters of our own, which the caller frees. A connect
 * tries two addresses in its time, of at least 2 seconds each, as libpq has it.
 * NULL without memory. */
static char *postgresql_uri(const char *uri, int64_t connect_ms)
{
    char seconds[24];
    const char *const limit[] = {"connect_timeout", seconds, NULL};
    char *limited, *whole;

    (void)snprintf(seconds, sizeof(seconds), "%lld",
                   (long long)(connect_ms > 4000 ? connect_ms / 2000 : 2));
    limited = uva__libpq_with(uri, limit);
    if (limited == NULL)
        return NULL;
    whole = uva__libpq_with(limited, postgresql_parameters);
    free(limited);
    return whole;
}

/* One database in memory for all connections of a pool, instead of one for
 * each: its content belongs to no session. `name` is unique. */
static char *memory_uri(const void *name)
{
    char uri[64];

    (void)snprintf(uri, sizeof(uri), "file:/uvarrow-%p?vfs=memdb", name);
    return uva__pairs_text(uri, strlen(uri));
}

static bool is_memory(const char *uri)
{
    return strcmp(uri, ":memory:") == 0 || strcmp(uri, "file::memory:") == 0;
}

/* Gives the URI that the driver gets instead, to be freed. NULL without memory.
 */
static char *uri_own(const struct uva__database *d, const char *uri,
                     const void *name, int64_t connect_ms)
{
    if (uva__known_has(d->named, UVA__KNOWN_LIBPQ))
        return postgresql_uri(uri, connect_ms);
    return uva__known_has(d->named, UVA__KNOWN_SPLITS_MEMORY) && is_memory(uri)
               ? memory_uri(name)
               : uva__pairs_text(uri, strlen(uri));
}

/* Sets the options with a URI of our own. */
static int database_set_own(struct uva__database *d, char *const *options,
                            int64_t connect_ms,
                            struct uva__adbc_failure *failure)
{
    char **own = uva__pairs_copy((const char *const *)options);
    char **place = own != NULL ? uva__pairs_find(own, "uri") : NULL;
    char *uri = place != NULL ? uri_own(d, *place, options, connect_ms) : NULL;
    int code;

    if (own == NULL || (place != NULL && uri == NULL)) {
        code = uva__adbc_failure_set(failure, ENOMEM, "no memory for options");
    } else {
        if (place != NULL)
            *place = uri;
        code = database_set_all(d, own, failure);
    }
    free(uri);
    free(own);
    return code;
}

static int database_init(struct uva__database *d, char *const *options,
                         int64_t connect_ms, struct uva__adbc_failure *failure)
{
    struct AdbcError error = uva__adbc_error(&d->driver);
    struct AdbcDatabase made = {.private_driver = &d->driver};
    int code = uva__adbc_failure_take(failure, "the driver gives no database",
                                      d->driver.DatabaseNew(&made, &error),
                                      &error, &d->driver);

    if (code != 0)
        return code;
    d->adbc = made;
    d->adbc.private_driver = &d->driver; /* the driver may have cleared it */
    code = database_set_own(d, options, connect_ms, failure);
    if (code != 0)
        return code;
    error = uva__adbc_error(&d->driver);
    return uva__adbc_failure_take(failure, "cannot open the database",
                                  d->driver.DatabaseInit(&d->adbc, &error),
                                  &error, &d->driver);
}

int uva__database_open(struct uva__database *d, const char *driver,
                       const char *entrypoint, char *const *options,
                       int64_t connect_ms, struct uva__adbc_failure *failure)
{
    int code;

    d->named = uva__known_named(driver);
    code = uva__adbc_driver_load(driver, entrypoint, &d->driver, failure);
    return code == 0 ? database_init(d, options, connect_ms, failure) : code;
}

void uva__database_close(struct uva__database *d)
{
    struct AdbcError error = uva__adbc_error(&d->driver);

    if (d->adbc.private_driver != NULL)
        (void)d->driver.DatabaseRelease(&d->adbc, &error); /* not reported */
    uva__adbc_error_drop(&error);
    error = uva__adbc_error(&d->driver);
    if (d->driver.release != NULL)
        (void)d->driver.release(&d->driver, &error);
    uva__adbc_error_drop(&error);
}
