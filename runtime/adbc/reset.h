/* SPDX-License-Identifier: Apache-2.0 */
/* The session of an idle connection is clean: it has no state of earlier
 * queries. How that is reached is up to adbc/known.c. */
#ifndef UVA_ADBC_RESET_H
#define UVA_ADBC_RESET_H

#include "adbc/connection.h"
#include "uvarrow/runtime.h"

/* Whether `sql` can have left anything in the session. "": statements of a
 * user's session; NULL: no statement was executed. Thread: any. */
bool uva__reset_is_needed(const struct uva__connection *connection,
                          const char *sql);

/* Makes a session as it was once it was connected with the options, if that is
 * cheaper than another connection. Returns whether it is clean: otherwise the
 * connection must be closed. A transaction that is open is rolled back, and
 * stated in the log with `sql`. Thread: a worker. */
bool uva__reset(struct uva__connection *connection, char *const *options,
                const char *sql, struct uva_runtime *runtime);

#endif
