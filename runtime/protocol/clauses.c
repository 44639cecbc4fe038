/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of clauses.h as an array, in the order of enum uva__rule. */
#include "protocol/clauses.h"

#include <assert.h>
#include <string.h>

/* The columns of the table. */
#define P UVA_PARTY_PRODUCER
#define C UVA_PARTY_CONSUMER
#define B UVA_PARTY_EITHER
#define N UVA_SEVERITY_NOTE
#define W UVA_SEVERITY_WARNING
#define E UVA_SEVERITY_ERROR
#define F UVA_SEVERITY_FATAL

/* The rest of a row: its rule, and the texts of a breach by name. */
#define CLAUSE_ROW(name, clause, binds, options, ...)                          \
    {.id = (clause),                                                           \
     .party = (binds),                                                         \
     .severity = (options),                                                    \
     .rule = __VA_ARGS__},
static const struct uva__clause CLAUSES[] = {
    UVA__CLAUSES(CLAUSE_ROW) UVA__CLAUSE_VARIANTS(CLAUSE_ROW)};
#undef CLAUSE_ROW

#define CLAUSE_ONE(...) +1
static const int COUNT = 0 UVA__CLAUSES(CLAUSE_ONE);
#undef CLAUSE_ONE

const struct uva__clause *uva__clauses(int *count)
{
    *count = COUNT;
    return CLAUSES;
}

const struct uva__clause *uva__clause_of(enum uva__rule rule)
{
    assert(rule < UVA__RULE_COUNT);
    return &CLAUSES[rule];
}

const struct uva__clause *uva__clause_find(const char *id)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(CLAUSES[i].id, id) == 0)
            return &CLAUSES[i];
    return NULL;
}

const char *uva__clause_breach(const char *id)
{
    const struct uva__clause *clause = uva__clause_find(id);

    assert(clause != NULL && clause->breach != NULL);
    return clause->unnumbered != NULL ? clause->unnumbered : clause->breach;
}
