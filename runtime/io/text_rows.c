/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares all columns, then writes row after row. Before each value there is
 * room for a whole row of values of fixed size; a text makes room for itself
 * and for another row. */
#include "io/text_rows.h"

#include <stdlib.h>

#include "io/text_column.h"
#include "io/text_digits.h"
#include "io/text_number.h"

#define KEY_BLOCK ((size_t)UVA__TEXT_FIELD_KEY_BLOCK)

/* The columns of a batch, and where they are written to. */
struct rows {
    struct uva__text_column *columns; /* owns */
    size_t count;
    size_t room;                        /* bytes for a row, without texts */
    const struct uva__csv_style *style; /* NULL for JSON */
    struct uva__text *out;
};

static bool rows_init(struct rows *rows, const struct uva__text_field *root,
                      const struct ArrowArray *batch,
                      const struct uva__csv_style *style, struct uva__text *out)
{
    const size_t count = (size_t)root->n_children;

    *rows = (struct rows){
        .columns = calloc(count > 0 ? count : 1, sizeof(*rows->columns)),
        .count = count,
        .room = sizeof("{}\r\n"),
        .style = style,
        .out = out,
    };
    out->failed |= rows->columns == NULL;
    for (size_t i = 0; i < count && !out->failed; i++) {
        uva__text_column_init(&rows->columns[i], root, batch, i, style);
        rows->room += rows->columns[i].room;
    }
    return !out->failed;
}

/* ---- places in the text ------------------------------------------------- */

/* Makes `at` the end of the text, which may then lie elsewhere. */
static inline char *rows_reserve(const struct rows *rows, const char *at,
                                 size_t size)
{
    rows->out->size = (size_t)(at - rows->out->data);
    return uva__text_room(rows->out, rows->room + size);
}

/* Copies up to 16 bytes by two moves, which may overlap, or three. */
static inline char *copy(char *to, const char *from, size_t size)
{
    if (size > 16) {
        memcpy(to, from, size);
    } else if (size >= 8) {
        const uint64_t tail = uva__text_word(from + size - 8);

        memcpy(to, from, 8);
        memcpy(to + size - 8, &tail, 8);
    } else if (size >= 4) {
        memcpy(to, from, 4);
        memcpy(to + size - 4, from + size - 4, 4);
    } else if (size > 0) {
        to[0] = from[0];
        to[size / 2] = from[size / 2];
        to[size - 1] = from[size - 1];
    }
    return to + size;
}

/* Most integers are small. */
static inline char *put_int(char *to, int64_t value)
{
    return value >= 0 && value < 10000
               ? uva__text_put_small(to, (uint32_t)value)
               : uva__text_number_put_int(to, value);
}

/* ---- CSV ---------------------------------------------------------------- */

static char *csv_put_null(const struct rows *rows, char *to)
{
    memcpy(to, rows->style->null_text, rows->style->null_size);
    return to + rows->style->null_size;
}

/* An empty text, and one like that of nulls, are in quotes. */
static inline char *csv_put_plain(const struct rows *rows,
                                  const struct uva__text_column *c, int64_t at,
                                  char *to)
{
    size_t size;
    const char *const text = uva__text_column_text(c, at, &size);

    to = rows_reserve(rows, to, size);
    if (to == NULL || (size > 0 && size != rows->style->null_size))
        return to == NULL ? NULL : copy(to, text, size);
    uva__text_put_csv(rows->out, text, size, rows->style);
    return uva__text_room(rows->out, rows->room);
}

static char *csv_put_value(const struct rows *rows,
                           const struct uva__text_column *c, int64_t at,
                           const char *to)
{
    rows->out->size = (size_t)(to - rows->out->data);
    uva__text_value_put_csv(uva__text_column_value(c, at), rows->style,
                            rows->out);
    return uva__text_room(rows->out, rows->room);
}

