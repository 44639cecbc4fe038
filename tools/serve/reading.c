/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a text as the databases do: blanks, comments, quoted parts. Where their
 * readings may differ, the text has several statements. */
#include "reading.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n\f\v"

static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

struct dialect {
    const char *const *words; /* that a text may begin with, NULL behind them */
    const char *line_ends;    /* any of these ends a comment of one line */
    bool nests;               /* comments may be in comments */
    bool is_one;              /* a text must be one statement */
    const char *refusal;      /* of a word that changes something */
    const char *unknown;      /* of another one */
};

/* What changes something, for the status alone. */
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

/* Of several statements, SQLite's driver executes the first, DuckDB's all, and
 * PostgreSQL's refuses them. */
#define ONLY_READ "the database is only read: a query "
#define SEE       "; see --writable"
#define NO_QUERY  "a query "
#define TEXTS(begins)                                                          \
    .refusal = ONLY_READ begins SEE, .unknown = NO_QUERY begins

static const struct dialect DIALECTS[] = {
    [UVA__KIND_SQLITE] = {.words =
                              (const char *const[]){"SELECT", "WITH", "VALUES",
                                                    "EXPLAIN", NULL},
                          .line_ends = "\n",
                          TEXTS("begins with SELECT, WITH, VALUES or "
                                "EXPLAIN")},
    [UVA__KIND_DUCKDB] =
        {.words = (const char *const[]){"SELECT", "WITH", "VALUES", "TABLE",
                                        "FROM", "EXPLAIN", "SHOW", "DESCRIBE",
                                        "SUMMARIZE", "PIVOT", "UNPIVOT", NULL},
         .line_ends = "\r\n",
         .nests = true,
         .is_one = true,
         TEXTS("begins with SELECT, WITH, VALUES, TABLE, FROM, EXPLAIN, "
               "SHOW, DESCRIBE, SUMMARIZE, PIVOT or UNPIVOT")},
    [UVA__KIND_POSTGRESQL] =
        {.words = (const char *const[]){"SELECT", "WITH", "VALUES", "TABLE",
                                        "EXPLAIN", "SHOW", NULL},
         .line_ends = "\r\n",
         .nests = true,
         .is_one = true,
         TEXTS("begins with SELECT, WITH, VALUES, TABLE, EXPLAIN or "
               "SHOW")},
};

static bool is_comment(const char *at)
{
    return strncmp(at, "--", 2) == 0 || strncmp(at, "/*", 2) == 0;
}

/* Returns what follows the comment that begins here. */
static const char *comment_skip(const char *at, const struct dialect *dialect)
{
    int depth = 0;

    if (*at == '-')
        return at + strcspn(at, dialect->line_ends);
    do {
        if (strncmp(at, "/*", 2) == 0 && (dialect->nests || depth == 0))
            depth++;
        else if (strncmp(at, "*/", 2) == 0)
            depth--;
        else if (*at++ != '\0')
            continue;
        else
            return at - 1;
        at += 2;
    } while (depth > 0);
    return at;
}

/* Skips comments, and any of `signs`. */
static const char *gap_skip(const char *at, const char *signs,
                            const struct dialect *dialect)
{
    for (;;) {
        at += strspn(at, signs);
        if (!is_comment(at))
            return at;
        at = comment_skip(at, dialect);
    }
}

static bool word_is(const char *at, const char *word)
{
    const size_t size = strspn(at, LETTERS);

    return size == strlen(word) && strncasecmp(at, word, size) == 0;
}

/* Whether one of the words is here; NULL is behind the last one. */
static bool has_word(const char *at, const char *const *word)
{
    while (*word != NULL && !word_is(at, *word))
        word++;
    return *word != NULL;
}

/* ---- several statements -------------------------------------------------- */

static bool is_of_name(char c)
{
    return (c != '\0' && strchr(LETTERS, c) != NULL) || c == '_' ||
           (c >= '0' && c <= '9') || (unsigned char)c >= 128;
}

/* Returns what follows a text that is quoted by $tag$, or by $$; if none begins
 * here, the next character. */
static const char *dollar_skip(const char *at)
{
    size_t size = 1;
    const char *end;

    if (at[1] >= '0' && at[1] <= '9')
        return at + 1;
    while (is_of_name(at[size]))
        size++;
    if (at[size++] != '$')
        return at + 1;
    for (end = at + size; *end != '\0'; end++)
        if (strncmp(end, at, size) == 0)
            return end + size;
    return end;
}

/* Returns what follows the part of a statement that begins here. */
static const char *part_skip(const char *at, const struct dialect *dialect)
{
    const char *end;

    if (is_comment(at))
        return comment_skip(at, dialect);
    if (*at == '$')
        return dollar_skip(at);
    if (*at == '\'' || *at == '"') {
        end = strchr(at + 1, *at);
        return end != NULL ? end + 1 : at + strlen(at);
    }
    if (!is_of_name(*at) || (*at >= '0' && *at <= '9'))
        return at + 1;
    while (is_of_name(*at) || *at == '$')
        at++;
    return at;
}

/* Returns the first semicolon that may end a statement, or the end. */
static const char *statement_end(const char *at, const struct dialect *dialect)
{
    if (strstr(at, "\\'") != NULL) /* ends some texts, and others not */
        return at + strcspn(at, ";");
    while (*at != '\0' && *at != ';')
        at = part_skip(at, dialect);
    return at;
}

/* Skips EXPLAIN and its options, as DuckDB executes what follows ANALYZE. */
static const char *explain_skip(const char *at, const struct dialect *dialect)
{
    if (!word_is(at, "EXPLAIN"))
        return at;
    at = gap_skip(at + strlen("EXPLAIN"), BLANKS, dialect);
    if (word_is(at, "ANALYZE") || word_is(at, "ANALYSE"))
        at = gap_skip(at + strlen("ANALYZE"), BLANKS, dialect);
    if (*at == '(' &&
        !has_word(gap_skip(at, BLANKS "(", dialect), dialect->words))
        at += strcspn(at, ")") + (strchr(at, ')') != NULL);
    return gap_skip(at, BLANKS "(", dialect);
}

/* ---- what may be asked --------------------------------------------------- */

int uva__reading_check(enum uva__kind kind, const char *sql, const char **why)
{
    const struct dialect *dialect = &DIALECTS[kind];
    const char *at;

    if (kind == UVA__KIND_OTHER)
        return 0;
    at = gap_skip(sql, dialect->is_one ? BLANKS ";(" : BLANKS ";", dialect);
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
    at = gap_skip(statement_end(at, dialect), BLANKS ";", dialect);
    return *at != '\0' ? 403 : 0;
}

bool uva__reading_needs_plain(const char *sql)
{
    const char *at = gap_skip(sql, BLANKS ";", &DIALECTS[UVA__KIND_POSTGRESQL]);

    return word_is(at, "SHOW") || word_is(at, "EXPLAIN");
}
