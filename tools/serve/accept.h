/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of Accept and Accept-Encoding: names, each with a weight. */
#ifndef UVA_SERVE_ACCEPT_H
#define UVA_SERVE_ACCEPT_H

#include <stddef.h>

/* One entry of a list. */
struct uva__accept_entry {
    const char *name; /* borrows: in the list; not ended by a NUL */
    size_t size;      /* its length */
    int weight;       /* in thousandths, from 0 to 1000 */
};

/* Reads the entry at `*at`, and steps after it. The list ends at the NUL; its
 * last entry may have no name. Thread: any. */
struct uva__accept_entry uva__accept_next(const char **at);

#endif
