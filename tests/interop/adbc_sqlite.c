/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for SQLite, in a database in memory. */
#include <inttypes.h>
#include <stdio.h>

#include "interop/adbc_subject.h"

/* Counts from 0; row `fails_at` (negative: no row) overflows. */
static void count(char *text, size_t size, int64_t rows, int64_t fails_at)
{
    (void)snprintf(text, size,
                   "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 "
                   "FROM c LIMIT %" PRId64 ") SELECT CASE WHEN n = %" PRId64
                   " THEN abs(-9223372036854775807 - 1) ELSE n END AS n FROM c",
                   rows, fails_at);
}

const struct adbc_peer adbc_peer = {
    .option = "adbc.sqlite.query.batch_rows",
    .value = "3",
    .count = count,
};
_Static_assert(UVA_SUBJECT_ROWS == 3, "the option has that number");
