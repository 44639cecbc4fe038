/* SPDX-License-Identifier: Apache-2.0 */
/* A new array in one block: its buffers, and room for its children. */
#ifndef UVA_ARROW_NEW_ARRAY_H
#define UVA_ARROW_NEW_ARRAY_H

#include <stdint.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* The shape of a new array. */
struct uva__new_array {
    int64_t length;
    int64_t n_buffers;
    const int64_t *sizes; /* borrows: of each buffer; -1: it is NULL */
    int64_t n_children;
    bool dictionary; /* there is one */
};

/* Gives `out` the array. Its buffers are aligned to 64 bytes and not filled in;
 * its children and its dictionary are released structs, to be filled in, which
 * may be moved out and outlive it. `allocator` is copied and must stay usable
 * until `out` is released. 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__new_array(const struct uva_allocator *allocator,
                                  const struct uva__new_array *shape,
                                  struct ArrowArray *out);

/* Has a new array, which has none so far, release `kept` (takes) after itself:
 * its buffers may point into that. Thread: any one at a time. */
void uva__new_array_keep(struct ArrowArray *array, struct ArrowArray *kept);

/* Gives `out` the `count` items of `array` (takes) from its item `from` on, in
 * the same buffers. 0; ENOMEM: then `array` is untouched. Thread: any. */
UVA_MUST_CHECK int uva__new_array_part(const struct uva_allocator *allocator,
                                       struct ArrowArray *array, int64_t from,
                                       int64_t count, struct ArrowArray *out);

/* The size of items of `width` bytes; PTRDIFF_MAX, which no memory has, for too
 * many. Thread: any. */
static inline int64_t uva__new_array_size(int64_t items, int64_t width)
{
    return width > 0 && items > PTRDIFF_MAX / width ? PTRDIFF_MAX
                                                    : items * width;
}

/* Gives buffer `i` of a new array, to be filled in. Thread: any. */
static inline void *uva__new_array_buffer(const struct ArrowArray *array,
                                          int64_t i)
{
    return (void *)(uintptr_t)array->buffers[i];
}

#endif
