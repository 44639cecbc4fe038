/* SPDX-License-Identifier: Apache-2.0 */
/* A query that only reads runs in its own transaction.
 *
 * Happy path:  the transaction begins and is made read-only -> (the query) ->
 *              it is rolled back.
 * Failures:  any step: the connection is closed, which rolls back, too.
 *
 * The text of a query may end its transaction: then no further statement of it
 * follows, as drivers of such databases refuse a second statement. */
#include "adbc/read_only.h"

#include <errno.h>
#include <string.h>

#include "adbc/pairs.h"

static const char CANNOT[] = "the query cannot be made read-only";

int uva__read_only_take(char **options, bool *out)
{
    char **value = uva__pairs_find(options, ADBC_CONNECTION_OPTION_READ_ONLY);
    char **at;

    *out = value != NULL && strcmp(*value, ADBC_OPTION_VALUE_ENABLED) == 0;
    if (value == NULL)
        return 0;
    if (!*out && strcmp(*value, ADBC_OPTION_VALUE_DISABLED) != 0)
        return EINVAL;
    for (at = value - 1; at[0] != NULL; at += 2) {
        at[0] = at[2];
        at[1] = at[2] != NULL ? at[3] : NULL;
    }
    return uva__pairs_find(options, ADBC_CONNECTION_OPTION_READ_ONLY) == NULL
               ? 0
               : EINVAL;
}

/* The driver's own way, which lasts as long as the connection. */
static int connection_restrict(struct AdbcConnection *connection,
                               struct uva__adbc_failure *failure)
{
    struct AdbcDriver *driver = connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    const AdbcStatusCode status =
        driver->ConnectionSetOption != NULL
            ? driver->ConnectionSetOption(connection,
                                          ADBC_CONNECTION_OPTION_READ_ONLY,
                                          ADBC_OPTION_VALUE_ENABLED, &error)
            : ADBC_STATUS_NOT_IMPLEMENTED;

    return uva__adbc_failure_take(
        failure,
        "the driver refuses the option " ADBC_CONNECTION_OPTION_READ_ONLY
        " of the connection",
        status, &error, driver);
}

int uva__read_only_begin(struct uva__connection *c,
                         struct uva__adbc_failure *failure)
{
    int code = 0;

    if (c->known->read_only == NULL)
        return connection_restrict(&c->adbc, failure);
    for (const char *const *sql = c->known->read_only;
         *sql != NULL && code == 0; sql++)
        code = uva__connection_execute(c, *sql, CANNOT, failure);
    return code;
}

bool uva__read_only_end(struct uva__connection *c)
{
    struct uva__adbc_failure ignored = {0};
    int code = 0;

    if (c->known->read_only == NULL)
        return true;
    code = uva__connection_execute(c, "ROLLBACK", CANNOT, &ignored);
    uva__adbc_failure_fini(&ignored);
    return code == 0;
}
