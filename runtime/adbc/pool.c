/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of connections.
 *
 * Happy path:  a query takes an idle connection, which another worker asks
 *              whether it is alive if it has rested, or has one made: that
 *              worker opens a database for it, unless there is one, and
 *              connects -> the query puts it back -> the keeper has it closed
 *              when it was idle for too long, or is too old.
 *
 * Failures:    the driver, the database: reported to the query that needs it;
 *              the next query tries again. A connection of a query that failed
 *              is closed. A call that does not return within its limit is
 *              written off: adbc/places.h.
 *
 * On cancel:   a query stops to wait at once. Its connect goes on, and is
 *              closed when it has ended.
 *
 * On release:  idle connections are closed by a worker, others when they are
 *              put back; the last reference closes the databases.
 *
 * A query that has its permit finds an idle connection or room for a new one,
 * or waits until one was closed: connections that are being closed count, too.
 */
#define _GNU_SOURCE
#include "adbc/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/closed.h"
#include "adbc/execution.h"
#include "adbc/pairs.h"
#include "adbc/read_only.h"
#include "adbc/uri.h"
#include "uvarrow/sources.h"

enum {
    CONNECTIONS = 8,
    IDLE_MS = 60000,
    MAX_AGE_MS = 3600000,
    CONNECT_MS = 10000,
    WAIT_MS = 30000,
    BATCH_BYTES = 256 * 1024
};

#define WAIT_MAX_MS ((int64_t)1 << 40) /* 34 years: no time overflows */

/* So many, and as many that are stuck, can be added up. */
#define CONNECTIONS_MAX (INT32_MAX / 2)

/* ---- losses -------------------------------------------------------------- */

/* New connections open the database anew. */
static void databases_renew(struct uva_adbc_pool *pool, const char *type)
{
    uv_mutex_lock(&pool->lock);
    if (uva__pool_databases_retire_locked(pool, type))
        uva__pool_idle_close_locked(pool);
    uv_mutex_unlock(&pool->lock);
}

static void pool_lose(struct uva_adbc_pool *pool, enum uva__loss loss)
{
    if (loss == UVA__LOSS_DATABASE)
        databases_renew(pool, NULL);
    else
        uva__pool_idle_close(pool);
}

static void pool_know(struct uva_adbc_pool *pool, const char *type)
{
    databases_renew(pool, type);
}

/* ---- life --------------------------------------------------------------- */

static struct uva_runtime *pool_runtime(const struct uva_adbc_pool *pool)
{
    return pool->runtime;
}

static struct uva_permits *pool_permits(const struct uva_adbc_pool *pool)
{
    return pool->permits;
}

static int32_t pool_connections(const struct uva_adbc_pool *pool)
{
    return pool->locked.places.connections;
}

static int64_t pool_batch_bytes(const struct uva_adbc_pool *pool)
{
    return pool->batch_bytes;
}

static int64_t pool_wait_ms(const struct uva_adbc_pool *pool)
{
    return pool->wait_ms;
}

static bool pool_is_read_only(const struct uva_adbc_pool *pool)
{
    return pool->is_read_only;
}

static bool pool_is_forked(const struct uva_adbc_pool *pool)
{
    return pool->process != uv_os_getpid();
}

/* The next query has another connection, or another query comes between. */
static const char *pool_refusal(const struct uva_adbc_pool *pool,
                                enum uva__sql sql)
{
    (void)sql;
    return pool->keeps_session
               ? NULL
               : "a transaction needs a session, as each query may have "
                 "another connection: see uva_adbc_pool_session()";
}

/* Frees the memory, without calls of the driver. */
static void pool_unhold(struct uva_adbc_pool *pool)
{
    if (atomic_fetch_sub(&pool->holds, 1) > 1)
        return;
    uv_cond_destroy(&pool->wakes);
    uv_cond_destroy(&pool->changed);
    uv_mutex_destroy(&pool->lock);
    uva_permits_release(pool->permits);
    uva_runtime_release(pool->runtime);
    free(pool->driver_name);
    free(pool->entrypoint);
    free(pool->options);
    free(pool->connection_options);
    free(pool);
}

static void pool_acquire(struct uva_adbc_pool *pool)
{
    atomic_fetch_add(&pool->refs, 1);
}

static void pool_unref(struct uva_adbc_pool *pool)
{
    struct uva__database *d, *next;

    if (atomic_fetch_sub(&pool->refs, 1) > 1)
        return;
    for (d = pool->locked.databases; d != NULL; d = next) {
        next = d->next;
        uva__pool_database_drop(d);
    }
    if (pool->on_closed != NULL)
        pool->on_closed(pool->closed_ctx);
    pool_unhold(pool);
}

