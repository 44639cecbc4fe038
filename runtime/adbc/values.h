/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a query, as one row of Arrow data. */
#ifndef UVA_ADBC_VALUES_H
#define UVA_ADBC_VALUES_H

#include "uvarrow/adbc.h"

/* Counts the values of a list that ends with {0}. NULL is an empty list.
 * Thread: any, as all here. */
size_t uva__values_count(const struct uva_value *values);

/* Returns 0; EINVAL with a text that names the value: for an unknown type, data
 * that does not fit it, a name on some values only, or 2 GiB or more of texts
 * and bytes. */
UVA_MUST_CHECK int uva__values_check(const struct uva_value *values,
                                     struct uva_error *error);

/* Makes a stream of one batch with one row out of checked values, at least one:
 * a column for each of the type null, boolean, int64, float64, utf8 or binary,
 * with the name of its value, or its number from 1 on. The values are copied.
 * Returns 0 and gives `out`, to be released; ENOMEM. */
UVA_MUST_CHECK int uva__values_new(const struct uva_value *values,
                                   struct ArrowArrayStream *out);

#endif
