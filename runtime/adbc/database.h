/* SPDX-License-Identifier: Apache-2.0 */
/* A database: a driver that was loaded, and its opened database. How long it is
 * used is up to adbc/pool.c. */
#ifndef UVA_ADBC_DATABASE_H
#define UVA_ADBC_DATABASE_H

#include "adbc/failure.h"
#include "adbc/known.h"
#include "adbc/pooler.h"

/* The uses of it. */
enum uva__database_state {
    UVA__DATABASE_CALLED,  /* a connect uses it: ADBC allows one at one time */
    UVA__DATABASE_FREE,    /* the next connect may use it */
    UVA__DATABASE_STUCK,   /* a connect uses it that was written off */
    UVA__DATABASE_RETIRED, /* no connect: closed after its last connection */
};

/* Does not move: its connections point to its driver. */
struct uva__database {
    struct AdbcDriver driver;       /* owns */
    struct AdbcDatabase adbc;       /* owns */
    const struct uva__known *known; /* static; NULL before the first connection;
                                       of the connect that uses it */
    const struct uva__known *named; /* static: by the name of the driver */
    bool has_looked;                /* for a pooler, after the first connect */
    enum uva__pooler pooler;        /* its finding */

    /* the pool's, under its lock */
    struct uva__database *next;
    enum uva__database_state state;
    int32_t connections; /* that it has, or is asked for */
    uint64_t born_ns;    /* when it was opened; 0: it was not */
};

/* Loads a driver and opens its database with the options; `entrypoint` may be
 * NULL. Where the driver has limits of time itself, they are set, unless the
 * options do that: for the address of a server a part of `connect_ms`.
 * `database` is cleared, and to be closed also on failure. 0 or an errno, with
 * the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__database_open(struct uva__database *database,
                                      const char *driver,
                                      const char *entrypoint,
                                      char *const *options, int64_t connect_ms,
                                      struct uva__adbc_failure *failure);

/* Closes the opened part of it. Thread: a worker. */
void uva__database_close(struct uva__database *database);

#endif
