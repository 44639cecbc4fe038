/* SPDX-License-Identifier: Apache-2.0 */
/* One column of a table, of int64. */
#ifndef EXAMPLES_COLUMN_H
#define EXAMPLES_COLUMN_H

#include "uvarrow/uvarrow.h"

/* Returns the place of the column `name` among the children, -1 if there is no
 * column of int64 with this name. */
int column_find(const struct ArrowSchema *schema, const char *name);

/* Returns the sum of the values of a column, nulls left out. */
int64_t column_sum(const struct ArrowArray *rows, int column);

#endif
