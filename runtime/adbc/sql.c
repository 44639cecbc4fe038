/* SPDX-License-Identifier: Apache-2.0 */
/* A text is read as databases do: blanks, comments, quoted parts, words. */
#include "adbc/sql.h"

#include <stddef.h>
#include <string.h>

#define DIGITS "0123456789"
#define LETTERS                                                                \
    "abcdefghijklmnopqrstuvwxyz"                                               \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"

const struct uva__sql_dialect uva__sql_sqlite = {
    .quotes = "'\"`", .line_ends = "\n", .has_brackets = true};

const struct uva__sql_dialect uva__sql_any = {.quotes = "'\"",
                                              .line_ends = "\r\n",
                                              .nests = true,
                                              .has_dollars = true,
                                              .has_escapes = true};

/* Of a database that may not nest comments. */
static const struct uva__sql_dialect flat = {
    .quotes = "'\"", .line_ends = "\n", .has_dollars = true};

/* ---- comments and quoted parts ------------------------------------------- */

static bool is_comment(const char *at)
{
    return strncmp(at, "--", 2) == 0 || strncmp(at, "/*", 2) == 0;
}

/* Returns the end of the comment that begins here. */
static const char *comment_skip(const char *at,
                                const struct uva__sql_dialect *dialect)
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

const char *uva__sql_gap(const char *at, const char *signs,
                         const struct uva__sql_dialect *dialect)
{
    for (;;) {
        at += strspn(at, signs);
        if (!is_comment(at))
            return at;
        at = comment_skip(at, dialect);
    }
}

const char *uva__sql_skip(const char *at)
{
    return uva__sql_gap(at, UVA__SQL_BLANKS ";", &flat);
}

