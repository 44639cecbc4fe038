/* SPDX-License-Identifier: Apache-2.0 */
/* A query that is not on the command line. */
#ifndef UVA_TOOLS_SQL_H
#define UVA_TOOLS_SQL_H

#include <stdbool.h>

#include "uvarrow/base.h"

/* Reads a query from the file at `path`, or from standard input if that is "-".
 * Returns 0 and gives `out`, to be freed by free(); EINVAL for one without text
 * or with a NUL, EFBIG for more than 16 MiB, ENOMEM, or an error of the system.
 * Blocks. Thread: any. */
UVA_MUST_CHECK int uva__sql_read(const char *path, char **out,
                                 struct uva_error *error);

/* Returns whether a query changes rows and gives none: each of its statements
 * begins with INSERT, UPDATE, DELETE, REPLACE or MERGE, perhaps after
 * comments, and RETURNING does not occur in it. Thread: any. */
bool uva__sql_is_update(const char *sql);

#endif
