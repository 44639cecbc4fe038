/* SPDX-License-Identifier: Apache-2.0 */
/* All cases as one list for each role. */
#include "tck/cases.h"

#include <stdio.h>
#include <string.h>

static const struct uva__tck_table *const PRODUCER[] = {
    &uva__producer_run_cases,     &uva__producer_probe_cases,
    &uva__producer_failure_cases, &uva__producer_array_cases,
    &uva__producer_undecidable,   NULL};
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

void uva__cases_clause(const char *name, char clause[8])
{
    const char *id = strchr(name, '_') + 1;
    const size_t size = strcspn(id, "_");

    (void)snprintf(clause, 8, "%.2s-%.*s", id, (int)size - 2, id + 2);
}

enum uva__cases_level uva__cases_level(enum uva_tck_role role,
                                       const char *clause)
{
    enum uva__cases_level level = UVA__CASES_UNLISTED;
    const struct uva__tck_case *at;

    for (size_t n = 0; (at = uva__cases_at(role, n)) != NULL; n++) {
        char own[8];

        uva__cases_clause(at->name, own);
        if (strcmp(own, clause) != 0)
            continue;
        if (strncmp(at->name, "required_", 9) == 0)
            return UVA__CASES_REQUIRED;
        level = UVA__CASES_RECOMMENDED;
    }
    return level;
}
