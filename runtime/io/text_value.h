/* SPDX-License-Identifier: Apache-2.0 */
/* One value of an Arrow array, as text. text_field.h must have checked the
 * array before. */
#ifndef UVA_IO_TEXT_VALUE_H
#define UVA_IO_TEXT_VALUE_H

#include "io/text.h"
#include "io/text_field.h"
#include "io/text_number.h"

/* A value and its place in an array. Borrows all members. */
struct uva__text_value {
    const struct uva__text_field *field; /* how it is stored and written */
    const struct ArrowArray *array;      /* checked against `field` */
    int64_t at; /* index, including the array's offset */
};

/* Bytes that a value without a length of its own needs. */
#define UVA__TEXT_VALUE_ROOM UVA__TEXT_NUMBER_ROOM

/* Writes a bool, a number or a time, which must not be null, without quotes, at
 * `at`, where UVA__TEXT_VALUE_ROOM bytes must be free; returns its end. The
 * second form writes JSON. Thread: any. */
char *uva__text_value_write(const struct uva__text_value *cell, char *at);
char *uva__text_value_write_json(const struct uva__text_value *cell, char *at);

/* Appends the value as a CSV field. Thread: any. */
void uva__text_value_put_csv(struct uva__text_value cell,
                             const struct uva__csv_style *style,
                             struct uva__text *out);

/* Appends the value as JSON. Thread: any. */
void uva__text_value_put_json(struct uva__text_value cell,
                              struct uva__text *out);

#endif
