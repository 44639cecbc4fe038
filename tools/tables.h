/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a database, and the columns of one, as rows. */
#ifndef UVA_TOOLS_TABLES_H
#define UVA_TOOLS_TABLES_H

#include "uvarrow/adbc.h"
#include "uvarrow/stream.h"

/* Creates a stream of the tables of a database: catalog, schema, table and
 * type, without those of the system. With `table`, which may have its schema
 * and its catalog in front, "schema.table", of its columns: name, type, and
 * whether it may be null. The stream has failed if that is not possible.
 * Returns it, never NULL, with one reference for the caller. Thread: any. */
UVA_MUST_CHECK struct uva_stream *uva__tables_stream(struct uva_adbc_pool *pool,
                                                     const char *table);

#endif
