/* SPDX-License-Identifier: Apache-2.0 */
/* Writes commas and line ends; cell.h writes the values. */
#include "csv.h"

#include <assert.h>

#include "cell.h"

int uva__csv_init(struct uva__csv *csv, const struct ArrowSchema *schema,
                  struct uva_error *error)
{
    int code = uva__field_init(&csv->root, schema, error);

    if (code == 0 && csv->root.kind != UVA__FIELD_STRUCT) {
        uva__field_fini(&csv->root);
        code = uva_error_set(error, EINVAL,
                             "the result has the type '%.40s', not columns; "
                             "the driver made a mistake",
                             schema->format);
    }
    return code;
}

void uva__csv_fini(struct uva__csv *csv)
{
    uva__field_fini(&csv->root);
}

int uva__csv_put_header(const struct uva__csv *csv, struct uva__text *out)
{
    int64_t i;

    for (i = 0; i < csv->root.n_children; i++) {
        const char *name = csv->root.children[i].name;
        const size_t start = out->size;

        uva__text_put(out, name, strlen(name));
        uva__text_quote_csv(out, start);
        uva__text_put_char(out, i + 1 < csv->root.n_children ? ',' : '\n');
    }
    return out->failed ? ENOMEM : 0;
}

static void row_put(const struct uva__csv *csv, const struct ArrowArray *array,
                    int64_t row, struct uva__text *out)
{
    int64_t i;

    assert(row >= array->offset && row < array->offset + array->length);
    for (i = 0; i < csv->root.n_children; i++) {
        const struct ArrowArray *column = array->children[i];
        const struct uva__extract_entry cell = {&csv->root.children[i], column,
                                                row + column->offset};

        uva__cell_put_csv(cell, out);
        uva__text_put_char(out, i + 1 < csv->root.n_children ? ',' : '\n');
    }
}

int uva__csv_put_rows(const struct uva__csv *csv,
                      const struct ArrowArray *array, struct uva__text *out,
                      struct uva_error *error)
{
    int code = uva__field_check(&csv->root, array, error);
    int64_t i;

    if (code != 0)
        return code;
    for (i = 0; i < array->length && !out->failed; i++)
        row_put(csv, array, array->offset + i, out);
    if (out->failed)
        return uva_error_set(error, ENOMEM, "out of memory for the text");
    return 0;
}
