/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the texts from the clause table, and counts breaches in the runtime. */
#include "source/foreign_clauses.h"

#include "protocol/clauses.h"

const char *uva__breaches_text(const char *clause)
{
    return uva__clause_breach(clause);
}

void uva__breaches_count(struct uva__hub *hub, const char *clause)
{
    if (!uva__hub_is_shut(hub))
        uva__hub_breach(hub, NULL, clause, uva__breaches_text(clause));
    else
        uva__word_add(&hub->counts.peer_breaches, 1);
}
