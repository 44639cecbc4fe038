/* SPDX-License-Identifier: Apache-2.0 */
/* A database: a driver that was loaded, and what it opened. How long
 * it is used is up to adbc/pool.c. */
#ifndef UVA_ADBC_DATABASE_H
#define UVA_ADBC_DATABASE_H

#include <stdatomic.h>

#include "adbc/failure.h"
#include "adbc/known.h"
#include "adbc/pooler.h"

/* Does not move: what belongs to it points to its driver. */
struct uva__database {
    struct AdbcDriver driver;                 /* owns */
    struct AdbcDatabase adbc;                 /* owns */
    _Atomic(const struct uva__known *) known; /* static; NULL before the first
                                                 connection */
    bool is_postgresql;                       /* and reached by libpq */
    bool has_looked;         /* for a pooler, behind the first connect */
    enum uva__pooler pooler; /* what it has found */
};

/* Loads a driver and opens its database with the options; `entrypoint` may be
 * NULL. Returns 0 and gives `*out`, to be closed, or an errno, with the
 * failure. Thread: a worker. */
UVA_MUST_CHECK int uva__database_open(const char *driver,
                                      const char *entrypoint,
                                      char *const *options,
                                      struct uva__database **out,
                                      struct uva__adbc_failure *failure);

/* Closes it and frees it. Takes `database`. Thread: a worker. */
void uva__database_close(struct uva__database *database);

#endif
