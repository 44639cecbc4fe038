/* SPDX-License-Identifier: Apache-2.0 */
/* Reads to the end, in a buffer that doubles. */
#include "sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adbc/sql.h"

enum { SQL_FIRST = 4096, SQL_MOST = 16 << 20 };

/* Reads the whole file into `*text`, which it may move, and adds a NUL. */
static int sql_read_all(FILE *file, char **text, size_t *size)
{
    size_t room = SQL_FIRST;

    for (*size = 0;; room *= 2) {
        char *more = realloc(*text, room);

        if (more == NULL)
            return ENOMEM;
        *text = more;
        *size += fread(*text + *size, 1, room - 1 - *size, file);
        if (ferror(file))
            return errno == 0 ? EIO : errno;
        if (*size > SQL_MOST)
            return EFBIG;
        if (feof(file)) {
            (*text)[*size] = '\0';
            return 0;
        }
    }
}

static int sql_check(const char *text, size_t size, const char *name,
                     struct uva_error *error)
{
    if (strlen(text) != size)
        return uva_error_set(error, EINVAL,
                             "the query in %s has a NUL character", name);
    if (strspn(text, " \t\r\n;") == size)
        return uva_error_set(error, EINVAL, "there is no query in %s", name);
    return 0;
}

int uva__sql_read(const char *path, char **out, struct uva_error *error)
{
    const bool is_input = strcmp(path, "-") == 0;
    const char *name = is_input ? "standard input" : path;
    FILE *file = is_input ? stdin : fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    int code = file == NULL ? errno : sql_read_all(file, &text, &size);

    if (code != 0)
        (void)uva_error_set(error, code, "cannot read the query in %s: %s",
                            name, strerror(code));
    else
        code = sql_check(text, size, name, error);
    if (file != NULL && !is_input)
        (void)fclose(file);
    if (code == 0)
        *out = text;
    else
        free(text);
    return code;
}

static bool statement_is_update(const char *begin)
{
    static const char *const WORDS[] = {"insert", "update", "delete", "replace",
                                        "merge"};
    size_t i;

    for (i = 0; i < sizeof(WORDS) / sizeof(*WORDS); i++) {
        const size_t size = strlen(WORDS[i]);

        if (strncasecmp(begin, WORDS[i], size) == 0 && begin[size] != '\0' &&
            strchr(" \t\r\n/-", begin[size]) != NULL)
            return true;
    }
    return false;
}

bool uva__sql_is_update(const char *sql)
{
    static const char RETURNING[] = "returning";
    const char *begin = uva__sql_skip(sql), *at;

    if (*begin == '\0')
        return false;
    for (at = begin; *at != '\0'; at++)
        if (strncasecmp(at, RETURNING, sizeof(RETURNING) - 1) == 0)
            return false;
    for (at = begin; *at != '\0'; at = uva__sql_next(at, &uva__sql_any))
        if (!statement_is_update(at))
            return false;
    return true;
}
