/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of connections.
 *
 * Happy path:  the first query loads the driver and opens the database -> each
 *              query takes an idle connection, or makes one -> puts it back.
 *
 * What can fail: the driver, the database: reported to the query that needs it;
 *              the next query tries again. A connection of a query that failed
 *              is closed.
 *
 * On release:  idle connections are closed by a worker, others when they are
 *              put back; the last reference closes the database.
 *
 * A query that has its turn finds an idle connection or room for a new one, or
 * waits until one was closed: connections that are being closed count, too. */
#define _GNU_SOURCE
#include "adbc/pool.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "adbc/fixed.h"
#include "adbc/pairs.h"
#include "adbc/uri.h"
#include "uvarrow/adapters.h"

enum { CONNECTIONS = 8, IDLE_MS = 60000, WAIT_MS = 30000 };

/* How far the database is. One query opens it; others wait for that. */
enum state { STATE_NEW, STATE_OPENING, STATE_OPEN };

struct uva_adbc_pool {
    struct uva_runtime *runtime; /* counts */
    struct uva_turns *turns;     /* counts: one for each connection */
    char *driver_name;           /* owns */
    char *entrypoint;            /* owns; NULL: guessed */
    char **options;              /* owns: of the database */
    char **connection_options;   /* owns */
    int32_t connections;         /* at most */
    int64_t idle_ms;
    atomic_long refs;      /* the user, streams, and the closing job */
    atomic_long holds;     /* of the memory: all `refs`, and a release */
    atomic_bool is_closed; /* released by the user */

    struct uva__database *database; /* owns; set while OPENING, or NULL */

    uv_mutex_t lock;
    uv_cond_t changed; /* a member below has */
    struct {
        enum state state;
        struct uva__connection *idle; /* owns: the last one used first */
        int32_t open;                 /* connections, until they are closed */
        bool is_connecting;           /* a call uses the database */
    } locked;
};

/* Waits until something has changed, or was cancelled. */
static void pool_wait_locked(struct uva_adbc_pool *pool)
{
    (void)uv_cond_timedwait(&pool->changed, &pool->lock,
                            (uint64_t)100 * 1000000);
}

/* ---- connections -------------------------------------------------------- */

/* The place of a connection is free again. */
static void connection_uncount(struct uva_adbc_pool *pool)
{
    uv_mutex_lock(&pool->lock);
    pool->locked.open--;
    uv_cond_broadcast(&pool->changed);
    uv_mutex_unlock(&pool->lock);
}

static void connection_close(struct uva_adbc_pool *pool,
                             struct uva__connection *c)
{
    uva__connection_close(c);
    connection_uncount(pool);
}

static void connections_close(struct uva_adbc_pool *pool,
                              struct uva__connection *list)
{
    struct uva__connection *next;

    for (; list != NULL; list = next) {
        next = list->next;
        connection_close(pool, list);
    }
}

/* Waits until no other call uses the database: ADBC does not allow two at one
 * time. False if it was cancelled. */
static bool database_enter(struct uva_adbc_pool *pool,
                           const atomic_bool *is_cancelled)
{
    bool enters;

    uv_mutex_lock(&pool->lock);
    while (pool->locked.is_connecting && !atomic_load(is_cancelled))
        pool_wait_locked(pool);
    enters = !pool->locked.is_connecting;
    pool->locked.is_connecting = true;
    uv_mutex_unlock(&pool->lock);
    return enters;
}

static void database_leave(struct uva_adbc_pool *pool)
{
    uv_mutex_lock(&pool->lock);
    pool->locked.is_connecting = false;
    uv_cond_broadcast(&pool->changed);
    uv_mutex_unlock(&pool->lock);
}

static int connection_init(struct uva_adbc_pool *pool,
                           struct uva__connection *c,
                           const atomic_bool *is_cancelled,
                           struct uva__adbc_failure *failure)
{
    int code;

    if (!database_enter(pool, is_cancelled))
        return uva__adbc_failure_set(failure, ECANCELED, "cancelled");
    code = uva__connection_init(c, pool->database, failure);
    database_leave(pool);
    return code;
}

/* Makes a connection that was counted before. */
static int connection_new(struct uva_adbc_pool *pool,
                          const atomic_bool *is_cancelled,
                          struct uva__connection **out,
                          struct uva__adbc_failure *failure)
{
    struct uva__connection *c = NULL;
    int code = uva__connection_new(pool->database, pool->connection_options, &c,
                                   failure);

    if (code != 0) {
        connection_uncount(pool);
        return code;
    }
    code = connection_init(pool, c, is_cancelled, failure);
    if (code != 0)
        connection_close(pool, c);
    else
        *out = c;
    return code;
}

/* ---- the database ------------------------------------------------------- */

/* Waits until no other query opens the database. Returns whether this one has
 * to. */
