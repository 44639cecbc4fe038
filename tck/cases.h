/* SPDX-License-Identifier: Apache-2.0 */
/* The cases, in the order in which they are listed. Each file of cases gives
 * one table, of one role. */
#ifndef UVA_TCK_CASES_H
#define UVA_TCK_CASES_H

#include "tck/case_run.h"

/* One case: decides whether a subject keeps one clause. */
struct uva__tck_case {
    const char *name;                       /* level_clause_sentence */
    void (*run)(struct uva__case_run *run); /* NULL: undecidable */
    uint64_t arg;       /* argument of `run`: the scenarios to play, as bits */
    const char *reason; /* why it cannot be decided; otherwise NULL */
};

/* A table of cases. */
struct uva__tck_table {
    const struct uva__tck_case *cases;
    size_t count;
};

/* The tables of each role. */
extern const struct uva__tck_table uva__producer_run_cases;
extern const struct uva__tck_table uva__producer_probe_cases;
extern const struct uva__tck_table uva__producer_failure_cases;
extern const struct uva__tck_table uva__producer_array_cases;
extern const struct uva__tck_table uva__producer_undecidable;
extern const struct uva__tck_table uva__handler_cases;
extern const struct uva__tck_table uva__handler_undecidable;
extern const struct uva__tck_table uva__stream_cases;
extern const struct uva__tck_table uva__stream_undecidable;

/* Gives the clause that a case is named after: the id in "required_AP06_...",
 * with its dash. Thread: any. */
void uva__cases_clause(const char *name, char clause[8]);

/* How a role is bound by a clause, by the names of its cases. */
enum uva__cases_level {
    UVA__CASES_UNLISTED, /* there is no case, not even an undecidable one */
    UVA__CASES_RECOMMENDED,
    UVA__CASES_REQUIRED /* at least one case is required */
};

/* Returns the level of a clause for a role. Thread: any. */
enum uva__cases_level uva__cases_level(enum uva_tck_role role,
                                       const char *clause);

/* Returns case `n` of a role, counted from 0, or NULL beyond the last. Thread:
 * any. */
const struct uva__tck_case *uva__cases_at(enum uva_tck_role role, size_t n);

#endif
