/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters are added at the end: of a URI after "?" or "&", of a list after
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

/* The part that sets parameters: a list, or of a URI the part from its "?" on.
 * There may be others in its user and password, which end where libpq has it:
 * with the first "@", unless a "/" comes before that. */
static const char *parameters_of(const char *text)
{
    const char *end;

    if (!is_uri(text))
        return text;
    text = strstr(text, "://") + 3;
    end = text + strcspn(text, "@/");
    if (*end == '@')
        text = end;
    return text + strcspn(text, "?");
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
    const char *own = parameters_of(text), *at = strstr(own, key);

    while (at != NULL && !is_set_at(own, at, key))
        at = strstr(at + 1, key);
    return at != NULL;
}

/* The mark between `text` and one more parameter. */
static const char *mark_behind(const char *text)
{
    if (!is_uri(text))
        return " ";
    if (*parameters_of(text) == '\0')
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
