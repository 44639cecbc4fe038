/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that the checkers look after, by id, each with who is bound and how
 * bad a breach is. docs/clauses.md has their full text. */
#ifndef UVA_CHECK_CLAUSES_H
#define UVA_CHECK_CLAUSES_H

#include "uvarrow/check.h"

struct uva__clause {
    const char *id;             /* "AP-06" */
    enum uva_party party;       /* who is bound */
    enum uva_severity severity; /* of a breach */
    const char *rule;           /* in one line */
};

/* Gives the clause, or NULL if there is none of that id. Thread: any. */
const struct uva__clause *uva__clause_find(const char *id);

/* All of them, in the catalogue's order; `count` gets how many. Thread: any. */
const struct uva__clause *uva__clauses(int *count);

#endif
