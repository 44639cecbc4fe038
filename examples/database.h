/* SPDX-License-Identifier: Apache-2.0 */
/* A query of a database, through any ADBC driver: https://arrow.apache.org/adbc
 * The driver is loaded by its path; no driver manager is needed. The functions
 * have the shape of the hooks in struct uva_blocking_source. */
#ifndef EXAMPLES_DATABASE_H
#define EXAMPLES_DATABASE_H

#include "uvarrow/uvarrow.h"

struct database;

/* Stores what to open and query; nothing is loaded. Borrows the texts. Returns
 * NULL when out of memory, which database_open() then reports. */
struct database *database_new(const char *driver, const char *uri,
                              const char *sql);

/* Loads the driver, connects, executes the query: slow, so not for a loop
 * thread. */
int database_open(void *database, struct ArrowArrayStream *out,
                  struct uva_error *error);

/* Cancels the current call of the driver.
 * Thread: any. */
void database_interrupt(void *database);

/* Disconnects, after its stream was released. */
void database_free(void *database);

#endif
