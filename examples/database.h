/* SPDX-License-Identifier: Apache-2.0 */
/* A query of a database, through any ADBC driver: https://arrow.apache.org/adbc
 * The driver is loaded by its path; no driver manager is needed. The functions
 * have the shape of the hooks in struct uva_blocking_source. */
#ifndef EXAMPLES_DATABASE_H
#define EXAMPLES_DATABASE_H

#include "uvarrow/uvarrow.h"

struct database;

/* Remembers what to open and ask; nothing is loaded yet. Borrows the texts.
 * NULL when out of memory, which database_open() will report. */
struct database *database_new(const char *driver, const char *uri,
                              const char *sql);

/* Loads the driver, connects, executes the query: slow, so not on a loop. */
int database_open(void *database, struct ArrowArrayStream *out,
                  struct uva_error *error);

/* Asks the driver to give up what it is doing. Thread: any. */
void database_interrupt(void *database);

/* Disconnects, when its stream has been released. */
void database_free(void *database);

#endif
