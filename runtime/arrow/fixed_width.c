/* SPDX-License-Identifier: Apache-2.0 */
/* Reads from a schema whether fixed_width.h can measure its batches. */
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
