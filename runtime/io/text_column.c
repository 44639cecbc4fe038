/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at all bytes of a column of text at once: if no value needs quotes or
 * escapes, values are copied. */
#include "io/text_column.h"

#define INT_ROOM    24 /* 20 digits and a sign */
#define REAL_ROOM   64 /* 24 bytes; blocks are moved at once */
#define AROUND_ROOM 8  /* quotes and delimiters, or "null" */
#define KEY_BLOCK   ((size_t)UVA__TEXT_FIELD_KEY_BLOCK)

/* The batch may be a few rows of a long column. */
static bool column_is_plain(const struct uva__text_column *c,
                            const struct ArrowArray *batch,
                            const struct uva__csv_style *style)
{
    const int64_t begin = c->first + batch->offset;
    int64_t from, to;

    if (batch->length == 0 || c->field->is_json)
        return false;
    from = uva__text_field_load(c->values, c->width, begin);
    to = uva__text_field_load(c->values, c->width, begin + batch->length);
    if (to <= from)
        return to == from;
    return style != NULL
               ? uva__text_is_plain_csv(c->bytes + from, (size_t)(to - from),
                                        style)
               : uva__text_is_plain_json(c->bytes + from, (size_t)(to - from));
}

static enum uva__text_way way_of(const struct uva__text_column *c,
                                 const struct ArrowArray *batch,
                                 const struct uva__csv_style *style)
{
    const enum uva__text_field_kind kind = c->field->kind;

    if (c->field->dictionary != NULL)
        return UVA__TEXT_WAY_VALUE;
    if (kind == UVA__TEXT_FIELD_TEXT)
        return column_is_plain(c, batch, style) ? UVA__TEXT_WAY_PLAIN
                                                : UVA__TEXT_WAY_VALUE;
    if (kind == UVA__TEXT_FIELD_NULL || kind > UVA__TEXT_FIELD_MONTHS_NS ||
        (style != NULL && c->field->is_loose))
        return UVA__TEXT_WAY_VALUE;
    return kind == UVA__TEXT_FIELD_INT ? UVA__TEXT_WAY_INT
                                       : UVA__TEXT_WAY_FIXED;
}

static size_t room_of(const struct uva__text_column *c)
{
    switch (c->field->kind) {
    case UVA__TEXT_FIELD_INT:
    case UVA__TEXT_FIELD_UINT:
        return INT_ROOM;
    case UVA__TEXT_FIELD_HALF:
    case UVA__TEXT_FIELD_FLOAT:
    case UVA__TEXT_FIELD_DOUBLE:
        return REAL_ROOM;
    default:
        return c->way == UVA__TEXT_WAY_FIXED ? UVA__TEXT_VALUE_ROOM : 0;
    }
}

void uva__text_column_init(struct uva__text_column *column,
                           const struct uva__text_field *root,
                           const struct ArrowArray *batch, size_t index,
                           const struct uva__csv_style *style)
{
    const struct uva__text_field *field = &root->children[index];
    const struct ArrowArray *array = batch->children[index];

    *column = (struct uva__text_column){
        .width = field->width,
        .first = array->offset,
        .field = field,
        .array = array,
    };
    if (array->n_buffers > 1 && array->null_count != 0)
        column->valid = array->buffers[0];
    if (array->n_buffers > 1)
        column->values = array->buffers[1];
    if (array->n_buffers > 2)
        column->bytes = array->buffers[2];
    column->way = way_of(column, batch, style);
    column->room = room_of(column) + AROUND_ROOM;
    column->room +=
        style != NULL ? style->null_size : field->key.size + KEY_BLOCK;
}