void uva__adbc_pool_on_closed(struct uva_adbc_pool *pool,
                              void (*call)(void *ctx), void *ctx)
{
    pool->on_closed = call;
    pool->closed_ctx = ctx;
}

static void pool_unref_on_worker(void *ctx)
{
    pool_unref(ctx);
}

static void pool_release(struct uva_adbc_pool *pool)
{
    atomic_fetch_add(&pool->holds, 1); /* it keeps the runtime's core */
    uva__pool_keeper_stop(pool);
    uva__pool_idle_close(pool);
    uva__worker_call(pool->runtime, pool_unref_on_worker, pool);
    pool_unhold(pool);
}

/* A snapshot is read under the lock. */
static void pool_get_stats(const struct uva_adbc_pool *pool,
                           struct uva_adbc_pool_stats *out)
{
    struct uva_adbc_pool *own = (struct uva_adbc_pool *)(uintptr_t)pool;
    const struct uva__places *p = &own->locked.places;

    uv_mutex_lock(&own->lock);
    out->connections_used = p->counts[UVA__CONNECTION_CONNECTING] +
                            p->counts[UVA__CONNECTION_USED] +
                            p->counts[UVA__CONNECTION_CANCELLED];
    out->connections_idle = p->counts[UVA__CONNECTION_IDLE];
    out->connections_stuck = uva__places_written_off(p);
    out->queries_waiting = own->locked.waiting;
    out->connections_max = p->connections + p->stuck_connections;
    out->queries = own->locked.queries;
    uv_mutex_unlock(&own->lock);
}

static const struct uva__handle_ops pool_ops = {
    .runtime = pool_runtime,
    .permits = pool_permits,
    .connections = pool_connections,
    .wait_ms = pool_wait_ms,
    .batch_bytes = pool_batch_bytes,
    .autocommits = uva__pool_autocommits,
    .is_read_only = pool_is_read_only,
    .refusal = pool_refusal,
    .is_forked = pool_is_forked,
    .acquire = pool_acquire,
    .unref = pool_unref,
    .release = pool_release,
    .get_stats = pool_get_stats,
    .need = uva__pool_need,
    .unneed = uva__pool_unneed,
    .take = uva__pool_take,
    .cancel = uva__pool_cancel,
    .lose = pool_lose,
    .know = pool_know,
    .must_reset = uva__pool_must_reset,
    .put = uva__pool_put};

/* ---- making one --------------------------------------------------------- */

static const char *pool_fault(const struct uva_adbc_pool_options *o)
{
    for (size_t i = 0; i < 4; i++)
        if (o->reserved[i] != NULL)
            return "reserved members must be NULL; clear the struct before "
                   "filling it in";
    if (o->connections < 0 || o->stuck_connections < 0 || o->idle_ms < 0 ||
        o->max_age_ms < 0 || o->connect_ms < 0 || o->lock_ms < 0 ||
        o->wait_ms < 0 || o->batch_bytes < 0)
        return "connections, stuck_connections, idle_ms, max_age_ms, "
               "connect_ms, lock_ms, wait_ms and batch_bytes must not be "
               "negative";
    if (!uva__pairs_are_texts(o->options) ||
        !uva__pairs_are_texts(o->connection_options))
        return "options, connection_options: a key or value has a NUL";
    return NULL;
}

/* The named driver, or the driver of the URI's scheme. NULL without memory; ""
 * without both. */
static char *pool_driver(struct uva_adbc_pool *pool,
                         const struct uva_adbc_pool_options *o)
{
    char **uri = uva__pairs_find(pool->options, "uri");
    const int scheme = uri != NULL ? uva__adbc_uri_scheme(*uri) : 0;
    char *driver;

    if (o->driver != NULL)
        return uva__pairs_text(o->driver, strlen(o->driver));
    if (scheme == 0)
        return uva__pairs_text("", 0);
    driver = uva__adbc_uri_driver(*uri, scheme);
    *uri = uva__adbc_uri_rest(*uri, scheme);
    return driver;
}

static int64_t limit_of(int64_t given, int64_t otherwise)
{
    return given > 0 ? given : otherwise;
}

static int32_t limit_connections(int32_t given, int32_t otherwise)
{
    const int32_t limit = given > 0 ? given : otherwise;

    return limit < CONNECTIONS_MAX ? limit : CONNECTIONS_MAX;
}

