/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts of SQL only read. That is no defence by itself, but keeps away
 * statements that a read-only database does not refuse: other files, settings,
 * the end of the transaction around a query. */
#ifndef UVA_SERVE_READING_H
#define UVA_SERVE_READING_H

#include <stdbool.h>

#include "kind.h"

/* Returns 0 if a text may be asked, as in another database; otherwise a status,
 * and why, as a static text: 403 for a text that may change the database, 400
 * for no statement. */
int uva__reading_check(enum uva__kind kind, const char *sql, const char **why);

/* Whether a text that passes that check does not change a writable database, by
 * words alone: some harmless texts are refused, too. PostgreSQL's transactions
 * see to that. */
bool uva__reading_is_safe(enum uva__kind kind, const char *sql);

/* Whether PostgreSQL gives rows for a text that is no query, so that COPY
 * cannot send them. */
bool uva__reading_needs_plain(const char *sql);

#endif
