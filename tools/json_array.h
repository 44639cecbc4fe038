/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines as one array of JSON. */
#ifndef UVA_TOOLS_JSON_ARRAY_H
#define UVA_TOOLS_JSON_ARRAY_H

#include <stdbool.h>

#include "output.h"
#include "uvarrow/io.h"

/* The array. Zeroes: no row was written. */
struct uva__json_array {
    bool has_rows;
};

/* Writes the rows of a part, which it takes in every case. 0 or ENOMEM. Thread:
 * loop. */
UVA_MUST_CHECK int uva__json_array_write(struct uva__json_array *array,
                                         struct uva__output *output,
                                         struct uva_part *part);

/* Writes the end of the array, of no rows too. 0 or ENOMEM. Thread: loop. */
UVA_MUST_CHECK int uva__json_array_end(const struct uva__json_array *array,
                                       struct uva__output *output);

#endif
