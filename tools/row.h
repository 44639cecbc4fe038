/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a query, as one row of Arrow data. */
#ifndef UVA_TOOLS_ROW_H
#define UVA_TOOLS_ROW_H

#include "parameter.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Makes a stream of one batch with one row: whole numbers are int64, other
 * numbers float64, texts utf8, true and false booleans, null a column of the
 * type null. `count` is at least 1; the values are copied. Returns 0 and gives
 * `out`, to be released; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__row_new(const struct uva__parameter *values,
                                size_t count, struct ArrowArrayStream *out,
                                struct uva_error *error);

#endif