/* Returns the end; NULL without memory. */
static inline char *csv_put(const struct rows *rows,
                            const struct uva__text_column *c, int64_t at,
                            char *to)
{
    struct uva__text_value value;

    if (c->way == UVA__TEXT_WAY_VALUE)
        return csv_put_value(rows, c, at, to);
    if (uva__text_column_is_null(c, at))
        return csv_put_null(rows, to);
    if (c->way == UVA__TEXT_WAY_INT)
        return put_int(to, uva__text_column_int(c, at));
    if (c->way == UVA__TEXT_WAY_PLAIN)
        return csv_put_plain(rows, c, at, to);
    value = uva__text_column_value(c, at);
    return uva__text_value_write(&value, to);
}

/* Makes the delimiter after the last field the end of the line. */
static bool csv_put_row(const struct rows *rows, int64_t row)
{
    const char delimiter = rows->style->delimiter;
    char *at = uva__text_room(rows->out, rows->room);

    for (size_t i = 0; i < rows->count && at != NULL; i++) {
        const struct uva__text_column *c = &rows->columns[i];

        at = csv_put(rows, c, row + c->first, at);
        if (at != NULL)
            *at++ = delimiter;
    }
    if (at == NULL)
        return false;
    at[-1] = rows->style->has_crlf ? '\r' : '\n';
    if (rows->style->has_crlf)
        *at++ = '\n';
    uva__text_advance(rows->out, at);
    return true;
}

/* ---- JSON --------------------------------------------------------------- */

/* Whole blocks, as keys end in bytes that may be copied, too. */
static inline char *json_put_key(const struct uva__text *key, char *to)
{
    for (size_t i = 0; i < key->size; i += KEY_BLOCK)
        memcpy(to + i, key->data + i, KEY_BLOCK);
    return to + key->size;
}

static inline char *json_put_plain(const struct rows *rows,
                                   const struct uva__text_column *c, int64_t at,
                                   char *to)
{
    size_t size;
    const char *const text = uva__text_column_text(c, at, &size);

    to = rows_reserve(rows, to, size);
    if (to == NULL)
        return NULL;
    *to++ = '"';
    to = copy(to, text, size);
    *to++ = '"';
    return to;
}

static char *json_put_value(const struct rows *rows,
                            const struct uva__text_column *c, int64_t at,
                            const char *to)
{
    rows->out->size = (size_t)(to - rows->out->data);
    uva__text_value_put_json(uva__text_column_value(c, at), rows->out);
    return uva__text_room(rows->out, rows->room);
}

/* Returns the end; NULL without memory. */
static inline char *json_put(const struct rows *rows,
                             const struct uva__text_column *c, int64_t at,
                             char *to)
{
    struct uva__text_value value;

    if (c->way == UVA__TEXT_WAY_VALUE)
        return json_put_value(rows, c, at, to);
    if (uva__text_column_is_null(c, at)) {
        memcpy(to, "null", 4);
        return to + 4;
    }
    if (c->way == UVA__TEXT_WAY_INT)
        return put_int(to, uva__text_column_int(c, at));
    if (c->way == UVA__TEXT_WAY_PLAIN)
        return json_put_plain(rows, c, at, to);
    value = uva__text_column_value(c, at);
    return uva__text_value_write_json(&value, to);
}

/* Keys begin with a comma: the first one becomes the bracket. */
static bool json_put_row(const struct rows *rows, int64_t row)
{
    const size_t start = rows->out->size;
    char *at = uva__text_room(rows->out, rows->room);

    for (size_t i = 0; i < rows->count && at != NULL; i++) {
        const struct uva__text_column *c = &rows->columns[i];

        at = json_put_key(&c->field->key, at);
        at = json_put(rows, c, row + c->first, at);
    }
    if (at == NULL)
        return false;
    if (rows->count == 0)
        at++;
    rows->out->data[start] = '{';
    *at++ = '}';
    *at++ = '\n';
    uva__text_advance(rows->out, at);
    return true;
}

void uva__text_rows_put(const struct uva__text_field *root,
                        const struct ArrowArray *batch,
                        const struct uva__csv_style *style,
                        struct uva__text *out)
{
    const int64_t end = batch->offset + batch->length;
    struct rows rows;
    bool complete = rows_init(&rows, root, batch, style, out) &&
                    (style == NULL || rows.count > 0);

    for (int64_t row = batch->offset; row < end && complete; row++)
        complete =
            style == NULL ? json_put_row(&rows, row) : csv_put_row(&rows, row);
    free(rows.columns);
}
