/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of values in the buffers of an array is described in
 * https://arrow.apache.org/docs/format/Columnar.html */
#include "rows.h"

#include <inttypes.h>

void rows_write_names(FILE *to, const struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++)
        fprintf(to, "%s%s", i > 0 ? "\t" : "", schema->children[i]->name);
    fputc('\n', to);
}

static bool is_null(const struct ArrowArray *column, int64_t row)
{
    const uint8_t *valid = column->buffers[0];

    return valid != NULL && !(valid[row / 8] >> (row % 8) & 1);
}

static void write_value(FILE *to, char type, const struct ArrowArray *column,
                        int64_t row)
{
    const void *values = column->buffers[1];

    if (is_null(column, row))
        return;
    if (type == 'l')
        fprintf(to, "%" PRId64, ((const int64_t *)values)[row]);
    else if (type == 'g')
        fprintf(to, "%.17g", ((const double *)values)[row]);
    else {
        const int32_t *offsets = values;
        fwrite((const char *)column->buffers[2] + offsets[row], 1,
               (size_t)(offsets[row + 1] - offsets[row]), to);
    }
}

static bool is_known(const char *format)
{
    return format[0] != '\0' && format[1] == '\0' &&
           strchr("lgu", format[0]) != NULL;
}

int rows_write(FILE *to, const struct ArrowSchema *schema,
               const struct ArrowArray *batch)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (!is_known(schema->children[i]->format))
            return ENOTSUP;
    }
    for (int64_t row = 0; row < batch->length; row++) {
        for (int64_t i = 0; i < schema->n_children; i++) {
            const struct ArrowArray *column = batch->children[i];
            if (i > 0)
                fputc('\t', to);
            write_value(to, schema->children[i]->format[0], column,
                        batch->offset + column->offset + row);
        }
        fputc('\n', to);
    }
    return ferror(to) ? EIO : 0;
}

int rows_text(const struct uva_batch *batch, char **out, size_t *size)
{
    FILE *text = open_memstream(out, size);
    int code;

    if (text == NULL)
        return ENOMEM;
    code = rows_write(text, batch->schema, &batch->data.array);
    return fclose(text) != 0 && code == 0 ? ENOMEM : code;
}
