/* SPDX-License-Identifier: Apache-2.0 */
/* A fast way to measure most record batches: those that have a few columns of
 * numbers and nothing else, which is found out once, from the schema. All other
 * batches are left to layout.h, which also reports errors. */
#ifndef UVA_ARROW_FIXED_WIDTH_H
#define UVA_ARROW_FIXED_WIDTH_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

enum { UVA__FIXED_WIDTH_COLUMNS = 28 };

struct uva__fixed_width {
    int32_t columns; /* number of columns; -1: not such a schema */
    uint8_t widths[UVA__FIXED_WIDTH_COLUMNS]; /* bytes of an item of each */
};

/* Fills in the shape of batches of `schema`, which may be NULL or invalid, but
 * really has `n_children` children. Thread: any. */
void uva__fixed_width_read(struct uva__fixed_width *shape,
                           const struct ArrowSchema *schema);

/* Whether `batch` has this shape and is valid; then `*size` is the size of its
 * buffers. False means only that this file cannot measure it. Thread: any. */
bool uva__fixed_width_measure(const struct uva__fixed_width *shape,
                              const struct ArrowArray *batch, int64_t *size);

/* As uva__fixed_width_measure(), for one column of items of `width` bytes; adds
 * its size, which is less than 2 to the power of 40. Thread: any. */
bool uva__fixed_width_add(const struct ArrowArray *column, int32_t width,
                          int64_t *size);

#endif
