/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of metadata blocks, for what outlives the call that brought them.
 * Reading and writing them is public: arrow.h. */
#ifndef UVA_CORE_METADATA_H
#define UVA_CORE_METADATA_H

#include <stddef.h>

#include "uvarrow/base.h"

/* Gives `out` a copy of `block` and `size` its bytes, both to be given back to
 * `allocator`; NULL and 0 if `block` is NULL or holds no pair (MD-02). 0;
 * ENOMEM; EINVAL for a malformed block; EMSGSIZE beyond the caps: then NULL and
 * 0 too. Thread: any. */
UVA_MUST_CHECK int uva__metadata_copy(const struct uva_allocator *allocator,
                                      const char *block, char **out,
                                      size_t *size);

#endif
