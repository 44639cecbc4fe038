/* SPDX-License-Identifier: Apache-2.0 */
/* A query through the ADBC driver for SQLite that scripts/bootstrap installs: a
 * blocking stream from a foreign library. */
#ifndef UVA_SUPPORT_ADBC_QUERY_H
#define UVA_SUPPORT_ADBC_QUERY_H

#include <arrow-adbc/adbc.h>
#include <stdbool.h>

struct adbc_query {
    struct AdbcDriver driver;
    struct AdbcDatabase database;
    struct AdbcConnection connection;
    struct AdbcStatement statement;
};

/* Returns whether the driver is installed. */
bool adbc_query_is_possible(void);

/* Opens the file `database` and gives `out` the result of `sql`. A failure
 * fails the test. */
void adbc_query_open(struct adbc_query *query, const char *database,
                     const char *sql, struct ArrowArrayStream *out);

/* Frees the query and its database, once `out` has been released. */
void adbc_query_close(struct adbc_query *query);

#endif
