/* SPDX-License-Identifier: Apache-2.0 */
/* libpq sends the name of the application when it connects, and so PostgreSQL
 * states "client" as its source. A pooler has connected before, with its own
 * name, and sets its client's by a statement: "session".
 *
 * Its mode shows by process ids: sessions share backends if two have the same
 * one, or one has two. */
#include "adbc/pooler.h"

#include <string.h>

enum { QUESTIONS = 8 }; /* of process ids, to both sessions */

static const char source_sql[] =
    "SELECT count(*) FROM pg_catalog.pg_settings "
    "WHERE name = 'application_name' AND source = 'session'";
static const char pid_sql[] = "SELECT pg_catalog.pg_backend_pid()::bigint";

/* ---- one number --------------------------------------------------------- */

/* Whether a result has one column of int64. */
static bool result_is_number(struct ArrowArrayStream *result)
{
    struct ArrowSchema schema;
    bool is;

    if (result->get_schema(result, &schema) != 0)
        return false;
    is = schema.n_children == 1 && strcmp(schema.children[0]->format, "l") == 0;
    schema.release(&schema);
    return is;
}

/* Reads the value of the first row. */
static bool result_read(struct ArrowArrayStream *result, int64_t *out)
{
    struct ArrowArray array;
    const struct ArrowArray *column;
    bool has;

    if (!result_is_number(result) || result->get_next(result, &array) != 0 ||
        array.release == NULL)
        return false;
    column = array.children[0];
    has = array.length == 1;
    if (has)
        *out = ((const int64_t *)column->buffers[1])[column->offset];
    array.release(&array);
    return has;
}

/* Executes in one round trip, which no other client can come between. */
static bool statement_execute(struct AdbcStatement *statement, const char *sql,
                              struct ArrowArrayStream *out,
                              struct AdbcError *error)
{
    struct AdbcDriver *driver = statement->private_driver;
    int64_t rows;

    return driver->StatementSetOption != NULL &&
           driver->StatementSetSqlQuery != NULL &&
           driver->StatementSetOption(statement, "adbc.postgresql.use_copy",
                                      ADBC_OPTION_VALUE_DISABLED,
                                      error) == ADBC_STATUS_OK &&
           driver->StatementSetSqlQuery(statement, sql, error) ==
               ADBC_STATUS_OK &&
           driver->StatementExecuteQuery(statement, out, &rows, error) ==
               ADBC_STATUS_OK &&
           out->release != NULL;
}

/* Gives the number that a query has as its result. */
static bool connection_ask(struct AdbcConnection *connection, const char *sql,
                           int64_t *out)
{
    struct AdbcDriver *driver = connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    struct AdbcStatement statement = {.private_driver = driver};
    struct ArrowArrayStream result = {0};
    bool has = false;

    if (driver->StatementNew(connection, &statement, &error) ==
        ADBC_STATUS_OK) {
        statement.private_driver = driver;
        has = statement_execute(&statement, sql, &result, &error) &&
              result_read(&result, out);
        if (result.release != NULL)
            result.release(&result);
        uva__adbc_error_drop(&error);
        (void)driver->StatementRelease(&statement, &error);
    }
    uva__adbc_error_drop(&error);
    return has;
}

/* ---- two sessions ------------------------------------------------------- */

/* Whether they share backends. False if that did not happen, too. */
static bool sessions_share(struct AdbcConnection *first,
                           struct AdbcConnection *second)
{
    struct AdbcConnection *const both[] = {first, second};
    int64_t pids[2] = {0, 0}, pid;

    for (int i = 0; i < QUESTIONS; i++) {
        if (!connection_ask(both[i % 2], pid_sql, &pid))
            return false;
        if (pid == pids[(i + 1) % 2] || (i > 1 && pid != pids[i % 2]))
            return true;
        pids[i % 2] = pid;
    }
    return false;
}

/* Whether a second session shares the backend of the first one. */
static bool database_shares(struct AdbcDatabase *database,
                            struct AdbcConnection *first)
{
    struct AdbcDriver *driver = first->private_driver;
    struct AdbcConnection second = {.private_driver = driver};
    struct AdbcError error = uva__adbc_error(driver);
    bool shares = false;

    if (driver->ConnectionNew(&second, &error) == ADBC_STATUS_OK) {
        second.private_driver = driver;
        shares = driver->ConnectionInit(&second, database, &error) ==
                     ADBC_STATUS_OK &&
                 sessions_share(first, &second);
        uva__adbc_error_drop(&error);
        (void)driver->ConnectionRelease(&second, &error);
    }
    uva__adbc_error_drop(&error);
    return shares;
}

enum uva__pooler uva__pooler_look(struct AdbcDatabase *database,
                                  struct AdbcConnection *first)
{
    int64_t poolers;

    if (!connection_ask(first, source_sql, &poolers) || poolers == 0)
        return UVA__POOLER_NONE;
    return database_shares(database, first) ? UVA__POOLER_SHARES
                                            : UVA__POOLER_FOUND;
}
