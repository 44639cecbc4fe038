/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the breaches of a foreign producer, with the texts of the clauses. */
#ifndef UVA_SOURCE_FOREIGN_CLAUSES_H
#define UVA_SOURCE_FOREIGN_CLAUSES_H

#include "protocol/clauses.h"
#include "stream/source.h"

/* Counts a breach, and logs it while the runtime is open: the texts of the log
 * may be freed after that. `stream` is the name of the source, or NULL: that
 * may be gone. Thread: any. */
static inline void uva__foreign_count_late(struct uva__rt *rt,
                                           const char *stream,
                                           const char *clause)
{
    if (!uva__rt_is_closed(rt))
        uva__rt_breach(rt, stream, clause, uva__clause_breach(clause));
    else
        uva__atomic64_add(&rt->stats.peer_breaches, 1);
}

static inline void uva__foreign_count(const struct uva__source *source,
                                      const char *clause)
{
    uva__foreign_count_late(source->rt, uva__label_text(source->label), clause);
}

#endif
