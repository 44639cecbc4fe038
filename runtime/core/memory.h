/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through the allocator that a runtime was opened with. Leaves to the
 * caller to remember how large a block is. */
#ifndef UVA_CORE_MEMORY_H
#define UVA_CORE_MEMORY_H

#include <stddef.h>

#include "uvarrow/base.h"

/* Completes what the user gave: zeroes become the C library's functions. 0, or
 * EINVAL if only one of the two functions is there. Thread: any. */
UVA_MUST_CHECK int uva__memory_adopt(const struct uva_allocator *given,
                                     struct uva_allocator *out);

/* Gives `size` cleared bytes, aligned for any plain type; NULL when there is no
 * more. Thread: any. */
void *uva__memory_new(const struct uva_allocator *allocator, size_t size);

/* The same, aligned to `align`, a power of two up to 4096. Thread: any. */
void *uva__memory_new_aligned(const struct uva_allocator *allocator,
                              size_t size, size_t align);

/* Takes back a block of `size` bytes; NULL is allowed. Thread: any. */
void uva__memory_free(const struct uva_allocator *allocator, void *block,
                      size_t size);

/* Whether the `count` reserved members of an options struct are NULL, as they
 * are in one that was cleared. Thread: any. */
bool uva__memory_is_clear(void *const *reserved, size_t count);

#endif
