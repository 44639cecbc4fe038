/* SPDX-License-Identifier: Apache-2.0 */
/* Queries through pools of connections to a fake driver: one pool for each
 * runtime, chains that have a query as their source, and more queries that
 * compete for the connections. Some databases have trouble for a while; each
 * pool must be well after it. The driver ends the schedule as failed if two
 * threads use a connection at once, if there are too many connections, if one
 * is used again after a query that failed or was cancelled, and if it is called
 * under a lock or on a loop. */
#ifndef SIM_ADBC_PEER_H
#define SIM_ADBC_PEER_H

#include "sim/expectation.h"
#include "uvarrow/uvarrow.h"

/* Starts a new schedule. */
void adbc_begin(void);

/* Makes a stream of a query, and the pool of the runtime with the first one.
 * NULL if that failed. */
struct uva_stream *adbc_peer_stream(struct uva_runtime *runtime,
                                    struct expectation *expectation);

/* Returns whether the runtime has a pool. */
bool adbc_has_pool(const struct uva_runtime *runtime);

/* Makes a stream of a query without batches, for the chain, if the runtime has
 * a pool. NULL otherwise. */
struct uva_stream *adbc_peer_nothing(struct uva_runtime *runtime,
                                     struct expectation *expectation);

/* All chains are built: releases some pools after a while. */
void adbc_release_pools(void);

/* Waits for the other queries, if they must end by themselves. Then queries on
 * all connections of a pool at one time prove that it is well, unless a runtime
 * may be closing, or its workers can write off fewer threads (0: any number)
 * than are stuck in calls of the pool. */
void adbc_await(bool may_hang, bool may_close, int stuck_threads);

/* The runtimes are closed: releases the other pools. */
void adbc_end(void);

/* Ends the schedule as failed unless each query has ended and everything was
 * released. */
void adbc_check(void);

#endif
