/* SPDX-License-Identifier: Apache-2.0 */
/* The first words of SQL. */
#include "adbc/sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Skips these characters and comments. */
static const char *sql_skip(const char *at, const char *blanks)
{
    for (;;) {
        const char *end = NULL;

        at += strspn(at, blanks);
        if (strncmp(at, "--", 2) == 0)
            end = strchr(at, '\n');
        else if (strncmp(at, "/*", 2) == 0)
            end = strstr(at + 2, "*/");
        if (end == NULL)
            return at;
        at = end + (*end == '*' ? 2 : 1);
    }
}

const char *uva__sql_skip(const char *at)
{
    return sql_skip(at, " \t\r\n\f\v;");
}

/* The size of the word that begins at `at`; 0: there is none. */
static size_t word_size(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyz"
                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
}

/* `word` is in lower case. */
static bool word_is(const char *at, const char *word)
{
    const size_t size = word_size(at);

    if (size != strlen(word))
        return false;
    for (size_t i = 0; i < size; i++)
        if ((at[i] | 0x20) != word[i])
            return false;
    return true;
}

static const char *word_next(const char *at)
{
    return sql_skip(at + word_size(at), " \t\r\n\f\v");
}

/* BEGIN and END are words of programs, too, where another word follows. */
static bool is_alone(const char *at)
{
    static const char *const WORDS[] = {"",          "transaction", "tran",
                                        "work",      "deferred",    "immediate",
                                        "exclusive", "concurrent",  "isolation",
                                        "read",      "not",         "and"};

    at = word_next(at);
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(*WORDS); i++)
        if (word_is(at, WORDS[i]))
            return true;
    return false;
}

static bool is_before(const char *at, const char *word)
{
    return word_is(word_next(at), word);
}

/* ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] name. */
static enum uva__sql rollback_read(const char *at)
{
    if (is_before(at, "work") || is_before(at, "transaction"))
        at = word_next(at);
    return is_before(at, "to") ? UVA__SQL_SAVEPOINT : UVA__SQL_ROLLBACK;
}

enum uva__sql uva__sql_transaction(const char *sql)
{
    const char *at = uva__sql_skip(sql);

    if ((word_is(at, "begin") && is_alone(at)) ||
        (word_is(at, "start") && is_before(at, "transaction")))
        return UVA__SQL_BEGIN;
    if (word_is(at, "commit") || (word_is(at, "end") && is_alone(at)) ||
        (word_is(at, "prepare") && is_before(at, "transaction")))
        return UVA__SQL_COMMIT;
    if (word_is(at, "rollback"))
        return rollback_read(at);
    if (word_is(at, "abort"))
        return UVA__SQL_ROLLBACK;
    return word_is(at, "savepoint") || word_is(at, "release")
               ? UVA__SQL_SAVEPOINT
               : UVA__SQL_OTHER;
}
