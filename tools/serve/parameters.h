/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a query: an array of JSON becomes one row of Arrow data. */
#ifndef UVA_SERVE_PARAMETERS_H
#define UVA_SERVE_PARAMETERS_H

#include <jansson.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Most parameters of one query. */
#define UVA__PARAMETERS_MOST 1000

/* Makes a stream of one batch with one row: whole numbers are int64, other
 * numbers float64, texts utf8, true and false booleans, null a column of the
 * type null. Returns 0 and gives `out`, to be released; EINVAL with an error
 * if `values` is no array, is empty or too long, or has an array or an object
 * in it; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__parameters_new(const json_t *values,
                                       struct ArrowArrayStream *out,
                                       struct uva_error *error);

#endif
