/* SPDX-License-Identifier: Apache-2.0 */
/* Accept is a list of media types, each with a weight from 0 to 1. */
#include "format.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    const char *type;
} FORMATS[UVA__ROWS_FORMATS] = {
    [UVA__ROWS_ARROW] = {"arrow", "application/vnd.apache.arrow.stream"},
    [UVA__ROWS_CSV] = {"csv", "text/csv"},
    [UVA__ROWS_JSON] = {"json", "application/x-ndjson"},
    [UVA__ROWS_ARRAY] = {"json-array", "application/json"},
};

const char *uva__format_name(enum uva__rows format)
{
    return FORMATS[format].name;
}

const char *uva__format_type(enum uva__rows format)
{
    return FORMATS[format].type;
}

int uva__format_find(const char *name, enum uva__rows *out)
{
    int i;

    for (i = 0; i < UVA__ROWS_FORMATS; i++)
        if (strcmp(name, FORMATS[i].name) == 0) {
            *out = (enum uva__rows)i;
            return 0;
        }
    return ENOENT;
}

/* One entry of the list. */
struct entry {
    const char *type; /* not ended by a NUL */
    size_t size;      /* its length */
    int weight;       /* in thousandths */
};

/* Reads "0.5" as 500. Anything else counts as 0. */
static int weight_read(const char *at)
{
    int weight = 0, unit = 1000;

    for (; (*at >= '0' && *at <= '9') || *at == '.'; at++) {
        if (*at == '.')
            continue;
        weight += (*at - '0') * unit;
        unit /= 10;
    }
    return weight < 1000 ? weight : 1000;
}

/* Reads the entry at `*at`, and steps after it. */
static struct entry entry_read(const char **at)
{
    struct entry entry = {.weight = 1000};
    const char *end, *mark;

    *at += strspn(*at, " \t,");
    end = *at + strcspn(*at, ",");
    entry.type = *at;
    entry.size = strcspn(*at, " \t;,");
    for (mark = *at + entry.size; mark < end; mark++)
        if (strncasecmp(mark, "q=", 2) == 0 && strchr("; \t", mark[-1]))
            entry.weight = weight_read(mark + 2);
    *at = end;
    return entry;
}

/* How well an entry fits a type: 0 not at all, 3 exactly. */
static int entry_fit(const struct entry *entry, const char *type)
{
    const size_t major = strcspn(type, "/") + 1;

    if (entry->size == strlen(type) &&
        strncasecmp(entry->type, type, entry->size) == 0)
        return 3;
    if (entry->size == major + 1 && entry->type[major] == '*' &&
        strncasecmp(entry->type, type, major) == 0)
        return 2;
    return entry->size == 3 && strncmp(entry->type, "*/*", 3) == 0;
}

/* The best fitting entry gives the weight of a type. */
static int weight_of(const char *accept, const char *type)
{
    int best = 0, weight = 0;

    while (*accept != '\0') {
        const struct entry entry = entry_read(&accept);
        const int fit = entry_fit(&entry, type);

        if (fit > best) {
            best = fit;
            weight = entry.weight;
        }
    }
    return weight;
}

int uva__format_accepted(const char *accept, enum uva__rows *out)
{
    int best = 0, i;

    *out = UVA__ROWS_ARROW;
    if (accept == NULL || *accept == '\0')
        return 0;
    for (i = 0; i < UVA__ROWS_FORMATS; i++) {
        const int weight = weight_of(accept, FORMATS[i].type);

        if (weight > best) {
            best = weight;
            *out = (enum uva__rows)i;
        }
    }
    return best > 0 ? 0 : ENOENT;
}
