/* SPDX-License-Identifier: Apache-2.0 */
/* All cases as one list for each role. */
#include "tck/cases.h"

static const struct uva__tck_table *const PRODUCER[] = {
    &uva__producer_run_cases, &uva__producer_probe_cases,
    &uva__producer_array_cases, &uva__producer_undecidable, NULL};
static const struct uva__tck_table *const HANDLER[] = {
    &uva__handler_cases, &uva__handler_undecidable, NULL};
static const struct uva__tck_table *const STREAM[] = {
    &uva__stream_cases, &uva__stream_undecidable, NULL};

const struct uva__tck_case *uva__cases_at(enum uva_tck_role role, size_t n)
{
    const struct uva__tck_table *const *tables =
        role == UVA_TCK_PRODUCER  ? PRODUCER
        : role == UVA_TCK_HANDLER ? HANDLER
                                  : STREAM;

    for (; *tables != NULL; tables++) {
        if (n < (*tables)->count)
            return &(*tables)->cases[n];
        n -= (*tables)->count;
    }
    return NULL;
}
