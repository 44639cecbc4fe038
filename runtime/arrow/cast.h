/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of one schema, cast to another without a change of any value. */
#ifndef UVA_ARROW_CAST_H
#define UVA_ARROW_CAST_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

struct uva__cast;

/* Makes a cast of arrays of `from` (borrows: it stays valid as long as arrays
 * are cast) to `to` (copies). `allocator` is copied, and must stay usable until
 * every result is released. Gives `out`. 0; ENOMEM; EINVAL, with a text that
 * names the column that is missing, there twice, or cannot be cast. Thread:
 * any. */
UVA_MUST_CHECK int uva__cast_new(const struct uva_allocator *allocator,
                                 const struct ArrowSchema *from,
                                 const struct ArrowSchema *to,
                                 struct uva__cast **out,
                                 struct uva_error *error);

/* Frees it, and does not read the schema that it borrows; NULL is allowed.
 * Results live on. Thread: the last that uses it. */
void uva__cast_free(struct uva__cast *cast);

/* Gives `out` the rows of `array` in the target schema. Parts of `array` are
 * moved to it; it is still to be released, unless a failure has released it,
 * before its parts. 0; EOVERFLOW for a
 * value that the target type cannot hold, and EINVAL for a null in a column
 * without nulls, both with column and row; EINVAL if the array does not fit its
 * schema; ENOTSUP for an array that is not on the CPU, unless it is equal;
 * ENOMEM. After an error `out` is released. Thread: any, several at once. */
UVA_MUST_CHECK int uva__cast_array(const struct uva__cast *cast,
                                   struct ArrowDeviceArray *array,
                                   struct ArrowDeviceArray *out,
                                   struct uva_error *error);

#endif
