/* SPDX-License-Identifier: Apache-2.0 */
/* A pooler between PostgreSQL and its clients, such as pgbouncer. Where it
 * gives each transaction any of its backends, a statement that the driver
 * prepares by one call and executes by the next is executed as another client
 * has prepared it. */
#ifndef UVA_ADBC_POOLER_H
#define UVA_ADBC_POOLER_H

#include "adbc/failure.h"

/* How sessions get their backends. */
enum uva__pooler {
    UVA__POOLER_NONE = 0, /* each has one, as far as is known */
    UVA__POOLER_FOUND,    /* from a pooler, which may share them */
    UVA__POOLER_SHARES    /* from a pooler, which was seen to share them */
};

/* Finds out about the database of `first`, which is connected and idle, with
 * a name of its application. Makes another connection if there is a pooler.
 * Uses the database, as a connect does. A failure is taken for an answer.
 * Thread: a worker. */
enum uva__pooler uva__pooler_look(struct AdbcDatabase *database,
                                  struct AdbcConnection *first);

#endif
