/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an array fits its schema, and how many bytes its buffers need. Looks
 * at sizes and pointers, and at the offsets of arrays in host memory; never at
 * values. Format strings are format.h, single buffers buffer.h. */
#ifndef UVA_CORE_LAYOUT_H
#define UVA_CORE_LAYOUT_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Checks that `array` has the shape that `schema` gives it (DA-20 to DA-22,
 * DA-25, DA-26), all the way down, and adds up its buffers. Allocates nothing.
 * 0 with `size_bytes`; EINVAL, or ENOTSUP for an unknown format, with the place
 * and what is wrong with it in `error` (may be NULL). Both are borrowed. What
 * a foreign party hands over may go straight in here, as long as its pointers
 * are NULL or good. Thread: any. */
UVA_MUST_CHECK int uva__layout_measure(const struct ArrowSchema *schema,
                                       const struct ArrowDeviceArray *array,
                                       int64_t *size_bytes,
                                       struct uva_error *error);

#endif
