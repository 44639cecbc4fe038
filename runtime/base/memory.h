/* SPDX-License-Identifier: Apache-2.0 */
/* Memory from the allocator that a runtime was opened with. The caller keeps
 * the size of each block. */
#ifndef UVA_BASE_MEMORY_H
#define UVA_BASE_MEMORY_H

#include <stddef.h>

#include "uvarrow/base.h"

/* Completes the user's allocator: zeroes become the C library's functions. 0,
 * or EINVAL if only one function is set. Thread: any. */
UVA_MUST_CHECK int uva__memory_adopt(const struct uva_allocator *given,
                                     struct uva_allocator *out);

/* Returns `size` cleared bytes, aligned for any plain type; NULL without
 * memory. Thread: any. */
void *uva__memory_new(const struct uva_allocator *allocator, size_t size);

/* As uva__memory_new(), but the bytes after the first `cleared` ones are
 * unspecified. Thread: any. */
void *uva__memory_new_partly(const struct uva_allocator *allocator, size_t size,
                             size_t cleared);

/* As uva__memory_new(), but aligned to `align`, a power of two up to 4096.
 * Thread: any. */
void *uva__memory_new_aligned(const struct uva_allocator *allocator,
                              size_t size, size_t align);

/* Frees a block of `size` bytes; NULL is allowed. Thread: any. */
void uva__memory_free(const struct uva_allocator *allocator, void *block,
                      size_t size);

/* Whether the `count` reserved members of an options struct are NULL, as in a
 * cleared struct. Thread: any. */
bool uva__memory_is_clear(void *const *reserved, size_t count);

#endif
