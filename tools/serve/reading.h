/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts of SQL only read. That is no defence by itself, but keeps away
 * what a read-only database does not refuse: other files, settings, the end of
 * the transaction around a query. */
#ifndef UVA_SERVE_READING_H
#define UVA_SERVE_READING_H

#include <stdbool.h>

/* Databases that differ in what a text may be. */
enum uva__reading {
    UVA__READING_ANY,        /* any text may be asked */
    UVA__READING_SQLITE,     /* of several statements the first is executed */
    UVA__READING_DUCKDB,     /* all are */
    UVA__READING_POSTGRESQL, /* they are refused */
};

/* Returns why a text may not be asked, as a static text; NULL if it may. */
const char *uva__reading_refusal(enum uva__reading reading, const char *sql);

/* Whether PostgreSQL gives rows for a text that are not those of a query, so
 * that COPY cannot send them. */
bool uva__reading_needs_plain(const char *sql);

#endif
