/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a batch are printed into memory, which then becomes an array with
 * a single text. */
#include "csv_encode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "columns.h"

int csv_encode_schema(void *ctx, const struct ArrowSchema *in,
                      struct ArrowSchema *out, struct uva_error *error)
{
    (void)ctx;
    for (int64_t i = 0; in != NULL && i < in->n_children; i++) {
        const char *format = in->children[i]->format;

        if (strcmp(format, "l") != 0 && strcmp(format, "u") != 0)
            return uva_error_set(error, ENOTSUP, "%s has the format %s",
                                 in->children[i]->name, format);
    }
    *out = (struct ArrowSchema){
        .format = "u", .name = "csv", .release = columns_keep_schema};
    return 0;
}

/* Quotes where needed, and doubles quotes in it. */
static void write_text(FILE *to, struct text text)
{
    bool quoted = false;

    for (size_t i = 0; i < text.size; i++)
        quoted = quoted || strchr(",\"\r\n", text.data[i]) != NULL;
    if (quoted)
        fputc('"', to);
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            fputc('"', to);
        fputc(text.data[i], to);
    }
    if (quoted)
        fputc('"', to);
}

static void write_rows(FILE *to, const struct ArrowSchema *schema,
                       const struct ArrowArray *rows)
{
    for (int64_t row = 0; row < rows->length; row++) {
        for (int column = 0; column < schema->n_children; column++) {
            if (column > 0)
                fputc(',', to);
            if (columns_is_null(rows, column, row))
                continue; /* an empty field */
            if (schema->children[column]->format[0] == 'u')
                write_text(to, columns_text(rows, column, row));
            else
                fprintf(to, "%" PRId64, columns_number(rows, column, row));
        }
        fputc('\n', to);
    }
}

/* Called on a compute worker, so it does not hold up the loop. */
int csv_encode_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                     void *emitter, struct uva_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    struct uva_batch out = {.metadata = NULL};
    int code = to == NULL ? ENOMEM : 0;

    (void)ctx;
    if (to != NULL) {
        write_rows(to, in->schema, &in->data.array);
        if (fclose(to) != 0)
            code = ENOMEM;
    }
    if (code == 0)
        code = csv_text((struct text){text, size}, &out.data);
    free(text);
    if (code != 0)
        return uva_error_set(error, code, "no memory to encode a batch");
    code = emit(emitter, &out);
    return code == EAGAIN ? 0 : code; /* `in` is empty */
}

int csv_text(struct text text, struct ArrowDeviceArray *out)
{
    struct ArrowArray array;
    const int code = column_texts(&text, 1, &array);

    if (code == 0)
        uva_array_from_cpu(&array, out);
    return code;
}

struct text csv_text_of(const struct ArrowDeviceArray *batch)
{
    const int32_t *offsets = batch->array.buffers[1];
    const int64_t at = batch->array.offset;

    return (struct text){.data = (const char *)batch->array.buffers[2] +
                                 offsets[at],
                         .size = (size_t)(offsets[at + 1] - offsets[at])};
}
