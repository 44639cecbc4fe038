/* SPDX-License-Identifier: Apache-2.0 */
/* A table is one block of memory: its column, their buffers, and the values. */
#include "readings.h"

#include <stdlib.h>

struct readings {
    struct ArrowArray column;
    struct ArrowArray *children[1];
    const void *buffers[3]; /* of the table: one; of the column: two */
    int64_t tenths[];
};

static void column_release(struct ArrowArray *column)
{
    column->release = NULL; /* its memory is the table's */
}

static void table_release(struct ArrowArray *table)
{
    if (table->children[0]->release != NULL) /* it may have been moved out */
        table->children[0]->release(table->children[0]);
    free(table->private_data);
    table->release = NULL;
}

int64_t *readings_new(int64_t rows, struct ArrowDeviceArray *out)
{
    struct readings *r =
        calloc(1, sizeof(*r) + (size_t)rows * sizeof(r->tenths[0]));
    struct ArrowArray table = {.length = rows,
                               .n_buffers = 1,
                               .n_children = 1,
                               .release = table_release,
                               .private_data = r};

    if (r == NULL)
        return NULL;
    table.buffers = r->buffers; /* NULL, as the first of the column: no nulls */
    table.children = r->children;
    r->children[0] = &r->column;
    r->buffers[2] = r->tenths;
    r->column = (struct ArrowArray){.length = rows,
                                    .n_buffers = 2,
                                    .buffers = r->buffers + 1,
                                    .release = column_release};
    uva_array_from_cpu(&table, out);
    return r->tenths;
}

const int64_t *readings_of(const struct ArrowDeviceArray *table)
{
    const struct ArrowArray *column = table->array.children[0];

    return (const int64_t *)column->buffers[1] + column->offset +
           table->array.offset;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

int readings_schema(struct ArrowSchema *out)
{
    struct ArrowSchema column = {
        .format = "l", .name = "tenths", .release = schema_release};
    struct ArrowSchema *children[] = {&column};
    const struct ArrowSchema table = {.format = "+s",
                                      .n_children = 1,
                                      .children = children,
                                      .release = schema_release};

    return uva_schema_copy(&table, out);
}
