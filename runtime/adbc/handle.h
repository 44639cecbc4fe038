/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a struct uva_adbc_pool for queries: it is a pool
 * (adbc/pool.c) or a session of one (adbc/session.c), and begins with a pointer
 * to these. */
#ifndef UVA_ADBC_HANDLE_H
#define UVA_ADBC_HANDLE_H

#include <stdatomic.h>

#include "adbc/connection.h"
#include "adbc/sql.h"
#include "uvarrow/adbc.h"

/* How a connection was used. */
enum uva__use {
    UVA__USE_COMPLETE, /* the result was read to its end */
    UVA__USE_FAILED,   /* the driver has reported why */
    UVA__USE_CANCELLED /* or not read to its end */
};

/* The use of a connection. */
struct uva__used {
    enum uva__sql sql; /* of the executed text; also for a commit and a
                          roll-back of the driver */
    enum uva__use how;
    const char *text; /* borrows: that text; "": several; NULL: no text that can
                         leave state in a session */
};

struct uva__handle_ops {
    /* the runtime, and the permits that streams of queries take: borrow.
     * Thread: any, where it is not stated */
    struct uva_runtime *(*runtime)(const struct uva_adbc_pool *pool);
    struct uva_permits *(*permits)(const struct uva_adbc_pool *pool);
    /* how many connections there are at most */
    int32_t (*connections)(const struct uva_adbc_pool *pool);
    /* the longest wait of a query. Of a pool alone */
    int64_t (*wait_ms)(const struct uva_adbc_pool *pool);
    /* about how large a batch of a query should be that has no size itself */
    int64_t (*batch_bytes)(const struct uva_adbc_pool *pool);
    /* whether a query is a transaction by itself. Thread: a worker */
    bool (*autocommits)(const struct uva_adbc_pool *pool);
    /* whether its queries are read-only */
    bool (*is_read_only)(const struct uva_adbc_pool *pool);
    /* why SQL of that kind, which is not OTHER, must not be executed; NULL: it
     * may be */
    const char *(*refusal)(const struct uva_adbc_pool *pool, enum uva__sql sql);
    /* whether this process is a fork of its maker, where locks may be held for
     * good, and connections are the other's */
    bool (*is_forked)(const struct uva_adbc_pool *pool);
    /* count references */
    void (*acquire)(struct uva_adbc_pool *pool);
    void (*unref)(struct uva_adbc_pool *pool);
    /* the user's reference is dropped */
    void (*release)(struct uva_adbc_pool *pool);
    void (*get_stats)(const struct uva_adbc_pool *pool,
                      struct uva_adbc_pool_stats *out);
    /* a query waits for a connection from now on, and no longer: `*needed_ns`
     * is since when, or 0. No effect if that was so before */
    void (*need)(struct uva_adbc_pool *pool, uint64_t *needed_ns);
    void (*unneed)(struct uva_adbc_pool *pool, uint64_t *needed_ns);
    /* gives a connection for SQL of that kind. The wait for it, which began at
     * `needed_ns`, ends with its limit of time, and when `is_cancelled` is set
     * and cancel was called. 0 or an errno, with the failure. Thread: a worker
     */
    int (*take)(struct uva_adbc_pool *pool, enum uva__sql sql,
                const atomic_bool *is_cancelled, uint64_t needed_ns,
                struct uva__connection **out,
                struct uva__adbc_failure *failure);
    /* the query with the connection in `*at`, or without one so far, was
     * cancelled: wakes it if it waits, and limits the time of the call that it
     * is in */
    void (*cancel)(struct uva_adbc_pool *pool,
                   struct uva__connection *const *at);
    /* a failure states that connections, or the database, are lost */
    void (*lose)(struct uva_adbc_pool *pool, enum uva__loss loss);
    /* a result has a type that was made after the open of its database: the
     * next queries get to know it */
    void (*know)(struct uva_adbc_pool *pool, const char *type);
    /* whether a connection that was used to the end for `text` has to be reset
     * when it is put back. Thread: a worker */
    bool (*must_reset)(const struct uva_adbc_pool *pool,
                       const struct uva__connection *connection,
                       const char *text);
    /* takes back the connection in `*at`, which is NULL then, and resets it.
     * Thread: a worker */
    void (*put)(struct uva_adbc_pool *pool, struct uva__connection **at,
                const struct uva__used *used);
    bool is_session;
};

static inline const struct uva__handle_ops *
uva__handle(const struct uva_adbc_pool *pool)
{
    return *(const struct uva__handle_ops *const *)(const void *)pool;
}

#endif
