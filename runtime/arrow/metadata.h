/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata blocks that are kept beyond the call in which they came: copied,
 * moved and freed. Reading and writing blocks is public: arrow.h. */
#ifndef UVA_ARROW_METADATA_H
#define UVA_ARROW_METADATA_H

#include <stddef.h>

#include "uvarrow/base.h"

/* One block that is kept. All zeroes is empty. */
struct uva__metadata {
    char *block; /* owns, unless it lies in a room; may be NULL */
    size_t size; /* of the block, in bytes */
};

/* The bytes that a struct may reserve for a short block. */
enum { UVA__METADATA_ROOM = 64 };

/* For uva__metadata_copy(), when there is a block. */
UVA_MUST_CHECK int
uva__metadata_copy_block(const struct uva_allocator *allocator,
                         const char *block, struct uva__metadata *out);

/* Gives a copy of `block` in `out`, empty if `block` is NULL or holds no pair.
 * Returns 0; ENOMEM; EINVAL for a malformed block; EMSGSIZE beyond the caps:
 * then too `out` is empty. Thread: any. Clauses: MD-02. */
UVA_MUST_CHECK static inline int
uva__metadata_copy(const struct uva_allocator *allocator, const char *block,
                   struct uva__metadata *out)
{
    if (block != NULL)
        return uva__metadata_copy_block(allocator, block, out);
    *out = (struct uva__metadata){0};
    return 0;
}

/* Moves; `from` is empty afterwards. The old block of `to` is not freed.
 * Thread: any. */
static inline void uva__metadata_move(struct uva__metadata *from,
                                      struct uva__metadata *to)
{
    *to = *from;
    *from = (struct uva__metadata){0};
}

/* Frees the block, unless it lies in `room` (NULL: there is no room). It is
 * empty afterwards. Thread: any. */
void uva__metadata_fini(struct uva__metadata *metadata,
                        const struct uva_allocator *allocator,
                        const char *room);

#endif
