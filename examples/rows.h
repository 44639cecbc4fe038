/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as text: one line per row, with values separated by tabs. Supports
 * the types of SQLite: int64, double, text. */
#ifndef EXAMPLES_ROWS_H
#define EXAMPLES_ROWS_H

#include <stdio.h>

#include "uvarrow/uvarrow.h"

/* Writes the names of the columns. */
void rows_write_names(FILE *to, const struct ArrowSchema *schema);

/* Writes the rows. Returns 0, or ENOTSUP for a column of another type. */
int rows_write(FILE *to, const struct ArrowSchema *schema,
               const struct ArrowArray *batch);

/* Gives the rows as text in memory that the caller frees, also after a failure.
 * Returns as rows_write(), or ENOMEM. */
int rows_text(const struct uva_batch *batch, char **out, size_t *size);

#endif
