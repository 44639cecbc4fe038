/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the texts of breaches from the clause table, and counts breaches in the
 * runtime. */
#include "source/foreign_clauses.h"

#include "protocol/clauses.h"

const char *uva__foreign_clauses_text(const char *clause)
{
    return uva__clause_breach(clause);
}

void uva__foreign_clauses_count(const struct uva__source *source,
                                const char *clause)
{
    if (!uva__rt_is_closed(source->rt))
        uva__rt_breach(source->rt, uva__label_text(source->label), clause,
                       uva__foreign_clauses_text(clause));
    else
        uva__atomic64_add(&source->rt->stats.peer_breaches, 1);
}
