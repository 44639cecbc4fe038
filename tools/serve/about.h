/* SPDX-License-Identifier: Apache-2.0 */
/* What the server tells of its database to clients that may query it: enough to
 * show it under its name, and no part that could be a secret. */
#ifndef UVA_SERVE_ABOUT_H
#define UVA_SERVE_ABOUT_H

#include <jansson.h>
#include <stddef.h>

#include "database.h"

/* Puts the name for people into `out`, which ends with a NUL: the file without
 * its folders, or host and database of a URI. Empty: it has none, or where it
 * begins cannot be told from a password. Thread: any. */
void uva__about_name(const struct uva__database *database, char *out,
                     size_t size);

/* Returns the description, for the caller; NULL: without memory. Thread: loop.
 */
json_t *uva__about_json(const struct uva__database *database);

#endif
