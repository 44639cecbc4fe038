/* SPDX-License-Identifier: Apache-2.0 */
/* The items that are cast at one node of the plan, and the way up from them: to
 * the row that an item is part of, which an error names, and to the nulls that
 * hide it. Only where an item cannot be cast is either looked for. */
#ifndef UVA_ARROW_CAST_AT_H
#define UVA_ARROW_CAST_AT_H

#include "arrow/bits.h"
#include "arrow/buffer.h"
#include "arrow/cast_plan.h"
#include "arrow/new_array.h"

struct uva__cast_at {
    const struct uva__cast_at *up;         /* NULL: these are the rows */
    const struct uva__cast_plan *plan;     /* borrows */
    const struct uva_allocator *allocator; /* borrows */
    struct uva_error *error;               /* borrows; may be NULL */
    struct ArrowArray *array;     /* borrows; parts of it may be moved out */
    int64_t from;                 /* the first item, as the buffers have it */
    int64_t count;                /* of the items */
    const struct ArrowArray *out; /* borrows: the result, once it has buffers */
};

/* Whether items may be null. Thread: any. */
static inline bool uva__cast_at_has_nulls(const struct uva__cast_at *at)
{
    return at->plan->has_validity && uva__buffer_may_have_nulls(at->array);
}

/* Whether item `i`, from 0, is null itself. Thread: any. */
static inline bool uva__cast_at_is_null(const struct uva__cast_at *at,
                                        int64_t i)
{
    return uva__cast_at_has_nulls(at) &&
           !uva__bits_get(at->array->buffers[0], at->from + i);
}

/* Returns the row of item `i`, from 0; -1: there is none, or it is null itself
 * or above, so that the value of the item does not matter. Thread: any. */
int64_t uva__cast_at_row(const struct uva__cast_at *at, int64_t i);

/* The same for an item that is null itself. Thread: any. */
int64_t uva__cast_at_row_of_null(const struct uva__cast_at *at, int64_t i);

/* The size of a validity bitmap for the items; -1: they need none.
 * Thread: any. */
int64_t uva__cast_at_validity_size(const struct uva__cast_at *at);

/* Gives `out` a new array of as many items: see uva__new_array(). 0; ENOMEM,
 * with its text. Thread: any. */
UVA_MUST_CHECK int uva__cast_at_new(const struct uva__cast_at *at,
                                    const int64_t *sizes, int64_t n_buffers,
                                    int64_t n_children, struct ArrowArray *out);

/* Fills in the validity bitmap of `out`, its buffer 0, and its number of nulls.
 * Thread: any. */
void uva__cast_at_validity(const struct uva__cast_at *at,
                           struct ArrowArray *out);

/* Fails at a row; -1: at none of them. Puts the column in front of the text,
 * and returns `code`. Thread: any. */
int uva__cast_at_fail(const struct uva__cast_at *at, int64_t row, int code,
                      const char *format, ...) UVA_PRINTF(4, 5);

#endif
