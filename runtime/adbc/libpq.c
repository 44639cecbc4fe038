/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters are added at the end: of a URI behind "?" or "&", of a list behind
 * a blank. */
#include "adbc/libpq.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_uri(const char *text)
{
    return strncmp(text, "postgresql://", 13) == 0 ||
           strncmp(text, "postgres://", 11) == 0;
}

/* Whether `key` is set at `at`, where it was found in `text`. */
static bool is_set_at(const char *text, const char *at, const char *key)
{
    const char *end = at + strlen(key);

    if (at > text && strchr("?& \t\n", at[-1]) == NULL)
        return false;
    while (isspace((unsigned char)*end))
        end++;
    return *end == '=';
}

static bool is_set(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    while (at != NULL && !is_set_at(text, at, key))
        at = strstr(at + 1, key);
    return at != NULL;
}

/* What stands between `text` and one more parameter. */
static const char *mark_behind(const char *text)
{
    if (!is_uri(text))
        return " ";
    if (strchr(text, '?') == NULL)
        return "?";
    return strchr("?&", text[strlen(text) - 1]) != NULL ? "" : "&";
}

char *uva__libpq_with(const char *text, const char *const *parameters)
{
    size_t size = strlen(text) + 1, used;
    char *copy;

    for (const char *const *p = parameters; *p != NULL; p += 2)
        size += strlen(p[0]) + strlen(p[1]) + 2;
    copy = malloc(size);
    if (copy == NULL)
        return NULL;
    used = (size_t)snprintf(copy, size, "%s", text);
    for (const char *const *p = parameters; *p != NULL; p += 2)
        if (!is_set(text, p[0]))
            used += (size_t)snprintf(copy + used, size - used, "%s%s=%s",
                                     mark_behind(copy), p[0], p[1]);
    return copy;
}
