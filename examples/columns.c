/* SPDX-License-Identifier: Apache-2.0 */
/* A column is one block of memory, and so is a batch with the columns that were
 * moved into it. Each column may be moved out again and released alone. */
#include "columns.h"

#include <stdlib.h>

/* ---- to write ----------------------------------------------------------- */

struct column {
    const void *buffers[3]; /* no nulls; `data`; the bytes of texts */
    int64_t data[];
};

static void column_release(struct ArrowArray *column)
{
    free(column->private_data);
    column->release = NULL;
}

static struct column *column_new(int64_t rows, int64_t n_buffers, size_t size,
                                 struct ArrowArray *out)
{
    struct column *column = calloc(1, sizeof(*column) + size);

    *out = (struct ArrowArray){.length = rows, .n_buffers = n_buffers};
    if (column == NULL)
        return NULL;
    column->buffers[1] = column->data;
    out->buffers = column->buffers;
    out->private_data = column;
    out->release = column_release;
    return column;
}

int64_t *column_numbers(int64_t rows, struct ArrowArray *out)
{
    struct column *column =
        column_new(rows, 2, (size_t)rows * sizeof(int64_t), out);

    return column != NULL ? column->data : NULL;
}

int column_texts(const struct text *texts, int64_t rows, struct ArrowArray *out)
{
    const size_t offsets_size = ((size_t)rows + 1) * sizeof(int32_t);
    size_t size = 0;
    struct column *column;
    int32_t *offsets;
    char *bytes;

    for (int64_t i = 0; i < rows; i++)
        size += texts[i].size;
    column = column_new(rows, 3, offsets_size + size, out);
    if (column == NULL)
        return ENOMEM;
    offsets = (int32_t *)(void *)column->data;
    bytes = (char *)column->data + offsets_size;
    column->buffers[2] = bytes;
    for (int64_t i = 0; i < rows; i++) {
        if (texts[i].size > 0)
            memcpy(bytes + offsets[i], texts[i].data, texts[i].size);
        offsets[i + 1] = offsets[i] + (int32_t)texts[i].size;
    }
    return 0;
}

struct batch {
    const void *buffers[1]; /* no nulls */
    struct ArrowArray **children;
    struct ArrowArray columns[];
};

static void batch_release(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    }
    free(array->children);
    free(array->private_data);
    array->release = NULL;
}

int columns_join(struct ArrowArray *columns, int64_t count, int64_t rows,
                 struct ArrowDeviceArray *out)
{
    const size_t size = (size_t)count * sizeof(*columns);
    struct batch *batch = calloc(1, sizeof(*batch) + size);
    struct ArrowArray **children = calloc((size_t)count, sizeof(*children));
    struct ArrowArray array = {.length = rows,
                               .n_buffers = 1,
                               .n_children = count,
                               .children = children,
                               .private_data = batch,
                               .release = batch_release};
    bool is_whole = batch != NULL && children != NULL;

    uva_array_clear(out);
    for (int64_t i = 0; i < count; i++)
        is_whole = is_whole && columns[i].release != NULL;
    if (!is_whole) {
        for (int64_t i = 0; i < count; i++) {
            if (columns[i].release != NULL)
                columns[i].release(&columns[i]);
        }
        free(children);
        free(batch);
        return ENOMEM;
    }
    memcpy(batch->columns, columns, size); /* moves them */
    for (int64_t i = 0; i < count; i++) {
        children[i] = &batch->columns[i];
        columns[i].release = NULL;
    }
    array.buffers = batch->buffers;
    uva_array_from_cpu(&array, out);
    return 0;
}

void columns_keep_schema(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

/* ---- to read ------------------------------------------------------------ */

/* A batch that is a slice of another one has an offset, and so has a column. */
static int64_t place_of(const struct ArrowArray *batch, int column, int64_t row)
{
    return batch->offset + batch->children[column]->offset + row;
}

bool columns_is_null(const struct ArrowArray *batch, int column, int64_t row)
{
    const uint8_t *valid = batch->children[column]->buffers[0];
    const int64_t place = place_of(batch, column, row);

    return valid != NULL && (valid[place / 8] >> (place % 8) & 1) == 0;
}

int64_t columns_number(const struct ArrowArray *batch, int column, int64_t row)
{
    const int64_t *numbers = batch->children[column]->buffers[1];

    return numbers[place_of(batch, column, row)];
}

struct text columns_text(const struct ArrowArray *batch, int column,
                         int64_t row)
{
    const struct ArrowArray *texts = batch->children[column];
    const int64_t place = place_of(batch, column, row);
    const int32_t *offsets = texts->buffers[1];

    return (struct text){.data =
                             (const char *)texts->buffers[2] + offsets[place],
                         .size = (size_t)(offsets[place + 1] - offsets[place])};
}
