/* SPDX-License-Identifier: Apache-2.0 */
/* An entry is a name and parameters, of which `q` is the weight from 0 to 1. */
#include "accept.h"

#include <string.h>
#include <strings.h>

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

struct uva__accept_entry uva__accept_next(const char **at)
{
    struct uva__accept_entry entry = {.weight = 1000};
    const char *end, *mark;

    *at += strspn(*at, " \t,");
    end = *at + strcspn(*at, ",");
    entry.name = *at;
    entry.size = strcspn(*at, " \t;,");
    for (mark = *at + entry.size; mark < end; mark++)
        if (strncasecmp(mark, "q=", 2) == 0 && strchr("; \t", mark[-1]))
            entry.weight = weight_read(mark + 2);
    *at = end;
    return entry;
}
