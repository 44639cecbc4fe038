/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that the programs in tests/programs use beside uvarrow: a
 * database driver that blocks, and a kernel on columns. This double stands for
 * foreign libraries and works simply: it does not use uvarrow, and its names
 * are like theirs. */
#ifndef UVA_SUPPORT_WORLD_H
#define UVA_SUPPORT_WORLD_H

#include <stdint.h>

#include "uvarrow/arrow_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A query gives this many batches of this many rows. They have one int64
 * column, and row i has the value i. */
enum { DB_BATCHES = 20, DB_ROWS = 1000 };

/* A database driver. */
struct db;

/* Opens a database, to be closed by db_close(); NULL on failure. */
struct db *db_open(const char *uri);

/* Runs a query. `out` may outlive the caller's reference to `db`. */
int db_query(struct db *db, const char *sql, struct ArrowArrayStream *out);

/* Makes running queries on `db` fail soon with ECANCELED. Thread: any. */
void db_interrupt(struct db *db);

/* Reads `in` to its end on this thread and releases it. Returns 0, or the code
 * of the first failure. */
int db_ingest(struct db *db, const char *table, struct ArrowArrayStream *in);

/* Returns how many rows have been ingested. Each must have continued the count.
 */
int64_t db_rows(const struct db *db);

void db_close(struct db *db);

/* Opens a database, queries it and closes it, so that only the stream is left.
 */
int db_scan(const char *uri, struct ArrowArrayStream *out);

/* Gives a schema, or a batch, of the shape that a query gives: `length` rows
 * that count up from `first`. 0; ENOMEM. */
int column_schema(struct ArrowSchema *out);
int column_count_up(int64_t first, int64_t length, struct ArrowArray *out);

/* Returns the values of the one column of a batch. */
const int64_t *column_values(const struct ArrowArray *batch);

/* Gives a copy of a batch with each number multiplied. 0; ENOMEM. */
int column_scale(const struct ArrowArray *batch, double factor,
                 struct ArrowArray *out);

/* Returns once every database, stream, schema and batch has been released. For
 * the end of a program: when a runtime closes, a call that is still inside a
 * source goes on in its worker, which releases the source after it. */
void world_await_release(void);

#ifdef __cplusplus
}
#endif

#endif
