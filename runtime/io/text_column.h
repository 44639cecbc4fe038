/* SPDX-License-Identifier: Apache-2.0 */
/* A column of one batch, prepared so that each value is found and written in a
 * few steps. text_value.h writes the values of all other columns. */
#ifndef UVA_IO_TEXT_COLUMN_H
#define UVA_IO_TEXT_COLUMN_H

#include "io/text.h"
#include "io/text_field.h"
#include "io/text_value.h"

/* The ways to write a value. */
enum uva__text_way {
    UVA__TEXT_WAY_VALUE, /* by text_value.h */
    UVA__TEXT_WAY_INT,   /* integers of `width` bytes */
    UVA__TEXT_WAY_FIXED, /* other numbers and times, never in quotes in CSV */
    UVA__TEXT_WAY_PLAIN  /* offsets of `width` bytes; the text is copied */
};

/* A column, and where its values are. Borrows all members. */
struct uva__text_column {
    enum uva__text_way way;
    int32_t width;        /* of integers and offsets, in bytes */
    const uint8_t *valid; /* bits; NULL without nulls */
    const char *values;   /* integers or offsets */
    const char *bytes;    /* the text of offsets */
    int64_t first;        /* index of the first value, of the array's offset */
    size_t room;          /* bytes for a value and what is around it */
    const struct uva__text_field *field;
    const struct ArrowArray *array;
};

/* Prepares a column of a batch that was checked against `root`. `style` is NULL
 * for JSON. Thread: any. */
void uva__text_column_init(struct uva__text_column *column,
                           const struct uva__text_field *root,
                           const struct ArrowArray *batch, size_t index,
                           const struct uva__csv_style *style);

/* Whether the value at an index is null. Thread: any. */
static inline bool uva__text_column_is_null(const struct uva__text_column *c,
                                            int64_t at)
{
    return c->valid != NULL && (c->valid[at >> 3] >> (at & 7) & 1) == 0;
}

/* Loads an integer; most have 8 bytes. Thread: any. */
static inline int64_t uva__text_column_int(const struct uva__text_column *c,
                                           int64_t at)
{
    int64_t value;

    if (c->width != sizeof(value))
        return uva__text_field_load(c->values, c->width, at);
    memcpy(&value, c->values + at * (int64_t)sizeof(value), sizeof(value));
    return value;
}

/* Returns the place of a text, and its size. Thread: any. */
static inline const char *
uva__text_column_text(const struct uva__text_column *c, int64_t at,
                      size_t *size)
{
    const int32_t width = c->width == 8 ? 8 : 4; /* one of two loads */
    const int64_t from = uva__text_field_load(c->values, width, at);
    const int64_t to = uva__text_field_load(c->values, width, at + 1);

    *size = to > from ? (size_t)(to - from) : 0;
    return *size > 0 ? c->bytes + from : NULL; /* there may be no buffer */
}

/* Returns the value at an index, for text_value.h. Thread: any. */
static inline struct uva__text_value
uva__text_column_value(const struct uva__text_column *c, int64_t at)
{
    return (struct uva__text_value){c->field, c->array, at};
}

#endif
