/* SPDX-License-Identifier: Apache-2.0 */
/* What makes most record batches quick to measure: they have a few columns of
 * numbers and nothing else. Found out once from a schema. Whatever is not so is
 * measured by layout.h, which says what is wrong, too. */
#ifndef UVA_CORE_SHAPE_H
#define UVA_CORE_SHAPE_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

enum { UVA__SHAPE_COLUMNS = 28 };

struct uva__shape {
    int32_t columns;                    /* how many; -1: it is not like that */
    uint8_t widths[UVA__SHAPE_COLUMNS]; /* bytes of an item of each */
};

/* Gives the shape of batches of `schema`, which may be NULL or wrong, but has
 * as many children as it says. Thread: any. */
void uva__shape_read(struct uva__shape *shape,
                     const struct ArrowSchema *schema);

/* Whether `batch` is of this shape, and sound; then `*size` is what its buffers
 * need. False says nothing. Thread: any. */
bool uva__shape_measure(const struct uva__shape *shape,
                        const struct ArrowArray *batch, int64_t *size);

/* The same for a column of items of `width` bytes, whose size is added. It is
 * less than 2 to the power of 40. Thread: any. */
bool uva__shape_add(const struct ArrowArray *column, int32_t width,
                    int64_t *size);

#endif
