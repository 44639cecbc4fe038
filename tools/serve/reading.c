/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a text as the databases do: blanks, comments, quoted parts. Where their
 * readings may differ, the text has several statements. */
#include "reading.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "adbc/sql.h"

static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

struct dialect {
    const char *const *words; /* that a text may begin with, NULL after them */
    const struct uva__sql_dialect *text; /* how it is read */
    bool is_one;                         /* it must be one statement */
    const char *refusal;                 /* of a word that changes something */
    const char *unknown;                 /* of another one */
};

/* Statements that change something, for the status alone. */
static const char *const CHANGING[] = {
    "ABORT",      "ALTER",      "ANALYZE",  "ATTACH",    "BEGIN",    "CALL",
    "CHECKPOINT", "CLOSE",      "CLUSTER",  "COMMENT",   "COMMIT",   "COPY",
    "CREATE",     "DEALLOCATE", "DECLARE",  "DELETE",    "DETACH",   "DISCARD",
    "DO",         "DROP",       "END",      "EXECUTE",   "EXPORT",   "FETCH",
    "FORCE",      "GRANT",      "IMPORT",   "INSERT",    "INSTALL",  "LISTEN",
    "LOAD",       "LOCK",       "MERGE",    "MOVE",      "NOTIFY",   "PRAGMA",
    "PREPARE",    "REASSIGN",   "REFRESH",  "REINDEX",   "RELEASE",  "REPLACE",
    "RESET",      "REVOKE",     "ROLLBACK", "SAVEPOINT", "SECURITY", "SET",
    "START",      "TRUNCATE",   "UNLISTEN", "UPDATE",    "USE",      "VACUUM",
    NULL};

/* Several statements to SQLite are refused by the pool. DuckDB's driver
 * executes them, and PostgreSQL's refuses them. */
#define ONLY_READ "the database is only read: a query "
#define SEE       "; see --writable"
#define NO_QUERY  "a query "
#define TEXTS(begins)                                                          \
    .refusal = ONLY_READ begins SEE, .unknown = NO_QUERY begins

static const struct dialect DIALECTS[] = {
    [UVA__KIND_SQLITE] = {.words =
                              (const char *const[]){"SELECT", "WITH", "VALUES",
                                                    "EXPLAIN", NULL},
                          .text = &uva__sql_sqlite,
                          TEXTS("begins with SELECT, WITH, VALUES or "
                                "EXPLAIN")},
    [UVA__KIND_DUCKDB] =
        {.words = (const char *const[]){"SELECT", "WITH", "VALUES", "TABLE",
                                        "FROM", "EXPLAIN", "SHOW", "DESCRIBE",
                                        "SUMMARIZE", "PIVOT", "UNPIVOT", NULL},
         .text = &uva__sql_any,
         .is_one = true,
         TEXTS("begins with SELECT, WITH, VALUES, TABLE, FROM, EXPLAIN, "
               "SHOW, DESCRIBE, SUMMARIZE, PIVOT or UNPIVOT")},
    [UVA__KIND_POSTGRESQL] =
        {.words = (const char *const[]){"SELECT", "WITH", "VALUES", "TABLE",
                                        "EXPLAIN", "SHOW", NULL},
         .text = &uva__sql_any,
         .is_one = true,
         TEXTS("begins with SELECT, WITH, VALUES, TABLE, EXPLAIN or "
               "SHOW")},
};

static bool word_is(const char *at, const char *word)
{
    const size_t size = strspn(at, LETTERS);

    return size == strlen(word) && strncasecmp(at, word, size) == 0;
}

/* Whether one of the words is here; NULL is after the last one. */
static bool has_word(const char *at, const char *const *word)
{
    while (*word != NULL && !word_is(at, *word))
        word++;
    return *word != NULL;
}

/* ---- several statements -------------------------------------------------- */

/* Returns the first semicolon that may end a statement, or the end. */
static const char *statement_end(const char *at, const struct dialect *dialect)
{
    if (strstr(at, "\\'") != NULL) /* ends some texts, and others not */
        return at + strcspn(at, ";");
    return uva__sql_semicolon(at, dialect->text);
}

/* Skips EXPLAIN and its options, as DuckDB executes the statement after
 * ANALYZE. */
static const char *explain_skip(const char *at, const struct dialect *dialect)
{
    if (!word_is(at, "EXPLAIN"))
        return at;
    at = uva__sql_gap(at + strlen("EXPLAIN"), UVA__SQL_BLANKS, dialect->text);
    if (word_is(at, "ANALYZE") || word_is(at, "ANALYSE"))
        at = uva__sql_gap(at + strlen("ANALYZE"), UVA__SQL_BLANKS,
                          dialect->text);
    if (*at == '(' &&
        !has_word(uva__sql_gap(at, UVA__SQL_BLANKS "(", dialect->text),
                  dialect->words))
        at += strcspn(at, ")") + (strchr(at, ')') != NULL);
    return uva__sql_gap(at, UVA__SQL_BLANKS "(", dialect->text);
}

/* ---- allowed queries ------------------------------------------------------
 */

int uva__reading_check(enum uva__kind kind, const char *sql, const char **why)
{
    const struct dialect *dialect = &DIALECTS[kind];
    const char *at;

    if (kind == UVA__KIND_OTHER)
        return 0;
    at = uva__sql_gap(
        sql, dialect->is_one ? UVA__SQL_BLANKS ";(" : UVA__SQL_BLANKS ";",
        dialect->text);
    if (kind == UVA__KIND_DUCKDB)
        at = explain_skip(at, dialect);
    *why = "there is no statement";
    if (*at == '\0')
        return 400;
    if (!has_word(at, dialect->words)) {
        const bool changes = has_word(at, CHANGING);

        *why = changes ? dialect->refusal : dialect->unknown;
        return changes ? 403 : 400;
    }
    if (!dialect->is_one)
        return 0;
    *why = "the database is only read: a text is one statement; see "
           "--writable";
    at = uva__sql_gap(statement_end(at, dialect), UVA__SQL_BLANKS ";",
                      dialect->text);
    return *at != '\0' ? 403 : 0;
}

/* Whether a word is anywhere in a text, also in quotes, which may be read in
 * several ways; a function has its name, but its bracket, too. */
static bool text_has(const char *sql, const char *word, bool as_function)
{
    for (; *sql != '\0'; sql++) {
        const size_t size = strspn(sql, LETTERS);
        const char *end = sql + size + strspn(sql + size, UVA__SQL_BLANKS);

        if (size == 0)
            continue;
        if (word_is(sql, word) && (as_function || *end != '('))
            return true;
        sql += size - 1;
    }
    return false;
}

bool uva__reading_is_safe(enum uva__kind kind, const char *sql)
{
    if (kind == UVA__KIND_POSTGRESQL)
        return true;
    if (kind == UVA__KIND_DUCKDB && text_has(sql, "NEXTVAL", true))
        return false;
    return !text_has(sql, "WITH", true) ||
           !(text_has(sql, "INSERT", false) || text_has(sql, "UPDATE", true) ||
             text_has(sql, "DELETE", true) || text_has(sql, "REPLACE", false) ||
             text_has(sql, "MERGE", true));
}

bool uva__reading_needs_plain(const char *sql)
{
    const char *at = uva__sql_gap(sql, UVA__SQL_BLANKS ";", &uva__sql_any);

    return word_is(at, "SHOW") || word_is(at, "EXPLAIN");
}
