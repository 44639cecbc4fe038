/* SPDX-License-Identifier: Apache-2.0 */
/* A column is one block of memory: its buffers, then their bytes. */
#include "text_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void uva__text_rows_add(struct uva__text_rows *rows, const char *text,
                        size_t size)
{
    char **more =
        realloc(rows->texts, (rows->count + 1) * sizeof(*rows->texts));
    char *copy = text != NULL ? calloc(size + 1, 1) : NULL;

    if (more != NULL)
        rows->texts = more;
    if (more == NULL || (text != NULL && copy == NULL)) {
        rows->code = ENOMEM;
        free(copy);
        return;
    }
    if (text != NULL)
        memcpy(copy, text, size);
    rows->texts[rows->count++] = copy;
}

/* The schema that uva_schema_copy() copies. */
static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

int uva__text_rows_schema(const char *const *names, int columns,
                          struct ArrowSchema *out)
{
    struct ArrowSchema all[UVA__TEXT_COLUMNS], *children[UVA__TEXT_COLUMNS];
    struct ArrowSchema root = {.format = "+s",
                               .name = "",
                               .n_children = columns,
                               .children = children,
                               .release = schema_release};

    for (int i = 0; i < columns; i++) {
        all[i] = (struct ArrowSchema){.format = "u",
                                      .name = names[i],
                                      .flags = ARROW_FLAG_NULLABLE,
                                      .release = schema_release};
        children[i] = &all[i];
    }
    return uva_schema_copy(&root, out);
}

/* ---- the batch ----------------------------------------------------------- */

static void column_release(struct ArrowArray *array)
{
    free(array->private_data);
    array->release = NULL;
}

static size_t padded(size_t size)
{
    return (size + 63) & ~(size_t)63;
}

/* Makes column `at` of the rows. */
static int column_make(const struct uva__text_rows *rows, int at,
                       struct ArrowArray *out)
{
    const size_t columns = (size_t)rows->columns, count = rows->count / columns;
    const size_t bits = padded(count / 8 + 1), offsets = padded(4 * count + 4);
    size_t bytes = 0;
    const void **buffers;
    uint8_t *valid;
    int32_t *offset;
    char *data;

    for (size_t i = 0; i < count; i++)
        if (rows->texts[i * columns + (size_t)at] != NULL)
            bytes += strlen(rows->texts[i * columns + (size_t)at]);
    if (bytes > INT32_MAX)
        return EOVERFLOW;
    buffers = calloc(1, 64 + bits + offsets + bytes + 1);
    if (buffers == NULL)
        return ENOMEM;
    buffers[0] = valid = (uint8_t *)buffers + 64;
    buffers[1] = offset = (int32_t *)(void *)(valid + bits);
    buffers[2] = data = (char *)offset + offsets;
    for (size_t i = 0; i < count; i++) {
        const char *text = rows->texts[i * columns + (size_t)at];
        const size_t size = text != NULL ? strlen(text) : 0;

        if (text != NULL)
            valid[i / 8] |= (uint8_t)(1 << i % 8);
        if (size > 0)
            memcpy(data + offset[i], text, size);
        offset[i + 1] = offset[i] + (int32_t)size;
    }
    *out = (struct ArrowArray){.length = (int64_t)count,
                               .null_count = -1,
                               .n_buffers = 3,
                               .buffers = buffers,
                               .private_data = buffers,
                               .release = column_release};
    return 0;
}

/* The root of a batch. */
struct root {
    const void *buffers[1];
    struct ArrowArray *children[UVA__TEXT_COLUMNS];
    struct ArrowArray all[UVA__TEXT_COLUMNS];
};

static void root_release(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    free(array->private_data);
    array->release = NULL;
}

int uva__text_rows_take(struct uva__text_rows *rows,
                        struct ArrowDeviceArray *out)
{
    struct root *root = rows->code == 0 ? calloc(1, sizeof(*root)) : NULL;
    int code = root != NULL ? 0 : ENOMEM;

    *out = (struct ArrowDeviceArray){.device_type = ARROW_DEVICE_CPU,
                                     .device_id = -1};
    if (root == NULL)
        return code;
    out->array = (struct ArrowArray){
        .length = (int64_t)(rows->count / (size_t)rows->columns),
        .n_buffers = 1,
        .n_children = rows->columns,
        .buffers = root->buffers,
        .children = root->children,
        .private_data = root,
        .release = root_release};
    for (int i = 0; i < rows->columns && code == 0; i++)
        code = column_make(rows, i, &root->all[i]);
    for (int i = 0; i < rows->columns; i++)
        root->children[i] = &root->all[i];
    if (code != 0)
        root_release(&out->array);
    uva__text_rows_fini(rows);
    return code;
}

void uva__text_rows_fini(struct uva__text_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->texts[i]);
    free(rows->texts);
    rows->texts = NULL;
    rows->count = 0;
    rows->code = 0;
}
