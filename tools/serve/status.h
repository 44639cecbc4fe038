/* SPDX-License-Identifier: Apache-2.0 */
/* The status of an answer to a query that failed before its first row: by the
 * step that failed, and by the database's statement. docs/server.md has the
 * table. */
#ifndef UVA_SERVE_STATUS_H
#define UVA_SERVE_STATUS_H

#include <stdbool.h>

#include "kind.h"
#include "uvarrow/base.h"

/* Returns the status of HTTP for an error and the metadata of its outcome,
 * which may be NULL. Thread: any. */
int uva__status_of(enum uva__kind kind, const struct uva_error *error,
                   const char *metadata);

/* Whether a first connection that fails so is likely to fail again: the driver
 * is wrong, or the database. A server that cannot be reached may come later.
 * Thread: any. */
bool uva__status_is_lasting(enum uva__kind kind, const struct uva_error *error,
                            const char *metadata);

#endif