static bool is_of_name(char c)
{
    return (c != '\0' && strchr(LETTERS DIGITS, c) != NULL) ||
           (unsigned char)c >= 128;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the text after a part that is quoted by $tag$, or by $$; without one
 * here, the next character. */
static const char *dollar_skip(const char *at)
{
    size_t size = 1;
    const char *end;

    if (is_digit(at[1]))
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

static bool is_escaped(const char *at, const struct uva__sql_dialect *dialect)
{
    return dialect->has_escapes && (*at == 'E' || *at == 'e') && at[1] == '\'';
}

/* Returns the text after the quote of E'...', which begins before `at`. It may
 * continue in the next line: by another quote. */
static const char *escapes_skip(const char *at)
{
    for (; *at != '\0'; at++) {
        const size_t blanks = strspn(at + 1, UVA__SQL_BLANKS);

        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (*at == '\'' && at[1 + blanks] == '\'' &&
                 (blanks == 0 || memchr(at + 1, '\n', blanks) != NULL))
            at += 1 + blanks;
        else if (*at == '\'')
            return at + 1;
    }
    return at;
}

/* Returns the end of the part of a statement that begins here. */
static const char *part_skip(const char *at,
                             const struct uva__sql_dialect *dialect)
{
    const bool is_name = dialect->has_brackets && *at == '[';

    if (is_comment(at))
        return comment_skip(at, dialect);
    if (dialect->has_dollars && *at == '$')
        return dollar_skip(at);
    if (is_escaped(at, dialect))
        return escapes_skip(at + 2);
    if (is_name || strchr(dialect->quotes, *at) != NULL) {
        const char *end = strchr(at + 1, is_name ? ']' : *at);

        return end != NULL ? end + 1 : at + strlen(at);
    }
    if (!is_of_name(*at) || is_digit(*at))
        return at + 1;
    while (is_of_name(*at) || *at == '$')
        at++;
    return at;
}

const char *uva__sql_semicolon(const char *at,
                               const struct uva__sql_dialect *dialect)
{
    while (*at != '\0' && *at != ';')
        at = part_skip(at, dialect);
    return at;
}

/* ---- words --------------------------------------------------------------- */

/* The size of the word that begins at `at`; 0: no word. */
static size_t word_size(const char *at)
{
    return strspn(at, LETTERS DIGITS);
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

/* NULL is after the last of the words. */
static bool word_is_any(const char *at, const char *const *words)
{
    while (*words != NULL && !word_is(at, *words))
        words++;
    return *words != NULL;
}

static const char *word_next(const char *at,
                             const struct uva__sql_dialect *dialect)
{
    return uva__sql_gap(at + word_size(at), UVA__SQL_BLANKS, dialect);
}

/* BEGIN and END are words of programs, too, where another word follows. */
static bool is_alone(const char *at, const struct uva__sql_dialect *dialect)
{
    static const char *const words[] = {
        "",          "transaction", "tran",       "work",      "deferred",
        "immediate", "exclusive",   "concurrent", "isolation", "read",
        "not",       "and",         NULL};

    return word_is_any(word_next(at, dialect), words);
}

static bool is_before(const char *at, const char *word,
                      const struct uva__sql_dialect *dialect)
{
    return word_is(word_next(at, dialect), word);
}

/* ---- programs ------------------------------------------------------------ */

/* Returns the text after the BEGIN of the program that a statement has in front
 * of its first semicolon; NULL: it has no program. */
static const char *program_find(const char *at,
                                const struct uva__sql_dialect *dialect)
{
    static const char *const makes[] = {"create", "explain", NULL};
    static const char *const programs[] = {"trigger", "function", "procedure",
                                           NULL};
    bool is_program = false;

    if (word_is(at, "begin") && !is_alone(at, dialect))
        return word_next(at, dialect);
    if (!word_is_any(at, makes))
        return NULL;
    for (; *at != '\0' && *at != ';'; at = part_skip(at, dialect)) {
        if (is_program && word_is(at, "begin"))
            return word_next(at, dialect);
        is_program = is_program || word_is_any(at, programs);
    }
    return NULL;
}

/* Returns the end of the program that begins here: END, as a separate
 * statement. Programs may be in programs. */
static const char *program_end(const char *at,
                               const struct uva__sql_dialect *dialect)
{
    for (int depth = 1; depth > 0 && *at != '\0';) {
        if (word_is(at, "begin")) {
            at = word_next(at, dialect);
            depth++;
            continue;
        }
        if (word_is(at, "end") && strchr(";", *word_next(at, dialect)) != NULL)
            depth--;
        at = uva__sql_semicolon(at, dialect);
        if (depth > 0)
            at = uva__sql_gap(at, UVA__SQL_BLANKS ";", dialect);
    }
    return at;
}

const char *uva__sql_next(const char *at,
                          const struct uva__sql_dialect *dialect)
{
    const char *program = program_find(at, dialect);

    at = program != NULL ? program_end(program, dialect)
                         : uva__sql_semicolon(at, dialect);
    return uva__sql_gap(at, UVA__SQL_BLANKS ";", dialect);
}

/* ---- transactions -------------------------------------------------------- */

/* ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] name. */
static enum uva__sql rollback_read(const char *at,
                                   const struct uva__sql_dialect *dialect)
{
    if (is_before(at, "work", dialect) || is_before(at, "transaction", dialect))
        at = word_next(at, dialect);
    return is_before(at, "to", dialect) ? UVA__SQL_SAVEPOINT
                                        : UVA__SQL_ROLLBACK;
}

static enum uva__sql statement_read(const char *at,
                                    const struct uva__sql_dialect *dialect)
{
    if ((word_is(at, "begin") && is_alone(at, dialect)) ||
        (word_is(at, "start") && is_before(at, "transaction", dialect)))
        return UVA__SQL_BEGIN;
    if (word_is(at, "commit") ||
        (word_is(at, "end") && is_alone(at, dialect)) ||
        (word_is(at, "prepare") && is_before(at, "transaction", dialect)))
        return UVA__SQL_COMMIT;
    if (word_is(at, "rollback"))
        return rollback_read(at, dialect);
    if (word_is(at, "abort"))
        return UVA__SQL_ROLLBACK;
    return word_is(at, "savepoint") || word_is(at, "release")
               ? UVA__SQL_SAVEPOINT
               : UVA__SQL_OTHER;
}

static enum uva__sql text_read(const char *sql,
                               const struct uva__sql_dialect *dialect)
{
    enum uva__sql all = UVA__SQL_OTHER;

    for (const char *at = uva__sql_gap(sql, UVA__SQL_BLANKS ";", dialect);
         *at != '\0'; at = uva__sql_next(at, dialect)) {
        const enum uva__sql one = statement_read(at, dialect);

        if (one != UVA__SQL_OTHER &&
            (one != UVA__SQL_SAVEPOINT || all == UVA__SQL_OTHER))
            all = one;
    }
    return all;
}

enum uva__sql uva__sql_transaction(const char *sql)
{
    const enum uva__sql plain = text_read(sql, &flat);

    return plain != UVA__SQL_OTHER ? plain : text_read(sql, &uva__sql_any);
}
