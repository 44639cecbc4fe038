/* SPDX-License-Identifier: Apache-2.0 */
/* The needs of a driver of ADBC as a subject: its options, and a query for a
 * plan of the test suite. Each driver has a file, adbc_NAME.c. */
#ifndef INTEROP_ADBC_SUBJECT_H
#define INTEROP_ADBC_SUBJECT_H

#include "uvarrow/tck.h"

struct adbc_peer {
    bool has_uri;       /* its server is at UVA_SUBJECT_URI */
    const char *option; /* of a statement, to get batches of UVA_SUBJECT_ROWS
                           rows; NULL: the query has them */
    const char *value;
    /* Writes a query for a plan. Returns 0, or UVA_SUBJECT_CANNOT. NULL: plans
     * are queries of `count`. */
    int (*write)(char *text, size_t size, int32_t plan, int64_t batches);
    /* Writes a query that counts `rows` from 0. Row `fails_at` (negative: no
     * row) fails. */
    void (*count)(char *text, size_t size, int64_t rows, int64_t fails_at);
};

extern const struct adbc_peer adbc_peer;

#endif