static void pool_limit(struct uva_adbc_pool *pool,
                       const struct uva_adbc_pool_options *o)
{
    struct uva__places *p = &pool->locked.places;

    p->connections = limit_connections(o->connections, CONNECTIONS);
    p->stuck_connections =
        limit_connections(o->stuck_connections, p->connections);
    p->idle_ns = (uint64_t)limit_of(o->idle_ms, IDLE_MS) * MS;
    p->max_age_ns = (uint64_t)limit_of(o->max_age_ms, MAX_AGE_MS) * MS;
    pool->locked.permits = p->connections;
    pool->connect_ms = limit_of(o->connect_ms, CONNECT_MS);
    pool->lock_ms = o->lock_ms;
    pool->batch_bytes = limit_of(o->batch_bytes, BATCH_BYTES);
    pool->wait_ms = limit_of(o->wait_ms, WAIT_MS);
    if (pool->wait_ms > WAIT_MAX_MS)
        pool->wait_ms = WAIT_MAX_MS;
}

static int pool_make_permits(struct uva_adbc_pool *pool,
                             struct uva_error *error)
{
    const int32_t connections = pool->locked.places.connections;
    const int code = uva_permits_new(pool->runtime, connections, pool->wait_ms,
                                     &pool->permits, error);
    char text[80];

    if (code != 0)
        return code;
    (void)snprintf(text, sizeof(text), FULL, (int)connections);
    uva_permits_explain(pool->permits, text);
    return 0;
}

static int pool_fill(struct uva_adbc_pool *pool,
                     const struct uva_adbc_pool_options *o,
                     struct uva_error *error)
{
    pool->options = uva__pairs_read(o->options);
    pool->connection_options = uva__pairs_read(o->connection_options);
    if (pool->options != NULL)
        pool->driver_name = pool_driver(pool, o);
    if (o->entrypoint != NULL)
        pool->entrypoint =
            uva__pairs_text(o->entrypoint, strlen(o->entrypoint));
    if (pool->driver_name == NULL || pool->connection_options == NULL ||
        (o->entrypoint != NULL && pool->entrypoint == NULL))
        return uva_error_set(error, ENOMEM, "no memory for a pool");
    if (uva__read_only_take(pool->connection_options, &pool->is_read_only) != 0)
        return uva_error_set(error, EINVAL,
                             "uva_adbc_pool_options: the "
                             "option " ADBC_CONNECTION_OPTION_READ_ONLY
                             " is given once, as true or false");
    if (pool->driver_name[0] == '\0')
        return uva_error_set(error, EINVAL,
                             "uva_adbc_pool_options: there is neither a driver "
                             "nor an option \"uri\" whose scheme names one");
    pool_limit(pool, o);
    pool->keeps_session = o->keeps_session;
    pool->locked.known = uva__known_named(pool->driver_name);
    return pool_make_permits(pool, error);
}

static int pool_init_lock(struct uva_adbc_pool *pool)
{
    int code = uv_mutex_init(&pool->lock);

    if (code != 0)
        return -code;
    code = uv_cond_init(&pool->changed);
    if (code != 0)
        goto fail_changed;
    code = uv_cond_init(&pool->wakes);
    if (code != 0)
        goto fail_wakes;
    return 0;

fail_wakes:
    uv_cond_destroy(&pool->changed);
fail_changed:
    uv_mutex_destroy(&pool->lock);
    return -code;
}

int uva_adbc_pool_new(struct uva_runtime *runtime,
                      const struct uva_adbc_pool_options *options,
                      struct uva_adbc_pool **out, struct uva_error *error)
{
    static const struct uva_adbc_pool_options none;
    const struct uva_adbc_pool_options *o = options != NULL ? options : &none;
    const char *fault = pool_fault(o);
    struct uva_adbc_pool *pool;
    int code;

    if (runtime == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "pool: the %s is NULL",
                             runtime == NULL ? "runtime" : "result");
    if (fault != NULL)
        return uva_error_set(error, EINVAL, "uva_adbc_pool_options: %s", fault);
    pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a pool");
    code = pool_init_lock(pool);
    if (code != 0) {
        free(pool);
        return uva_error_set(error, code, "no lock for a pool");
    }
    pool->ops = &pool_ops;
    pool->process = uv_os_getpid();
    pool->runtime = uva_runtime_acquire(runtime);
    atomic_init(&pool->refs, 1);
    atomic_init(&pool->holds, 1);
    atomic_init(&pool->is_closed, false);
    code = pool_fill(pool, o, error);
    if (code != 0)
        pool_unref(pool);
    else
        *out = pool;
    return code;
}
