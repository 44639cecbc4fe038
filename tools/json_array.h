/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines as one array of JSON, for programs that read no lines. */
#ifndef UVA_TOOLS_JSON_ARRAY_H
#define UVA_TOOLS_JSON_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "uvarrow/io.h"

/* The array. Zeroes: no row was written. */
struct uva__json_array {
    bool has_rows;
};

/* Makes the text of the rows of a part, which it takes in every case: a copy,
 * to be freed, of `*size` bytes. NULL: there is no memory. Thread: any, one at
 * a time. */
UVA_MUST_CHECK char *uva__json_array_text(struct uva__json_array *array,
                                          struct uva_part *part, size_t *size);

/* Returns the end of the array, of no rows too, which is static. Thread: any.
 */
const char *uva__json_array_end(const struct uva__json_array *array);

#endif
