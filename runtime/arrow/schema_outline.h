/* SPDX-License-Identifier: Apache-2.0 */
/* An outline is the part of a schema that batches are checked against, in one
 * block: formats, names, children and dictionaries, without metadata. Copies
 * with parts that may be moved out and released are made by arrow/structs. */
#ifndef UVA_ARROW_SCHEMA_OUTLINE_H
#define UVA_ARROW_SCHEMA_OUTLINE_H

#include <stddef.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* The sizes of an outline, for all nodes together. */
struct uva__schema_outline {
    size_t nodes; /* but for the root */
    size_t links; /* pointers to children */
    size_t text;  /* bytes of formats and names, with their NULs */
};

/* Measures the outline of `schema`. 0, or EINVAL and EMSGSIZE as
 * uva_schema_copy() returns them for the same schema. Thread: any. */
UVA_MUST_CHECK int
uva__schema_outline_measure(struct uva__schema_outline *outline,
                            const struct ArrowSchema *schema);

/* The size of the block. */
static inline size_t
uva__schema_outline_size(const struct uva__schema_outline *outline)
{
    return outline->nodes * sizeof(struct ArrowSchema) +
           outline->links * sizeof(struct ArrowSchema *) + outline->text;
}

/* Gives `out` the outline of `schema`, which was measured. Its nodes and texts
 * lie in `block` (borrows), which is aligned for pointers. Releasing `out`
 * frees no memory. Thread: any. */
void uva__schema_outline_fill(const struct uva__schema_outline *outline,
                              const struct ArrowSchema *schema, void *block,
                              struct ArrowSchema *out);

#endif
