/* SPDX-License-Identifier: Apache-2.0 */
/* A fast way to measure most record batches: a few columns of numbers only, as
 * found once, from the schema. All other batches are left to layout.h, which
 * also reports errors.
 *
 * The work for every batch is inline here: a few comparisons a column. Lengths
 * are bounded, so that no product or sum can overflow. */
#ifndef UVA_ARROW_FIXED_WIDTH_H
#define UVA_ARROW_FIXED_WIDTH_H

#include <stdbool.h>
#include <stddef.h>

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

/* Whether both are from 0 to 2 to the power of 31. */
static inline bool uva__fixed_width_are_small(int64_t a, int64_t b)
{
    return ((uint64_t)a | (uint64_t)b) >> 31 == 0;
}

/* Whether `column` is valid, and has only items. Thread: any. */
static inline bool uva__fixed_width_has(const struct ArrowArray *column)
{
    const int64_t length = column->length;
    const void *const *buffers = column->buffers;
    uint64_t nulls_most;

    if (column->release == NULL || column->dictionary != NULL ||
        (column->n_children | (column->n_buffers ^ 2)) != 0 || length == 0 ||
        !uva__fixed_width_are_small(length, column->offset) ||
        buffers == NULL || buffers[1] == NULL)
        return false;
    nulls_most = buffers[0] == NULL ? 0 : (uint64_t)length;
    return (uint64_t)column->null_count + 1 <= nulls_most + 1; /* -1: unknown */
}

/* The size of `rows` items of such a column from item `from` on, of `width`
 * bytes each: less than 2 to the power of 40. A byte of the bitmap counts for
 * the first of its bits. Thread: any. */
static inline int64_t uva__fixed_width_take(const struct ArrowArray *column,
                                            int32_t width, int64_t from,
                                            int64_t rows)
{
    const uint64_t at = (uint64_t)(column->offset + from);
    const uint64_t bits_end = at + (uint64_t)rows;

    return rows * width + (column->buffers[0] == NULL
                               ? 0
                               : (int64_t)((bits_end + 7) / 8 - (at + 7) / 8));
}

/* The size of the buffers of such a column, up to its last item: less than 2 to
 * the power of 40. Thread: any. */
static inline int64_t uva__fixed_width_memory(const struct ArrowArray *column,
                                              int32_t width)
{
    const int64_t items = column->offset + column->length;

    return items * width + (column->buffers[0] == NULL
                                ? 0
                                : (int64_t)(((uint64_t)items + 7) / 8));
}

/* Whether the batch is valid apart from its columns, and has no buffer itself.
 */
static inline bool uva__fixed_width_is_plain(const struct ArrowArray *batch,
                                             int32_t columns)
{
    return batch->release != NULL && batch->dictionary == NULL &&
           batch->n_buffers == 1 && batch->buffers != NULL &&
           batch->buffers[0] == NULL && (uint64_t)batch->null_count + 1 <= 1 &&
           uva__fixed_width_are_small(batch->length, batch->offset) &&
           batch->n_children == columns && batch->children != NULL;
}

/* Whether `batch` has this shape and is valid; then `*size` is the size of its
 * rows. False means only that this file cannot measure it. Thread: any. */
static inline bool
uva__fixed_width_measure(const struct uva__fixed_width *shape,
                         const struct ArrowArray *batch, int64_t *size)
{
    int64_t sum = 0, from, rows;

    if (shape->columns < 0 || !uva__fixed_width_is_plain(batch, shape->columns))
        return false;
    from = batch->offset;
    rows = batch->length;
    for (int32_t i = 0; i < shape->columns; i++) {
        const struct ArrowArray *column = batch->children[i];

        if (column == NULL || column->length < from + rows ||
            !uva__fixed_width_has(column))
            return false;
        sum += uva__fixed_width_take(column, shape->widths[i], from, rows);
    }
    *size = sum;
    return true;
}

#endif
