/* SPDX-License-Identifier: Apache-2.0 */
/* A query of a database, through any ADBC driver: https://arrow.apache.org/adbc
 * The driver is a file, or a name that is looked for as the ADBC driver manager
 * does; that itself is not needed. */
#ifndef EXAMPLES_DATABASE_H
#define EXAMPLES_DATABASE_H

#include "uvarrow/adbc.h"
#include "uvarrow/uvarrow.h"

/* Makes a pool of connections. Returns it, to be released; NULL, and the error
 * is printed. */
struct uva_adbc_pool *database_open(struct uva_runtime *rt, const char *driver,
                                    const char *uri);

/* Creates a stream of the rows of `query`, on its own connection. The driver is
 * not loaded before it starts. Returns it, never NULL, to be released. */
struct uva_stream *database_query(struct uva_runtime *rt, const char *driver,
                                  const char *uri,
                                  const struct uva_adbc_query *query);

#endif
