/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a database. What it is used for is up to adbc/pool.c. */
#ifndef UVA_ADBC_CONNECTION_H
#define UVA_ADBC_CONNECTION_H

#include "adbc/database.h"

struct uva__connection {
    struct AdbcConnection adbc;     /* owns */
    const struct uva__known *known; /* static: of its database; NULL before it
                                       is connected */
    struct uva__connection *next;   /* of those that are idle */
    uint64_t idle_ns;               /* since when, on libuv's clock */
    bool shares; /* its backend, with other sessions: see adbc/pooler.h */
};

/* Makes a connection that is not connected: gives `*out`, to be closed. 0 or an
 * errno, with the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__connection_new(struct uva__database *database,
                                       char *const *options,
                                       struct uva__connection **out,
                                       struct uva__adbc_failure *failure);

/* Connects it: a call that uses the database, of which ADBC allows one at a
 * time. 0 or an errno, with the failure. Thread: a worker. */
UVA_MUST_CHECK int uva__connection_init(struct uva__connection *connection,
                                        struct uva__database *database,
                                        struct uva__adbc_failure *failure);

/* Closes it and frees it. Takes `connection`. Thread: a worker. */
void uva__connection_close(struct uva__connection *connection);

#endif
