/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of one array that a mask selects, for a node of a concatenation. */
#ifndef UVA_ARROW_CONCAT_MASK_H
#define UVA_ARROW_CONCAT_MASK_H

#include "arrow/concat_node.h"
#include "arrow/mask.h"

/* Counts the rows, of which the first lies at position `at` of `array`. Other
 * rows must not be measured with them. 0; EOVERFLOW; EINVAL, as
 * uva__concat_measure(). */
UVA_MUST_CHECK int uva__concat_mask_measure(struct uva__concat_node *node,
                                            const struct ArrowArray *array,
                                            int64_t at,
                                            const struct uva__mask *mask);

/* Copies the rows that were measured. */
void uva__concat_mask_fill(struct uva__concat_node *node,
                           const struct ArrowArray *array, int64_t at,
                           const struct uva__mask *mask);

#endif
