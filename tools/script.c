/* SPDX-License-Identifier: Apache-2.0 */
/* Where statements end depends on the database: SQLite has names in brackets,
 * PostgreSQL and DuckDB texts in dollars. Others have backslashes in texts,
 * comments after #, scripts with variables: theirs is left whole. */
#include "script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/known.h"
#include "adbc/sql.h"

/* The facts about the database that the options name. */
static const struct uva__known *known_of(const struct uva__options *options)
{
    char scheme[64];

    if (options->driver != NULL)
        return uva__known_named(options->driver);
    (void)snprintf(scheme, sizeof(scheme), "%.*s",
                   options->uri != NULL ? (int)strcspn(options->uri, ":") : 0,
                   options->uri != NULL ? options->uri : "");
    return uva__known_named(strcmp(scheme, "postgres") == 0 ? "postgresql"
                                                            : scheme);
}

static bool is_sqlite(const struct uva__options *options)
{
    return uva__known_has(known_of(options), UVA__KNOWN_SPLITS_MEMORY);
}

static const char *explain_word(const struct uva__options *options)
{
    if ((options->extras & UVA__EXTRA_EXPLAIN) == 0)
        return "";
    return is_sqlite(options) ? "EXPLAIN QUERY PLAN " : "EXPLAIN ";
}

const struct uva_pair *
uva__script_explains_with(const struct uva__options *options)
{
    /* a plan cannot be copied */
    static const struct uva_pair plain = {.key = "adbc.postgresql.use_copy",
                                          .value = "false"};

    return (options->extras & UVA__EXTRA_EXPLAIN) != 0 &&
                   uva__known_has(known_of(options), UVA__KNOWN_LIBPQ)
               ? &plain
               : NULL;
}

static int script_add(struct uva__script *script, const char *word,
                      const char *text, size_t size)
{
    char **more =
        realloc(script->texts, (script->count + 1) * sizeof(*script->texts));
    char *copy = malloc(strlen(word) + size + 1);

    if (more != NULL)
        script->texts = more;
    if (more == NULL || copy == NULL) {
        free(copy);
        return ENOMEM;
    }
    (void)sprintf(copy, "%s%.*s", word, (int)size, text);
    script->texts[script->count++] = copy;
    return 0;
}

static int script_check(const struct uva__script *script,
                        const struct uva__options *options,
                        struct uva_error *error)
{
    const char *name = options->n_params > 0     ? "--param"
                       : options->partitions > 0 ? "--partitions"
                       : (options->extras & UVA__EXTRA_EXPLAIN) != 0
                           ? "--explain"
                           : NULL;

    if (script->count < 2 || name == NULL)
        return 0;
    return uva_error_set(error, EINVAL,
                         "%s is for one statement, and there are %zu", name,
                         script->count);
}

/* Returns the next statement, or the end. */
static const char *script_next(const char *at,
                               const struct uva__sql_dialect *dialect)
{
    return dialect != NULL ? uva__sql_next(at, dialect) : at + strlen(at);
}

int uva__script_init(struct uva__script *script,
                     const struct uva__options *options,
                     struct uva_error *error)
{
    const struct uva__sql_dialect *dialect = known_of(options)->sql;
    const char *word = explain_word(options), *at = uva__sql_skip(options->sql),
               *next;
    int code = 0;

    *script = (struct uva__script){0};
    for (; *at != '\0' && code == 0; at = next) {
        size_t size;

        next = script_next(at, dialect);
        size = (size_t)(next - at);
        while (size > 0 && strchr(UVA__SQL_BLANKS ";", at[size - 1]) != NULL)
            size--;
        code = script_add(script, word, at, size);
    }
    if (code != 0)
        return uva_error_set(error, code, "out of memory");
    if (script->count == 0 && word[0] != '\0')
        return uva_error_set(error, EINVAL, "there is no query to explain");
    return script_check(script, options, error);
}

void uva__script_fini(struct uva__script *script)
{
    for (size_t i = 0; i < script->count; i++)
        free(script->texts[i]);
    free(script->texts);
    *script = (struct uva__script){0};
}
