/* SPDX-License-Identifier: Apache-2.0 */
/* Runs for every batch: a few comparisons a column. Lengths are bounded, so
 * that no product or sum can overflow. */
#include "arrow/fixed_width.h"

#include <string.h>

#include "arrow/format.h"

/* The width of an item; 0: not a column of numbers. */
static int32_t shape_width(const struct ArrowSchema *column)
{
    if (column == NULL || column->release == NULL ||
        column->dictionary != NULL || column->n_children != 0)
        return 0;
    return uva__format_width(column->format);
}

static bool shape_is_batch(const struct ArrowSchema *schema)
{
    return schema != NULL && schema->release != NULL &&
           schema->format != NULL && strcmp(schema->format, "+s") == 0 &&
           schema->dictionary == NULL && schema->children != NULL &&
           schema->n_children >= 0 &&
           schema->n_children <= UVA__FIXED_WIDTH_COLUMNS;
}

void uva__fixed_width_read(struct uva__fixed_width *shape,
                           const struct ArrowSchema *schema)
{
    int32_t i, width;

    shape->columns = -1;
    if (!shape_is_batch(schema))
        return;
    for (i = 0; i < (int32_t)schema->n_children; i++) {
        width = shape_width(schema->children[i]);
        if (width == 0)
            return;
        shape->widths[i] = (uint8_t)width;
    }
    shape->columns = i;
}

/* Whether neither is negative, or does not fit into 31 bits. */
static bool are_small(int64_t a, int64_t b)
{
    return ((uint64_t)a | (uint64_t)b) >> 31 == 0;
}

/* Whether the two buffers are set, or may be NULL. */
static bool column_has_both(const struct ArrowArray *column)
{
    const void *const *buffers = column->buffers;

    return buffers != NULL && buffers[1] != NULL && column->null_count >= -1 &&
           column->null_count <= (buffers[0] == NULL ? 0 : column->length);
}

bool uva__fixed_width_add(const struct ArrowArray *column, int32_t width,
                          int64_t *size)
{
    const int64_t items =
        (int64_t)((uint64_t)column->offset + (uint64_t)column->length);

    if (column->release == NULL || column->dictionary != NULL ||
        (column->n_children | (column->n_buffers ^ 2)) != 0 ||
        column->length == 0 || !are_small(column->length, column->offset) ||
        !column_has_both(column))
        return false;
    *size += items * width;
    if (column->buffers[0] != NULL)
        *size += (items + 7) / 8;
    return true;
}

/* Whether the batch is valid apart from its columns, and has no buffer of its
 * own. */
static bool batch_is_plain(const struct ArrowArray *batch, int32_t columns)
{
    return batch->release != NULL && batch->dictionary == NULL &&
           batch->n_buffers == 1 && batch->buffers != NULL &&
           batch->buffers[0] == NULL && (uint64_t)batch->null_count + 1 <= 1 &&
           are_small(batch->length, batch->offset) &&
           batch->n_children == columns && batch->children != NULL;
}

bool uva__fixed_width_measure(const struct uva__fixed_width *shape,
                              const struct ArrowArray *batch, int64_t *size)
{
    int64_t sum = 0, rows;

    if (shape->columns < 0 || !batch_is_plain(batch, shape->columns))
        return false;
    rows = batch->offset + batch->length;
    for (int32_t i = 0; i < shape->columns; i++)
        if (batch->children[i] == NULL || batch->children[i]->length < rows ||
            !uva__fixed_width_add(batch->children[i], shape->widths[i], &sum))
            return false;
    *size = sum;
    return true;
}
