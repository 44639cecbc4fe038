/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that is a slice of another one has an offset, and so may each of its
 * columns: https://arrow.apache.org/docs/format/Columnar.html */
#include "column.h"

#include <string.h>

int column_find(const struct ArrowSchema *schema, const char *name)
{
    for (int i = 0; i < schema->n_children; i++)
        if (strcmp(schema->children[i]->name, name) == 0 &&
            strcmp(schema->children[i]->format, "l") == 0)
            return i;
    return -1;
}

int64_t column_sum(const struct ArrowArray *rows, int column)
{
    const struct ArrowArray *array = rows->children[column];
    const int64_t first = rows->offset + array->offset;
    const uint8_t *valid = array->buffers[0]; /* NULL: no nulls */
    const int64_t *values = array->buffers[1];
    int64_t sum = 0;

    for (int64_t i = first; i < first + rows->length; i++)
        if (valid == NULL || (valid[i / 8] >> (i % 8) & 1) != 0)
            sum += values[i];
    return sum;
}
