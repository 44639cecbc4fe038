/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for PostgreSQL. */
#include <inttypes.h>
#include <stdio.h>

#include "interop/adbc_subject.h"

/* Counts from 0; row `fails_at` (negative: no row) divides by zero. */
static void count(char *text, size_t size, int64_t rows, int64_t fails_at)
{
    (void)snprintf(text, size,
                   "SELECT CASE WHEN n = %" PRId64 " THEN 1 / (n - n) ELSE n "
                   "END AS n FROM (SELECT generate_series(0::bigint, %" PRId64
                   ") AS n) c",
                   fails_at, rows - 1);
}

/* A batch is full as soon as it has so many bytes of COPY, of which a row of
 * one int64 has 14, and a batch some more: between 46 and 56 mean three rows.
 */
const struct adbc_peer adbc_peer = {
    .has_uri = true,
    .option = "adbc.postgresql.batch_size_hint_bytes",
    .value = "50",
    .count = count,
};
_Static_assert(UVA_SUBJECT_ROWS == 3, "the option has that number of rows");
