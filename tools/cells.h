/* SPDX-License-Identifier: Apache-2.0 */
/* Values of rows as texts. */
#ifndef UVA_TOOLS_CELLS_H
#define UVA_TOOLS_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "uvarrow/arrow.h"
#include "uvarrow/base.h"

/* The texts of some rows. Zeroes: no rows. */
struct uva__cells {
    char **texts; /* owns: one row after the other; NULL in it: a null */
    size_t count; /* of texts */
    char *block;  /* owns: the memory of the texts */
};

/* Makes the texts of `count` batches of `schema`, which has columns. Takes the
 * batches if it returns 0; otherwise, an errno with an error, it may have taken
 * all of them. NULs in a text
 * become question marks. Thread: any. */
UVA_MUST_CHECK int uva__cells_init(struct uva__cells *cells,
                                   const struct ArrowSchema *schema,
                                   struct ArrowDeviceArray *batches,
                                   size_t count, bool as_stored,
                                   struct uva_error *error);

/* Frees them. Thread: any. */
void uva__cells_fini(struct uva__cells *cells);

#endif
