/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as text: a line for each row, its values divided by tabs. Knows the
 * types that SQLite has: int64, double, text. */
#ifndef EXAMPLES_ROWS_H
#define EXAMPLES_ROWS_H

#include <stdio.h>

#include "uvarrow/uvarrow.h"

/* Writes the names of the columns. */
void rows_write_names(FILE *to, const struct ArrowSchema *schema);

/* Writes the rows. 0; ENOTSUP for a column of another type. */
int rows_write(FILE *to, const struct ArrowSchema *schema,
               const struct ArrowArray *batch);

#endif
