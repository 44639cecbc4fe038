/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  load -> database -> connection -> statement -> execute.
 * Failures:    each step; the error has the driver's message. Objects made
 *              before are released at the close. */
#include "blocking_query.h"

/* Converts an error of the driver, and releases it. */
static int session_check(AdbcStatusCode status, struct AdbcError *adbc,
                         const char *what, struct uva_error *error)
{
    const struct AdbcError fresh = ADBC_ERROR_INIT;
    int code = 0;

    if (status != ADBC_STATUS_OK)
        code =
            uva_error_set(error, EIO, "%s: %s", what,
                          adbc->message != NULL ? adbc->message
                                                : "the driver gives no reason");
    if (adbc->release != NULL)
        adbc->release(adbc);
    *adbc = fresh;
    return code;
}

static AdbcStatusCode session_set(struct uva__blocking_query *s,
                                  const struct uva__setting *setting,
                                  struct AdbcError *adbc)
{
    const struct AdbcDriver *driver = &s->driver;

    switch (setting->place) {
    case UVA__SETTING_DATABASE:
        return driver->DatabaseSetOption != NULL
                   ? driver->DatabaseSetOption(&s->database, setting->key,
                                               setting->value, adbc)
                   : ADBC_STATUS_NOT_IMPLEMENTED;
    case UVA__SETTING_CONNECTION:
        return driver->ConnectionSetOption != NULL
                   ? driver->ConnectionSetOption(&s->connection, setting->key,
                                                 setting->value, adbc)
                   : ADBC_STATUS_NOT_IMPLEMENTED;
    default:
        return driver->StatementSetOption != NULL
                   ? driver->StatementSetOption(&s->statement, setting->key,
                                                setting->value, adbc)
                   : ADBC_STATUS_NOT_IMPLEMENTED;
    }
}

static int session_set_all(struct uva__blocking_query *s,
                           const struct uva__options *options,
                           enum uva__setting_place place,
                           struct uva_error *error)
{
    int code = 0;

    for (size_t i = 0; i < options->n_settings && code == 0; i++) {
        struct AdbcError adbc = ADBC_ERROR_INIT;

        if (options->settings[i].place == place)
            code = session_check(session_set(s, &options->settings[i], &adbc),
                                 &adbc, options->settings[i].key, error);
    }
    return code;
}

static int session_database(struct uva__blocking_query *s,
                            const struct uva__options *options,
                            struct uva_error *error)
{
    struct uva__setting uri = {UVA__SETTING_DATABASE, "uri", options->uri};
    struct AdbcError adbc = ADBC_ERROR_INIT;
    int code;

    s->database.private_driver = &s->driver;
    code = session_check(s->driver.DatabaseNew(&s->database, &adbc), &adbc,
                         "no database", error);
    if (code == 0 && options->uri != NULL)
        code = session_check(session_set(s, &uri, &adbc), &adbc, "uri", error);
    if (code == 0)
        code = session_set_all(s, options, UVA__SETTING_DATABASE, error);
    if (code == 0)
        code = session_check(s->driver.DatabaseInit(&s->database, &adbc), &adbc,
                             "cannot open the database", error);
    return code;
}

static int session_connection(struct uva__blocking_query *s,
                              const struct uva__options *options,
                              struct uva_error *error)
{
    struct AdbcError adbc = ADBC_ERROR_INIT;
    int code;

    s->connection.private_driver = &s->driver;
    code = session_check(s->driver.ConnectionNew(&s->connection, &adbc), &adbc,
                         "no connection", error);
    if (code == 0)
        code = session_set_all(s, options, UVA__SETTING_CONNECTION, error);
    if (code == 0)
        code = session_check(
            s->driver.ConnectionInit(&s->connection, &s->database, &adbc),
            &adbc, "cannot connect", error);
    return code;
}

static int session_execute(struct uva__blocking_query *s,
                           const struct uva__options *options,
                           struct ArrowArrayStream *rows,
                           struct uva_error *error)
{
    struct AdbcError adbc = ADBC_ERROR_INIT;
    int code;

    s->statement.private_driver = &s->driver;
    code = session_check(
        s->driver.StatementNew(&s->connection, &s->statement, &adbc), &adbc,
        "no statement", error);
    if (code == 0)
        code = session_set_all(s, options, UVA__SETTING_STATEMENT, error);
    if (code == 0)
        code = session_check(s->driver.StatementSetSqlQuery != NULL
                                 ? s->driver.StatementSetSqlQuery(
                                       &s->statement, options->sql, &adbc)
                                 : ADBC_STATUS_NOT_IMPLEMENTED,
                             &adbc, "the driver refuses the query", error);
    if (code == 0)
        code = session_check(
            s->driver.StatementExecuteQuery(&s->statement, rows, NULL, &adbc),
            &adbc, "the query fails", error);
    return code;
}

int uva__blocking_query_open(struct uva__blocking_query *s,
                             const struct uva__options *options,
                             struct ArrowArrayStream *rows,
                             struct uva_error *error)
{
    int code = uva_adbc_load_driver(options->driver, options->entrypoint,
                                    &s->driver, error);

    if (code == 0)
        code = session_database(s, options, error);
    if (code == 0)
        code = session_connection(s, options, error);
    if (code == 0)
        code = session_execute(s, options, rows, error);
    return code;
}

/* Errors are ignored: there is no remedy. */
void uva__blocking_query_close(struct uva__blocking_query *s)
{
    struct AdbcError adbc = ADBC_ERROR_INIT;

    if (s->statement.private_data != NULL)
        (void)session_check(s->driver.StatementRelease(&s->statement, &adbc),
                            &adbc, "", NULL);
    if (s->connection.private_data != NULL)
        (void)session_check(s->driver.ConnectionRelease(&s->connection, &adbc),
                            &adbc, "", NULL);
    if (s->database.private_data != NULL)
        (void)session_check(s->driver.DatabaseRelease(&s->database, &adbc),
                            &adbc, "", NULL);
    if (s->driver.release != NULL)
        (void)session_check(s->driver.release(&s->driver, &adbc), &adbc, "",
                            NULL);
}
