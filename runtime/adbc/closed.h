/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pool, for the Python package, whose tasks wait for it. */
#ifndef UVA_ADBC_CLOSED_H
#define UVA_ADBC_CLOSED_H

struct uva_adbc_pool;

/* Has `call` called once after the pool was released and its connections and
 * databases are closed, on any thread. Before the release, and once. `pool` is
 * not a session. */
void uva__adbc_pool_on_closed(struct uva_adbc_pool *pool,
                              void (*call)(void *ctx), void *ctx);

#endif
