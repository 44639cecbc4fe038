/* SPDX-License-Identifier: Apache-2.0 */
/* Which codings there are depends on the libraries of the build. */
#include "coding.h"

#include <string.h>
#include <strings.h>

#include "accept.h"

static const char *const NAMES[UVA__CODINGS] = {
    [UVA__CODING_NONE] = "identity",
    [UVA__CODING_GZIP] = "gzip",
    [UVA__CODING_ZSTD] = "zstd",
};

const char *uva__coding_name(enum uva__coding coding)
{
    return NAMES[coding];
}

static int entry_is(const struct uva__accept_entry *entry, const char *name)
{
    return entry->size == strlen(name) &&
           strncasecmp(entry->name, name, entry->size) == 0;
}

/* The weight of a coding: as stated, or that of "*"; 0: it is not named. */
static int weight_of(const char *accept, enum uva__coding coding)
{
    int any = 0;

    while (*accept != '\0') {
        const struct uva__accept_entry entry = uva__accept_next(&accept);

        if (entry_is(&entry, NAMES[coding]) ||
            (coding == UVA__CODING_GZIP && entry_is(&entry, "x-gzip")))
            return entry.weight;
        if (entry_is(&entry, "*"))
            any = entry.weight;
    }
    return any;
}

enum uva__coding uva__coding_accepted(const char *accept)
{
    static const enum uva__coding KNOWN[] = {
        UVA__CODING_NONE, /* of equal ones the last is taken */
#ifdef UVA_HAS_ZLIB
        UVA__CODING_GZIP,
#endif
#ifdef UVA_HAS_ZSTD
        UVA__CODING_ZSTD,
#endif
    };
    enum uva__coding best = UVA__CODING_NONE;
    int most = 1;

    for (size_t i = 0; accept != NULL && i < sizeof(KNOWN) / sizeof(*KNOWN);
         i++) {
        const int weight = weight_of(accept, KNOWN[i]);

        if (weight >= most) {
            most = weight;
            best = KNOWN[i];
        }
    }
    return best;
}
