/* SPDX-License-Identifier: Apache-2.0 */
/* The casts of one node, a function for each kind in a file of its own. Each
 * gives `out` an array of the target type with at->count items. Its children
 * are left to the caller, in arrow/cast.c. All of them return 0; EOVERFLOW for
 * a value that the target type cannot hold; EINVAL for offsets and the like
 * that are wrong; ENOMEM; with a text that names the column. After an error
 * `out` is released, or can be. Thread: any. */
#ifndef UVA_ARROW_CAST_KINDS_H
#define UVA_ARROW_CAST_KINDS_H

#include "arrow/cast_at.h"

/* cast_number.c */
UVA_MUST_CHECK int uva__cast_numbers(const struct uva__cast_at *at,
                                     struct ArrowArray *out);

/* cast_bytes.c. The array may be moved out of `at`, as `out` needs its data. */
UVA_MUST_CHECK int uva__cast_bytes(const struct uva__cast_at *at,
                                   struct ArrowArray *out);

/* Items of a child. */
struct uva__cast_span {
    int64_t first; /* without the offset of the child */
    int64_t count;
};

/* cast_nested.c: the buffers of an array with children, for all kinds that have
 * some; `out` is also the `out` of `at` from then on. The children of `out` are
 * released structs. */
UVA_MUST_CHECK int uva__cast_nested(const struct uva__cast_at *at,
                                    struct ArrowArray *out);

/* Finds the items of child `i` of the plan that become those of the child of
 * the result. */
void uva__cast_nested_span(const struct uva__cast_at *at, int64_t i,
                           struct uva__cast_span *span);

/* Finds the items of lists, if those of each follow those of the one before. If
 * not, uva__decode_lists() has them in this order. */
bool uva__cast_nested_is_ordered(const struct uva__cast_at *at,
                                 struct uva__cast_span *span);

/* cast_nulls.c: an array of `count` nulls of the type of `schema`. It relies on
 * a schema that has nulls. 0; EOVERFLOW for too many; ENOMEM. */
UVA_MUST_CHECK int uva__nulls_new(const struct uva_allocator *allocator,
                                  const struct ArrowSchema *schema,
                                  int64_t count, struct ArrowArray *out);

/* decode.c: the values that a dictionary or runs stand for. */
UVA_MUST_CHECK int uva__decode(const struct uva__cast_at *at,
                               struct ArrowArray *out);

/* decode.c: the items of list views, in the order of the lists. */
UVA_MUST_CHECK int uva__decode_lists(const struct uva__cast_at *at,
                                     struct ArrowArray *out);

#endif
