/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for SQLite, in a database in memory. */
#include <inttypes.h>
#include <stdio.h>

#include "interop/adbc_subject.h"

/* Counts from 0; row `fails_at` (negative: none) overflows. */
static int count(char *text, size_t size, int64_t rows, int64_t fails_at)
{
    (void)snprintf(text, size,
                   "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 "
                   "FROM c LIMIT %" PRId64 ") SELECT CASE WHEN n = %" PRId64
                   " THEN abs(-9223372036854775807 - 1) ELSE n END AS n FROM c",
                   rows, fails_at);
    return 0;
}

static int sqlite_write(char *text, size_t size, int32_t plan, int64_t batches)
{
    const int64_t rows = batches * UVA_SUBJECT_ROWS;

    switch (plan) {
    case UVA_SUBJECT_WHOLE:
        return count(text, size, rows, -1);
    case UVA_SUBJECT_ENDLESS:
        return count(text, size, INT64_MAX, -1);
    case UVA_SUBJECT_FAILS:
        return count(text, size, rows + 1, rows);
    default:
        return UVA_SUBJECT_CANNOT;
    }
}

const struct adbc_peer adbc_peer = {
    .option = "adbc.sqlite.query.batch_rows",
    .value = "3",
    .write = sqlite_write,
};
_Static_assert(UVA_SUBJECT_ROWS == 3, "the option has that number");
