/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of a driver, and connections that queries use one after the other.
 * The order of queries, and how many there are at one time, is up to the turns
 * of their streams: so a query that runs finds a connection, or may make one.
 */
#ifndef UVA_ADBC_POOL_H
#define UVA_ADBC_POOL_H

#include <stdatomic.h>

#include "adbc/connection.h"
#include "uvarrow/adbc.h"

struct uva_adbc_pool;

/* The runtime, and the turns that streams of queries take. Borrow. */
struct uva_runtime *uva__adbc_pool_runtime(const struct uva_adbc_pool *pool);
struct uva_turns *uva__adbc_pool_turns(const struct uva_adbc_pool *pool);

/* How many connections there are at most. */
int32_t uva__adbc_pool_connections(const struct uva_adbc_pool *pool);

/* Whether a statement of its connections is a transaction by itself, unless the
 * user's SQL begins one. */
bool uva__adbc_pool_autocommits(const struct uva_adbc_pool *pool);

/* Whether its queries change nothing. */
bool uva__adbc_pool_is_read_only(const struct uva_adbc_pool *pool);

/* Count references; without the last one all is closed, on that thread. */
struct uva_adbc_pool *uva__adbc_pool_acquire(struct uva_adbc_pool *pool);
void uva__adbc_pool_unref(struct uva_adbc_pool *pool);

/* A query waits for a connection from now on, and no longer: `*needed_ns` is
 * since when, or 0. No effect if that was so before. Thread: any. */
void uva__adbc_pool_need(struct uva_adbc_pool *pool, uint64_t *needed_ns);
void uva__adbc_pool_unneed(struct uva_adbc_pool *pool, uint64_t *needed_ns);

/* Gives an idle connection or a new one, which another worker connects: so the
 * wait for it, which began at `needed_ns`, ends with its limit of time, and
 * when `is_cancelled` is set and uva__adbc_pool_cancel() was called. 0 or an
 * errno, with the failure. Thread: blocking worker. */
int uva__adbc_pool_take(struct uva_adbc_pool *pool,
                        const atomic_bool *is_cancelled, uint64_t needed_ns,
                        struct uva__connection **out,
                        struct uva__adbc_failure *failure);

/* The query with the connection in `*at`, or without one so far, was cancelled:
 * wakes it if it waits, and limits the time of the call that it is in. Thread:
 * any. */
void uva__adbc_pool_cancel(struct uva_adbc_pool *pool,
                           struct uva__connection *const *at);

/* Takes back the connection in `*at`, which is NULL then: for a later query if
 * `is_good`, else it is closed. Thread: blocking worker. */
void uva__adbc_pool_put(struct uva_adbc_pool *pool, struct uva__connection **at,
                        bool is_good);

#endif
