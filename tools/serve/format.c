/* SPDX-License-Identifier: Apache-2.0 */
/* The best fitting entry of Accept gives the weight of a type. */
#include "format.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "accept.h"

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

/* How well an entry fits a type: 0 not at all, 3 exactly. */
static int entry_fit(const struct uva__accept_entry *entry, const char *type)
{
    const size_t major = strcspn(type, "/") + 1;

    if (entry->size == strlen(type) &&
        strncasecmp(entry->name, type, entry->size) == 0)
        return 3;
    if (entry->size == major + 1 && entry->name[major] == '*' &&
        strncasecmp(entry->name, type, major) == 0)
        return 2;
    return entry->size == 3 && strncmp(entry->name, "*/*", 3) == 0;
}

/* The best fitting entry gives the weight of a type. */
static int weight_of(const char *accept, const char *type)
{
    int best = 0, weight = 0;

    while (*accept != '\0') {
        const struct uva__accept_entry entry = uva__accept_next(&accept);
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
