/* SPDX-License-Identifier: Apache-2.0 */
/* Where statements of SQL begin and end, and their effect on a transaction, by
 * their first words. A text is no further parsed. */
#ifndef UVA_ADBC_SQL_H
#define UVA_ADBC_SQL_H

#include <stdbool.h>

#define UVA__SQL_BLANKS " \t\r\n\f\v"

/* The dialects of databases. */
struct uva__sql_dialect {
    const char *quotes;    /* any of these begins and ends a quoted part */
    const char *line_ends; /* any of these ends a comment of one line */
    bool nests;            /* comments may be in comments */
    bool has_dollars;      /* $tag$ begins and ends a text, too */
    bool has_brackets;     /* [ and ] are around names */
    bool has_escapes;      /* in E'...' a backslash is before any character */
};

/* Of SQLite, and of PostgreSQL and DuckDB, which others resemble. */
extern const struct uva__sql_dialect uva__sql_sqlite, uva__sql_any;

enum uva__sql {
    UVA__SQL_OTHER,
    UVA__SQL_BEGIN,
    UVA__SQL_COMMIT,
    UVA__SQL_ROLLBACK, /* of the whole transaction */
    UVA__SQL_SAVEPOINT /* inside a transaction */
};

/* The effect of a text on a transaction: the last of its statements counts that
 * begins or ends one, then a savepoint. Thread: any. */
enum uva__sql uva__sql_transaction(const char *sql);

/* Skips the text that may stand in front of a statement of any database:
 * blanks, comments, empty statements. Thread: any. */
const char *uva__sql_skip(const char *at);

/* Returns the next statement of a text, after the one that begins at `at`, or
 * the end. The semicolons of a trigger or another program do not end a
 * statement. Thread: any. */
const char *uva__sql_next(const char *at,
                          const struct uva__sql_dialect *dialect);

/* Skips comments, and any of `signs`. Thread: any. */
const char *uva__sql_gap(const char *at, const char *signs,
                         const struct uva__sql_dialect *dialect);

/* Returns the first semicolon that is in no quoted part and in no comment, or
 * the end. Thread: any. */
const char *uva__sql_semicolon(const char *at,
                               const struct uva__sql_dialect *dialect);

#endif
