/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about databases beyond ADBC, found by the name that a driver gives
 * itself. No other file compares names of drivers or of databases. */
#ifndef UVA_ADBC_KNOWN_H
#define UVA_ADBC_KNOWN_H

#include <stdbool.h>

#include "uvarrow/adbc_abi.h"

/* How the session of a connection is made clean. */
enum uva__known_reset {
    UVA__RESET_CLOSE,           /* by its end: the connection is closed */
    UVA__RESET_CLOSE_IF_WRITES, /* so, too, but not after a query that is known
                                  to leave no state: see adbc/reset.c */
    UVA__RESET_DISCARD_ALL      /* by the statement of PostgreSQL */
};

/* The traits of a driver. */
enum {
    UVA__KNOWN_LIBPQ = 1,             /* it connects by libpq */
    UVA__KNOWN_REFUSES_ROLLBACK = 2,  /* outside of a transaction: so a success
                                         means that there was one */
    UVA__KNOWN_LOADS_EXTENSIONS = 4,  /* of SQLite, by options of a connection:
                                         so it can be interrupted, see
                                         adbc/interrupt.h */
    UVA__KNOWN_EXECUTES_FIRST = 8,    /* of a text with several statements,
                                         without an error */
    UVA__KNOWN_SPLITS_MEMORY = 16,    /* ":memory:" is a database for each
                                         connection */
    UVA__KNOWN_COUNTS_ROWS = 32,      /* `batch_option` is a number of rows, not
                                         of bytes */
    UVA__KNOWN_CONNECTS_AT_ONCE = 64, /* connects may run side by side, each on
                                         a separate database, as it opens only
                                         sockets */
    UVA__KNOWN_ANSWERS = 128,         /* ADBC_INFO_VENDOR_VERSION is asked of
                                         the server */
    UVA__KNOWN_DROPS_RESULTS = 256    /* the release of a result waits for no
                                         rows of it that were not read */
};

struct uva__known {
    const char *driver; /* its name as ADBC_INFO_DRIVER_NAME; NULL: any */
    const char *file;   /* part of the name of its file */
    enum uva__known_reset reset;
    /* begin a transaction that reads and cannot be made to write any more, NULL
     * after the last one; NULL: the driver has an option for that. ROLLBACK
     * ends it */
    const char *const *read_only;
    const char *batch_option;   /* of a statement: how large a batch should be;
                                   may be NULL */
    const char *lock_statement; /* after which milliseconds stand: how long a
                                   connection waits for a lock; NULL: none */
    const struct uva__sql_dialect *sql; /* how its statements are told apart;
                                           NULL: that is not known */
    unsigned traits;                    /* bits UVA__KNOWN_... */
};

/* The facts about a driver before it has answered, by the name of its file or
 * of its look-up. Never NULL. Thread: any. */
const struct uva__known *uva__known_named(const char *driver);

static inline bool uva__known_has(const struct uva__known *known,
                                  unsigned trait)
{
    return (known->traits & trait) != 0;
}

/* Whether a schema has a type that the driver has not found when it opened the
 * database, such as a later type; gives its name, cut to `size`.
 * Thread: any. */
bool uva__known_is_strange(const struct ArrowSchema *schema, char *out,
                           size_t size);

/* Asks the driver of a connection that is connected, which asks no server for
 * that. Returns the facts, never NULL: for an unknown database, facts that are
 * right for any. Thread: a worker. */
const struct uva__known *uva__known_find(struct AdbcConnection *connection);

#endif
