/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a database. Its use is up to adbc/pool.c. */
#ifndef UVA_ADBC_CONNECTION_H
#define UVA_ADBC_CONNECTION_H

#include "adbc/database.h"
#include "adbc/interrupt.h"
#include "adbc/known.h"

/* Where it is: adbc/places.h. */
enum uva__connection_state {
    UVA__CONNECTION_CONNECTING, /* a worker connects, or asks whether it is
                                   alive, and a query waits for that */
    UVA__CONNECTION_IDLE,       /* free */
    UVA__CONNECTION_USED,       /* a query has it */
    UVA__CONNECTION_CANCELLED,  /* so, too, and was cancelled */
    UVA__CONNECTION_ENDING,     /* after its query, and with its permit */
    UVA__CONNECTION_CLOSING,    /* another worker closes it */
    UVA__CONNECTION_STUCK,      /* written off, and its query has its permit */
    UVA__CONNECTION_LEFT,       /* written off, and no one waits for it */
    UVA__CONNECTION_STATES
};

struct uva__connection {
    struct AdbcConnection adbc;      /* owns; has no driver: not opened */
    struct uva__database *database;  /* counts; NULL: not connected so far */
    struct uva_adbc_pool *pool;      /* borrows: its pool */
    const struct uva__known *known;  /* static: of its database; NULL before it
                                        is connected */
    struct uva__interrupt interrupt; /* of its driver's calls */
    bool shares;  /* its backend, with other sessions: see adbc/pooler.h */
    bool warns;   /* of a pooler that may share them */
    bool is_dead; /* so it was when it was asked */

    /* the pool's, under its lock */
    struct uva__connection *next, **at; /* of those in its state */
    enum uva__connection_state state;
    uint64_t since_ns;                /* when it came there */
    uint64_t born_ns;                 /* when it was connected */
    bool is_asked;                    /* it is open, while CONNECTING */
    struct uva__adbc_failure failure; /* of the connect, for its query */
};

/* Connects: calls that use the database. 0 or an errno, with the failure; then
 * it need not be closed. Thread: a worker. */
UVA_MUST_CHECK int uva__connection_open(struct uva__connection *connection,
                                        char *const *options,
                                        struct uva__adbc_failure *failure);

/* Sets its options. 0 or an errno, with a failure that names the option.
 * Thread: a worker. */
UVA_MUST_CHECK int uva__connection_set(struct uva__connection *connection,
                                       char *const *options,
                                       struct uva__adbc_failure *failure);

/* Sets how long it waits for a lock, if its database has a setting for that.
 * 0 or an errno, with the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__connection_wait(struct uva__connection *connection,
                                        int32_t lock_ms,
                                        struct uva__adbc_failure *failure);

/* Whether it is alive, as far as its server can be asked. Thread: a worker. */
bool uva__connection_is_alive(const struct uva__connection *connection);

/* Executes SQL without its result. 0 or an errno, with a failure that begins
 * with `what`. Thread: a worker. */
UVA_MUST_CHECK int uva__connection_execute(struct uva__connection *connection,
                                           const char *sql, const char *what,
                                           struct uva__adbc_failure *failure);

/* Closes it, if it is open. Thread: a worker. */
void uva__connection_close(struct uva__connection *connection);

#endif
