/* SPDX-License-Identifier: Apache-2.0 */
/* One value of an Arrow array, as text. field.h must have checked the array
 * before. */
#ifndef UVA_IO_CELL_H
#define UVA_IO_CELL_H

#include "io/field.h"
#include "io/text.h"

/* A value and its place in an array. Borrows all members. */
struct uva__cell {
    const struct uva__field *field; /* how it is stored and written */
    const struct ArrowArray *array; /* checked against `field` */
    int64_t at;                     /* index, including the array's offset */
};

/* Appends the value as a CSV field. Thread: any. */
void uva__cell_put_csv(struct uva__cell cell,
                       const struct uva__csv_style *style,
                       struct uva__text *out);

/* Appends the value as JSON. Thread: any. */
void uva__cell_put_json(struct uva__cell cell, struct uva__text *out);

#endif
