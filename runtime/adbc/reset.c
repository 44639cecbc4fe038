/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to a clean session.
 *
 * PostgreSQL:  DISCARD ALL, one round trip. It fails in a transaction, which is
 *              rolled back then.
 * SQLite:      a new connection reads the schema and the pages anew, so after a
 *              statement that only reads it stays; the changes of any other one
 * (temporary objects, attached files, settings, the last rowid) cannot be
 *              undone by a statement.
 * any other:   a new connection.
 *
 * Failures: each call: then the connection is closed. */
#include "adbc/reset.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "adbc/sql.h"
#include "uvarrow/arrow.h"

/* ---- the state that a statement of SQLite leaves ------------------------- */

/* Returns whether a text begins with a word, which has small letters. */
static bool text_begins_with(const char *text, const char *word)
{
    for (; *word != '\0'; text++, word++)
        if (tolower((unsigned char)*text) != *word)
            return false;
    return true;
}

static bool sql_begins_with(const char *sql, const char *word)
{
    return text_begins_with(sql, word) &&
           strchr(" \t\r\n\f(*'\"/-", sql[strlen(word)]) != NULL;
}

static bool sql_has_any(const char *sql, const char *const *words)
{
    for (; *sql != '\0'; sql++)
        for (const char *const *word = words; *word != NULL; word++)
            if (text_begins_with(sql, *word))
                return true;
    return false;
}

/* Whether it only reads. It is one statement, see adbc/query.c. A word that is
 * somewhere in the text counts, as the text is not parsed: so some statements
 * that leave no state are taken for others. */
static bool sql_only_reads(const char *sql)
{
    static const char *const functions[] = {"load_extension", "fts3_tokenizer",
                                            NULL};
    static const char *const writes[] = {"insert", "update", "delete",
                                         "replace", NULL};
    const char *begin = uva__sql_skip(sql);

    if (sql_has_any(sql, functions))
        return false;
    if (sql_begins_with(begin, "with"))
        return !sql_has_any(sql, writes);
    return sql_begins_with(begin, "select") || sql_begins_with(begin, "values");
}

/* ---- a forgotten transaction --------------------------------------------- */

static bool session_execute(struct uva__connection *c, const char *sql)
{
    struct uva__adbc_failure ignored = {0};
    const int code = uva__connection_execute(c, sql, "cannot reset", &ignored);

    uva__adbc_failure_fini(&ignored);
    return code == 0;
}

static bool session_is_manual(struct uva__connection *c)
{
    struct AdbcDriver *driver = c->adbc.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    char value[8] = "";
    size_t size = sizeof(value);

    if (driver->ConnectionGetOption == NULL)
        return false;
    if (driver->ConnectionGetOption(&c->adbc, ADBC_CONNECTION_OPTION_AUTOCOMMIT,
                                    value, &size, &error) != ADBC_STATUS_OK)
        value[0] = '\0';
    uva__adbc_error_drop(&error);
    return strcmp(value, ADBC_OPTION_VALUE_DISABLED) == 0;
}

/* A user's session ends with its transaction, which is no news. The log cuts a
 * text that is too long for it. */
static void forgotten_log(struct uva_runtime *runtime, const char *sql)
{
    char line[1024];

    if (sql[0] == '\0')
        return;
    (void)snprintf(line, sizeof(line),
                   "a transaction that a query left open was rolled back, as "
                   "queries of a pool share connections: %s",
                   sql);
    uva_runtime_log(runtime, UVA_LOG_WARN, NULL, line);
}

/* The close would end it, too, but without a word. */
static void forgotten_look(struct uva__connection *c, const char *sql,
                           struct uva_runtime *runtime)
{
    static const char *const begins[] = {"begin", "start", "savepoint", NULL};

    if (uva__known_has(c->known, UVA__KNOWN_REFUSES_ROLLBACK) &&
        sql_has_any(sql, begins) && session_execute(c, "ROLLBACK"))
        forgotten_log(runtime, sql);
}

/* ---- PostgreSQL --------------------------------------------------------- */

/* Without autocommit the driver begins a transaction before each statement, so
 * it is turned on, and off again with the other options. */
static bool session_autocommit(struct uva__connection *c,
                               struct uva__adbc_failure *failure)
{
    char *pairs[] = {(char *)(uintptr_t)ADBC_CONNECTION_OPTION_AUTOCOMMIT,
                     (char *)(uintptr_t)ADBC_OPTION_VALUE_ENABLED, NULL};
    struct AdbcDriver *driver = c->adbc.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    AdbcStatusCode status;

    if (!session_is_manual(c))
        return true;
    status = driver->ConnectionRollback(&c->adbc, &error);
    uva__adbc_error_drop(&error);
    return status == ADBC_STATUS_OK &&
           uva__connection_set(c, pairs, failure) == 0;
}

/* Whether a transaction is the reason of a failure. */
static bool is_in_transaction(const struct uva__adbc_failure *failure)
{
    struct uva_pair state;

    return failure->metadata != NULL &&
           uva_metadata_get(failure->metadata, "adbc.sqlstate", &state) == 0 &&
           state.value_size == 5 &&
           (memcmp(state.value, "25001", 5) == 0 ||
            memcmp(state.value, "25P02", 5) == 0);
}

static bool session_discard(struct uva__connection *c, const char *sql,
                            struct uva_runtime *runtime)
{
    struct uva__adbc_failure failure = {0};
    bool is_open;
    int code;

    if (c->shares) /* the backend is any other one now */
        return session_execute(c, "ROLLBACK");
    code = uva__connection_execute(c, "DISCARD ALL", "cannot reset", &failure);
    is_open = code != 0 && is_in_transaction(&failure);
    uva__adbc_failure_fini(&failure);
    if (!is_open)
        return code == 0;
    forgotten_log(runtime, sql);
    return session_execute(c, "ROLLBACK") && session_execute(c, "DISCARD ALL");
}

/* The options may have set the discarded state, such as a search path. */
static bool postgresql_reset(struct uva__connection *c, char *const *options,
                             const char *sql, struct uva_runtime *runtime)
{
    struct uva__adbc_failure failure = {0};
    const bool is_clean = session_autocommit(c, &failure) &&
                          session_discard(c, sql, runtime) &&
                          uva__connection_set(c, options, &failure) == 0;

    uva__adbc_failure_fini(&failure);
    return is_clean;
}

/* ---- all ---------------------------------------------------------------- */

bool uva__reset_is_needed(const struct uva__connection *c, const char *sql)
{
    return sql != NULL && (c->known->reset != UVA__RESET_CLOSE_IF_WRITES ||
                           !sql_only_reads(sql));
}

bool uva__reset(struct uva__connection *c, char *const *options,
                const char *sql, struct uva_runtime *runtime)
{
    const bool is_manual = session_is_manual(c) && !sql_only_reads(sql);

    if (is_manual)
        forgotten_log(runtime, sql);
    if (c->known->reset == UVA__RESET_DISCARD_ALL)
        return postgresql_reset(c, options, sql, runtime);
    if (!is_manual) /* DuckDB's driver says so of a transaction of SQL, too */
        forgotten_look(c, sql, runtime);
    return false;
}