static bool database_must_open(struct uva_adbc_pool *pool,
                               const atomic_bool *is_cancelled)
{
    bool must;

    uv_mutex_lock(&pool->lock);
    while (pool->locked.state == STATE_OPENING && !atomic_load(is_cancelled))
        pool_wait_locked(pool);
    must = pool->locked.state == STATE_NEW;
    if (must)
        pool->locked.state = STATE_OPENING;
    uv_mutex_unlock(&pool->lock);
    return must;
}

static int database_ensure(struct uva_adbc_pool *pool,
                           const atomic_bool *is_cancelled,
                           struct uva__adbc_failure *failure)
{
    int code;

    if (!database_must_open(pool, is_cancelled))
        return 0;
    code = uva__database_open(pool->driver_name, pool->entrypoint,
                              pool->options, &pool->database, failure);
    uv_mutex_lock(&pool->lock);
    pool->locked.state = code == 0 ? STATE_OPEN : STATE_NEW;
    uv_cond_broadcast(&pool->changed);
    uv_mutex_unlock(&pool->lock);
    return code;
}

/* ---- taking and putting ------------------------------------------------- */

/* Takes out of the list those that are idle for too long: the list is sorted by
 * that. */
static struct uva__connection *idle_expired_locked(struct uva_adbc_pool *pool)
{
    const uint64_t now = uv_hrtime();
    struct uva__connection **at = &pool->locked.idle, *expired;

    while (*at != NULL &&
           now - (*at)->idle_ns < (uint64_t)pool->idle_ms * 1000000)
        at = &(*at)->next;
    expired = *at;
    *at = NULL;
    return expired;
}

static void idle_close_expired(struct uva_adbc_pool *pool)
{
    struct uva__connection *expired;

    uv_mutex_lock(&pool->lock);
    expired = idle_expired_locked(pool);
    uv_mutex_unlock(&pool->lock);
    connections_close(pool, expired);
}

/* Takes an idle connection, or counts a new one, for which it gives NULL. False
 * if it was cancelled. */
static bool connection_reserve(struct uva_adbc_pool *pool,
                               const atomic_bool *is_cancelled,
                               struct uva__connection **out)
{
    bool goes_on;

    uv_mutex_lock(&pool->lock);
    while (pool->locked.idle == NULL &&
           pool->locked.open == pool->connections && !atomic_load(is_cancelled))
        pool_wait_locked(pool);
    goes_on = !atomic_load(is_cancelled);
    *out = goes_on ? pool->locked.idle : NULL;
    if (*out != NULL)
        pool->locked.idle = (*out)->next;
    else if (goes_on)
        pool->locked.open++;
    uv_mutex_unlock(&pool->lock);
    return goes_on;
}

int uva__adbc_pool_take(struct uva_adbc_pool *pool,
                        const atomic_bool *is_cancelled,
                        struct uva__connection **out,
                        struct uva__adbc_failure *failure)
{
    struct uva__connection *c;
    int code = database_ensure(pool, is_cancelled, failure);

    if (code != 0)
        return code;
    idle_close_expired(pool);
    if (!connection_reserve(pool, is_cancelled, &c))
        return uva__adbc_failure_set(failure, ECANCELED, "cancelled");
    if (c == NULL)
        return connection_new(pool, is_cancelled, out, failure);
    c->next = NULL;
    *out = c;
    return 0;
}

void uva__adbc_pool_put(struct uva_adbc_pool *pool, struct uva__connection *c,
                        bool is_good)
{
    struct uva__connection *leaving;

    uv_mutex_lock(&pool->lock);
    leaving = idle_expired_locked(pool);
    if (is_good && !atomic_load(&pool->is_closed)) {
        c->idle_ns = uv_hrtime();
        c->next = pool->locked.idle;
        pool->locked.idle = c;
        uv_cond_broadcast(&pool->changed);
    } else {
        c->next = leaving;
        leaving = c;
    }
    uv_mutex_unlock(&pool->lock);
    connections_close(pool, leaving);
}

/* ---- life --------------------------------------------------------------- */

struct uva_runtime *uva__adbc_pool_runtime(const struct uva_adbc_pool *pool)
{
    return pool->runtime;
}

struct uva_turns *uva__adbc_pool_turns(const struct uva_adbc_pool *pool)
{
    return pool->turns;
}

int32_t uva__adbc_pool_connections(const struct uva_adbc_pool *pool)
{
    return pool->connections;
}

bool uva__adbc_pool_autocommits(const struct uva_adbc_pool *pool)
{
    char **value = uva__pairs_find(pool->connection_options,
                                   ADBC_CONNECTION_OPTION_AUTOCOMMIT);

    return value == NULL || strcmp(*value, ADBC_OPTION_VALUE_DISABLED) != 0;
}

