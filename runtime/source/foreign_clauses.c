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
    uva__foreign_clauses_count_late(source->rt, uva__label_text(source->label),
                                    clause);
}

void uva__foreign_clauses_count_late(struct uva__rt *rt, const char *stream,
                                     const char *clause)
{
    if (!uva__rt_is_closed(rt))
        uva__rt_breach(rt, stream, clause, uva__foreign_clauses_text(clause));
    else
        uva__atomic64_add(&rt->stats.peer_breaches, 1);
}
