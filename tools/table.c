/* SPDX-License-Identifier: Apache-2.0 */
/* Batches are kept as they are, and encoded when the table is printed. A batch
 * between the first and the last rows is let go as soon as more rows follow. */
#include "table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "table_text.h"

static void table_remove(struct uva__table *table, size_t at)
{
    if (table->kept[at].rows.array.release != NULL)
        table->kept[at].rows.array.release(&table->kept[at].rows.array);
    table->count--;
    memmove(&table->kept[at], &table->kept[at + 1],
            (table->count - at) * sizeof(*table->kept));
}

/* Releases batches with no row that is shown. */
static void table_thin(struct uva__table *table)
{
    size_t at = 0;

    while (at < table->count) {
        const struct uva__table_batch *batch = &table->kept[at];
        const int64_t end = batch->first + batch->rows.array.length;

        if (batch->first >= UVA__TABLE_ROWS &&
            end <= table->rows - UVA__TABLE_ROWS)
            table_remove(table, at);
        else
            at++;
    }
}

int uva__table_begin(struct uva__table *table, const struct ArrowSchema *schema)
{
    assert(table->schema.release == NULL);
    return uva_schema_copy(schema, &table->schema);
}

void uva__table_add(struct uva__table *table, struct ArrowDeviceArray *rows)
{
    struct uva__table_batch *batch = &table->kept[table->count];

    if (rows->array.length == 0) {
        rows->array.release(&rows->array);
        return;
    }
    assert(table->count < sizeof(table->kept) / sizeof(*table->kept));
    *batch = (struct uva__table_batch){.first = table->rows};
    uva_array_move(rows, &batch->rows);
    table->count++;
    table->rows += batch->rows.array.length;
    table_thin(table);
}

/* Keeps the rows of a batch that are shown. */
static int batch_cut(const struct uva__table *table,
                     struct uva__table_batch *batch, struct uva_error *error)
{
    const int64_t length = batch->rows.array.length,
                  tail = table->rows - UVA__TABLE_ROWS - batch->first,
                  head = UVA__TABLE_ROWS - batch->first;
    struct ArrowDeviceArray cut;
    uint8_t *bits;
    int code;

    if (head >= tail)
        return 0; /* all of them */
    bits = calloc((size_t)(length + 7) / 8 + 1, 1);
    if (bits == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    for (int64_t row = 0; row < length; row++)
        if (row < head || row >= tail)
            bits[row / 8] |= (uint8_t)(1 << row % 8);
    code = uva_array_select(&table->schema, &batch->rows, bits, &cut, error);
    free(bits);
    if (code == 0)
        uva_array_move(&cut, &batch->rows);
    return code;
}

static int table_make_cells(struct uva__table *table, bool as_stored,
                            struct uva__cells *cells, struct uva_error *error)
{
    struct ArrowDeviceArray batches[sizeof(table->kept) / sizeof(*table->kept)];
    int code = 0;

    for (size_t i = 0; i < table->count && code == 0; i++)
        code = batch_cut(table, &table->kept[i], error);
    if (code != 0)
        return code;
    for (size_t i = 0; i < table->count; i++)
        uva_array_move(&table->kept[i].rows, &batches[i]);
    code = uva__cells_init(cells, &table->schema, batches, table->count,
                           as_stored, error);
    for (size_t i = 0; i < table->count; i++) /* not taken, after a failure */
        if (batches[i].array.release != NULL)
            batches[i].array.release(&batches[i].array);
    table->count = 0;
    return code;
}

int uva__table_print(struct uva__table *table,
                     const struct uva__table_style *style, char **text,
                     size_t *size, struct uva_error *error)
{
    struct uva__cells cells = {0};
    int code = 0;

    *text = NULL;
    *size = 0;
    if (table->schema.release == NULL || table->schema.n_children == 0)
        return 0;
    if (table->count > 0)
        code = table_make_cells(table, style->as_stored, &cells, error);
    if (code == 0 && uva__table_text(&table->schema, &cells, table->rows, style,
                                     text, size) != 0)
        code = uva_error_set(error, ENOMEM, "out of memory");
    uva__cells_fini(&cells);
    return code;
}

void uva__table_fini(struct uva__table *table)
{
    while (table->count > 0)
        table_remove(table, table->count - 1);
    if (table->schema.release != NULL)
        table->schema.release(&table->schema);
}
