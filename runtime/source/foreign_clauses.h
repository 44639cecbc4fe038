/* SPDX-License-Identifier: Apache-2.0 */
/* Breaches by a foreign producer: their texts, and how they are counted. */
#ifndef UVA_SOURCE_FOREIGN_CLAUSES_H
#define UVA_SOURCE_FOREIGN_CLAUSES_H

#include "stream/source.h"

/* Returns the text for a breach of `clause`. Static, never NULL. Thread: any.
 */
const char *uva__foreign_clauses_text(const char *clause);

/* Counts a breach, and logs it while the runtime is open: the texts of the log
 * may be freed after that. Thread: any. */
void uva__foreign_clauses_count(const struct uva__source *source,
                                const char *clause);

/* For a source that may be gone; `stream` is its name, or NULL.
 * Thread: any. */
void uva__foreign_clauses_count_late(struct uva__rt *rt, const char *stream,
                                     const char *clause);

#endif
