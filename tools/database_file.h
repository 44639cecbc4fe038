/* SPDX-License-Identifier: Apache-2.0 */
/* The file that the name of a database means. */
#ifndef UVA_TOOLS_DATABASE_FILE_H
#define UVA_TOOLS_DATABASE_FILE_H

#include "uvarrow/base.h"

/* Gives in `path` the file that a name of SQLite or DuckDB means: the name
 * itself, or the path of a URI with the scheme "file"; NULL if it is in memory,
 * or there is no name. Returns 0; ENOMEM. The caller frees the path.
 * Thread: any. */
UVA_MUST_CHECK int uva__database_file(const char *name, char **path);

/* Gives in `path` the path of a URI, of which `rest` is what follows the scheme
 * and its colon: without the authority and the parameters, and decoded, as
 * SQLite does. Returns and is freed as that. Thread: any. */
UVA_MUST_CHECK int uva__database_uri_path(const char *rest, char **path);

#endif
