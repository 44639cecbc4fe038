/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs in tests/programs take from elsewhere: a database driver
 * that blocks, and a kernel on columns. A double that stands for other people's
 * libraries and works simply: nothing of uvarrow is in here, and the names are
 * such as those libraries have. */
#ifndef UVA_SUPPORT_WORLD_H
#define UVA_SUPPORT_WORLD_H

#include <stdint.h>

#include "uvarrow/arrow_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A query gives so many batches of so many rows. They have one int64 column,
 * in which row i says i. */
enum { DB_BATCHES = 20, DB_ROWS = 1000 };

/* A database driver. */
struct db;

/* Opens a database, to be closed by db_close(); or NULL. */
struct db *db_open(const char *uri);

/* Runs a query. `out` may outlive the caller's hold on `db`. */
int db_query(struct db *db, const char *sql, struct ArrowArrayStream *out);

/* Makes what runs on `db` fail soon with ECANCELED. Thread: any. */
void db_interrupt(struct db *db);

/* Reads `in` to its end on this thread and releases it. 0, or the code that
 * stopped it. */
int db_ingest(struct db *db, const char *table, struct ArrowArrayStream *in);

/* How many rows have been ingested, each checked to say the next number. */
int64_t db_rows(const struct db *db);

void db_close(struct db *db);

/* Opens, queries and closes, with only the stream left. */
int db_scan(const char *uri, struct ArrowArrayStream *out);

/* Gives a schema, or a batch, of the shape that a query gives: `length` rows
 * that count up from `first`. 0; ENOMEM. */
int column_schema(struct ArrowSchema *out);
int column_count_up(int64_t first, int64_t length, struct ArrowArray *out);

/* What the one column of a batch says. */
const int64_t *column_values(const struct ArrowArray *batch);

/* Gives a batch with each number multiplied. 0; ENOMEM. */
int column_scale(const struct ArrowArray *batch, double factor,
                 struct ArrowArray *out);

/* Returns once every database, stream, schema and batch has been released. For
 * the end of a program: a call that is still in a source when a runtime closes
 * stays behind on its worker, which releases the source when it is back. */
void world_await_release(void);

#ifdef __cplusplus
}
#endif

#endif
