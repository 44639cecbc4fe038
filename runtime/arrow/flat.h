/* SPDX-License-Identifier: Apache-2.0 */
/* An array without offsets, for readers that do not look at them. */
#ifndef UVA_ARROW_FLAT_H
#define UVA_ARROW_FLAT_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Gives `out` the rows of `array`, with the offset 0 at every level: a node
 * with another offset is copied with its children, and all other nodes are
 * taken from `array`, which is then moved, or shared as by uva__array_share().
 * `allocator` is copied and must stay usable until `out` is released. 0; EINVAL
 * if the array does not fit `schema`, or refers out of range; ENOTSUP for an
 * offset beside an unknown format, or in data that is not on the CPU;
 * EOVERFLOW, from a dictionary; ENOMEM. After an error the caller still owns
 * `array`, and `out` is released. Thread: any one at a time. */
UVA_MUST_CHECK int uva__flat_array(const struct uva_allocator *allocator,
                                   const struct ArrowSchema *schema,
                                   struct ArrowDeviceArray *array,
                                   struct ArrowDeviceArray *out,
                                   struct uva_error *error);

#endif
