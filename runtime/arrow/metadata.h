/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of metadata blocks that must outlive the call in which they came.
 * Reading and writing blocks is public: arrow.h. */
#ifndef UVA_ARROW_METADATA_H
#define UVA_ARROW_METADATA_H

#include <stddef.h>

#include "uvarrow/base.h"

/* Gives a copy of `block` in `out` and its size in `size`, both to be freed
 * with `allocator`; NULL and 0 if `block` is NULL or holds no pair. Returns 0;
 * ENOMEM; EINVAL for a malformed block; EMSGSIZE beyond the caps: then too
 * `out` is NULL and `size` 0. Thread: any. Clauses: MD-02. */
UVA_MUST_CHECK int uva__metadata_copy(const struct uva_allocator *allocator,
                                      const char *block, char **out,
                                      size_t *size);

#endif
