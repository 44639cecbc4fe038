/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a query: an array of JSON becomes a list of values. */
#ifndef UVA_SERVE_PARAMETERS_H
#define UVA_SERVE_PARAMETERS_H

#include <jansson.h>

#include "uvarrow/adbc.h"

/* Most parameters of one query. */
#define UVA__PARAMETERS_MOST 1000

/* Makes a list of values that ends with {0}: whole numbers are UVA_VALUE_INT,
 * other numbers UVA_VALUE_DOUBLE. Texts are borrowed from `array`. Returns 0
 * and gives `out`, freed by free(); EINVAL with an error if `array` is no
 * array, is empty or too long, or has an array or an object in it; ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__parameters_new(const json_t *array,
                                       struct uva_value **out,
                                       struct uva_error *error);

#endif
