/* SPDX-License-Identifier: Apache-2.0 */
/* One value of an Arrow array, as text. What its array is like was looked at
 * before, by field.h. */
#ifndef UVA_TOOLS_CELL_H
#define UVA_TOOLS_CELL_H

#include "field.h"
#include "text.h"

/* A value and where it is. Borrows all of it. */
struct uva__cell {
    const struct uva__field *field; /* how it is stored and written */
    const struct ArrowArray *array; /* checked against `field` */
    int64_t at;                     /* with the array's offset counted in */
};

/* Appends the value as a field of CSV; nothing if it is null. Thread: any. */
void uva__cell_put_csv(struct uva__cell cell, struct uva__text *out);

/* Appends the value as JSON. Thread: any. */
void uva__cell_put_json(struct uva__cell cell, struct uva__text *out);

#endif