static void idle_close(struct uva_adbc_pool *pool)
{
    struct uva__connection *idle;

    uv_mutex_lock(&pool->lock);
    idle = pool->locked.idle;
    pool->locked.idle = NULL;
    uv_mutex_unlock(&pool->lock);
    connections_close(pool, idle);
}

/* Frees the memory, without calls of the driver. */
static void pool_unhold(struct uva_adbc_pool *pool)
{
    if (atomic_fetch_sub(&pool->holds, 1) > 1)
        return;
    uv_cond_destroy(&pool->changed);
    uv_mutex_destroy(&pool->lock);
    uva_turns_release(pool->turns);
    uva_runtime_release(pool->runtime);
    free(pool->driver_name);
    free(pool->entrypoint);
    free(pool->options);
    free(pool->connection_options);
    free(pool);
}

struct uva_adbc_pool *uva__adbc_pool_acquire(struct uva_adbc_pool *pool)
{
    atomic_fetch_add(&pool->refs, 1);
    return pool;
}

void uva__adbc_pool_unref(struct uva_adbc_pool *pool)
{
    if (atomic_fetch_sub(&pool->refs, 1) > 1)
        return;
    idle_close(pool);
    if (pool->database != NULL)
        uva__database_close(pool->database);
    pool_unhold(pool);
}

/* The end of the user's reference, on a worker. */
static void pool_on_worker(void *ctx)
{
    struct uva_adbc_pool *pool = ctx;

    idle_close(pool);
    uva__adbc_pool_unref(pool);
}

/* A stream that is not started is released by a worker. */
void uva_adbc_pool_release(struct uva_adbc_pool *pool)
{
    struct ArrowArrayStream nothing;

    if (pool == NULL)
        return;
    atomic_fetch_add(&pool->holds, 1); /* it keeps the runtime's core */
    atomic_store(&pool->is_closed, true);
    uva__fixed_nothing(&nothing);
    uva_stream_release(uva_stream_from_blocking_cpu(
        pool->runtime, &nothing,
        &(struct uva_blocking_source){.free_ctx = pool_on_worker,
                                      .ctx = pool}));
    pool_unhold(pool);
}

/* ---- making one --------------------------------------------------------- */

static const char *pool_fault(const struct uva_adbc_pool_options *o)
{
    for (size_t i = 0; i < 4; i++)
        if (o->reserved[i] != NULL)
            return "reserved members must be NULL; clear the struct before "
                   "filling it in";
    if (o->connections < 0 || o->idle_ms < 0 || o->wait_ms < 0)
        return "connections, idle_ms and wait_ms must not be negative";
    if (!uva__pairs_are_whole(o->options) ||
        !uva__pairs_are_whole(o->connection_options))
        return "options, connection_options: a key has no value";
    return NULL;
}

/* The driver that is named, or that of the scheme of the URI. NULL without
 * memory; "" if neither is there. */
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

static int pool_fill(struct uva_adbc_pool *pool, struct uva_runtime *runtime,
                     const struct uva_adbc_pool_options *o,
                     struct uva_error *error)
{
    pool->options = uva__pairs_copy(o->options);
    pool->connection_options = uva__pairs_copy(o->connection_options);
    if (pool->options != NULL)
        pool->driver_name = pool_driver(pool, o);
    if (o->entrypoint != NULL)
        pool->entrypoint =
            uva__pairs_text(o->entrypoint, strlen(o->entrypoint));
    if (pool->driver_name == NULL || pool->connection_options == NULL ||
        (o->entrypoint != NULL && pool->entrypoint == NULL))
        return uva_error_set(error, ENOMEM, "no memory for a pool");
    if (pool->driver_name[0] == '\0')
        return uva_error_set(error, EINVAL,
                             "uva_adbc_pool_options: there is neither a driver "
                             "nor an option \"uri\" whose scheme names one");
    pool->idle_ms = o->idle_ms > 0 ? o->idle_ms : IDLE_MS;
    pool->connections = o->connections > 0 ? o->connections : CONNECTIONS;
    return uva_turns_new(runtime, pool->connections,
                         o->wait_ms > 0 ? o->wait_ms : WAIT_MS, &pool->turns,
                         error);
}

static int pool_init_lock(struct uva_adbc_pool *pool)
{
    int code = uv_mutex_init(&pool->lock);

    if (code != 0)
        return -code;
    code = uv_cond_init(&pool->changed);
    if (code != 0)
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
    pool->runtime = uva_runtime_acquire(runtime);
    atomic_init(&pool->refs, 1);
    atomic_init(&pool->holds, 1);
    atomic_init(&pool->is_closed, false);
    code = pool_fill(pool, runtime, o, error);
    if (code != 0)
        uva__adbc_pool_unref(pool);
    else
        *out = pool;
    return code;
}
