/* SPDX-License-Identifier: Apache-2.0 */
/* How a query gets a connection of a pool, and gives it back.
 *
 * Happy path:  an idle connection, which another worker asks whether it is
 *              alive if it has rested, or a place and a connect by that worker
 *              -> used -> cleaned -> idle.
 *
 * Failures:    no place comes, or the connect does not return, within the time
 *              limit: the query fails, and the connect is written off. No other
 *              worker can be had.
 *
 * On cancel:   the wait ends at once; the connect is written off. */
#define _GNU_SOURCE
#include "adbc/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/execution.h"
#include "adbc/pairs.h"
#include "adbc/read_only.h"
#include "adbc/reset.h"

/* ---- connecting, on a separate worker ------------------------------------ */

/* The calls of the driver. */
static int connect_call(struct uva_adbc_pool *pool, struct uva__connection *c)
{
    struct uva__database *d = c->database;
    int code;

    if (d->born_ns == 0) {
        code = uva__database_open(d, pool->driver_name, pool->entrypoint,
                                  pool->options, pool->connect_ms, &c->failure);
        if (code != 0)
            return code;
        d->born_ns = uv_hrtime() | 1;
    }
    code = uva__connection_open(c, pool->connection_options, &c->failure);
    if (code == 0 && pool->lock_ms > 0) {
        code = uva__connection_wait(c, pool->lock_ms, &c->failure);
        if (code != 0)
            uva__connection_close(c);
    }
    return code;
}

static void connect_make(struct uva_adbc_pool *pool, struct uva__connection *c)
{
    int code;

    uv_mutex_lock(&pool->lock);
    code = uva__pool_database_enter_locked(pool, c);
    uv_mutex_unlock(&pool->lock);
    if (code == 0)
        (void)connect_call(pool, c);
    else
        (void)uva__adbc_failure_set(&c->failure, code,
                                    "no memory for a database");
    uv_mutex_lock(&pool->lock);
    if (c->database != NULL)
        uva__pool_database_leave_locked(c->database);
    if (c->known != NULL && c->known->driver != NULL)
        pool->locked.known = c->known;
    c->born_ns = uv_hrtime();
    uv_cond_broadcast(&pool->changed);
    uv_mutex_unlock(&pool->lock);
}

static void connect_on_worker(void *ctx)
{
    struct uva__connection *c = ctx;
    struct uva_adbc_pool *pool = c->pool;
    bool is_left;

    if (c->is_asked)
        c->is_dead = !uva__connection_is_alive(c);
    else
        connect_make(pool, c);
    uv_mutex_lock(&pool->lock);
    is_left = c->state == UVA__CONNECTION_LEFT;
    if (!is_left)
        uva__pool_move_locked(c, UVA__CONNECTION_USED);
    uv_mutex_unlock(&pool->lock);
    if (is_left)
        uva__pool_drop(pool, c);
    pool->ops->unref(pool);
}

/* Without a thread a connect fails: here it would have no time limit, and no
 * cancel would end it. A connection that is open is used without being asked.
 */
static int connect_begin_locked(struct uva__connection *c,
                                struct uva__adbc_failure *failure)
{
    struct uva_adbc_pool *pool = c->pool;
    int code;

    pool->ops->acquire(pool);
    uv_mutex_unlock(&pool->lock);
    code = uva_runtime_run(pool->runtime, UVA_LANE_BLOCKING, connect_on_worker,
                           NULL, c);
    if (code != 0)
        pool->ops->unref(pool); /* the query's remains */
    uv_mutex_lock(&pool->lock);
    if (code == 0)
        return 0;
    uva__pool_move_locked(c, UVA__CONNECTION_USED);
    return c->is_asked
               ? 0
               : uva__adbc_failure_set(failure, code, "no thread can connect");
}

/* ---- taking and putting ------------------------------------------------- */

/* The wait of a query. */
struct wait {
    const atomic_bool *is_cancelled;   /* borrows */
    uint64_t until_ns;                 /* it waits no longer */
    struct uva__adbc_failure *failure; /* borrows */
};

static bool wait_is_over(const struct wait *wait)
{
    return atomic_load(wait->is_cancelled) || uv_hrtime() >= wait->until_ns;
}

/* No place has come. */
static int wait_fail_locked(const struct uva_adbc_pool *pool,
                            const struct wait *wait)
{
    const struct uva__places *places = &pool->locked.places;
    char others[80] = "";

    if (atomic_load(wait->is_cancelled))
        return uva__adbc_failure_set(wait->failure, ECANCELED, "cancelled");
    if (uva__places_written_off(places) > 0)
        (void)snprintf(others, sizeof(others),
                       ", and %d are in a call that does not return",
                       (int)uva__places_written_off(places));
    return uva__adbc_failure_set(
        wait->failure, ETIMEDOUT, FULL "%s, and none was free within %lld ms",
        (int)places->connections, others, (long long)pool->wait_ms);
}

/* Gives a new one, in its place. NULL without memory. */
static struct uva__connection *connection_new_locked(struct uva_adbc_pool *pool)
{
    struct uva__connection *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    c->pool = pool;
    c->state = UVA__CONNECTION_CONNECTING;
    uva__places_add(&pool->locked.places, c);
    return c;
}

/* A connection that was idle for so long is asked whether it is alive, if its
 * driver can be. */
#define RESTED_NS (100 * MS)

static void idle_take_locked(struct uva__connection *c)
{
    c->is_asked = uva__known_has(c->known, UVA__KNOWN_ANSWERS) &&
                  uv_hrtime() - c->since_ns >= RESTED_NS;
    uva__places_move(&c->pool->locked.places, c,
                     c->is_asked ? UVA__CONNECTION_CONNECTING
                                 : UVA__CONNECTION_USED);
}

/* Gives an idle connection, or a connection that is to be connected or asked.
 */
static int place_take_locked(struct uva_adbc_pool *pool,
                             const struct wait *wait,
                             struct uva__connection **out)
{
    struct uva__places *places = &pool->locked.places;
    struct uva__connection **idle = &places->of[UVA__CONNECTION_IDLE];

    while (*idle == NULL && !uva__places_have_room(places) &&
           !wait_is_over(wait))
        uva__pool_wait_locked(pool, wait->until_ns);
    if (atomic_load(wait->is_cancelled) ||
        (*idle == NULL && !uva__places_have_room(places)))
        return wait_fail_locked(pool, wait);
    if (*idle != NULL) {
        *out = *idle;
        idle_take_locked(*out);
        return 0;
    }
    *out = connection_new_locked(pool);
    return *out != NULL ? 0
                        : uva__adbc_failure_set(wait->failure, ENOMEM,
                                                "no memory for a connection");
}

/* Writes the connect off: it is closed when it returns. */
static int connect_leave_locked(struct uva__connection *c,
                                const struct wait *wait)
{
    const uint64_t since_ns = c->since_ns; /* until it is moved */

    if (c->database != NULL && !c->is_asked)
        uva__pool_database_retire_locked(c->database);
    uva__pool_move_locked(c, UVA__CONNECTION_LEFT);
    if (atomic_load(wait->is_cancelled))
        return uva__adbc_failure_set(wait->failure, ECANCELED, "cancelled");
    return uva__adbc_failure_set(
        wait->failure, ETIMEDOUT,
        "cannot connect: the database has not answered within %lld ms",
        (long long)((wait->until_ns > since_ns ? wait->until_ns - since_ns
                                               : 0) /
                    MS));
}

/* Waits until it is connected. A failure is in the connection, which is the
 * query's in any case but that it was written off: then `*c` is NULL. */
static int connect_await_locked(struct uva_adbc_pool *pool,
                                struct uva__connection **c,
                                const struct wait *wait)
{
    const uint64_t limit_ns = (*c)->since_ns + (uint64_t)pool->connect_ms * MS;
    const struct wait own = {
        wait->is_cancelled,
        limit_ns < wait->until_ns ? limit_ns : wait->until_ns, wait->failure};
    int code;

    while ((*c)->state == UVA__CONNECTION_CONNECTING && !wait_is_over(&own))
        uva__pool_wait_locked(pool, own.until_ns);
    if ((*c)->state == UVA__CONNECTION_CONNECTING) {
        code = connect_leave_locked(*c, &own);
        *c = NULL;
        return code;
    }
    code = (*c)->failure.error.code;
    if (code != 0) {
        uva__adbc_failure_fini(wait->failure);
        *wait->failure = (*c)->failure;
        (*c)->failure = (struct uva__adbc_failure){0};
    }
    return code;
}

void uva__pool_need(struct uva_adbc_pool *pool, uint64_t *needed_ns)
{
    if (*needed_ns != 0)
        return;
    *needed_ns = uv_hrtime() | 1; /* not 0 */
    uv_mutex_lock(&pool->lock);
    pool->locked.waiting++;
    uv_mutex_unlock(&pool->lock);
}

void uva__pool_unneed(struct uva_adbc_pool *pool, uint64_t *needed_ns)
{
    if (*needed_ns == 0)
        return;
    *needed_ns = 0;
    uv_mutex_lock(&pool->lock);
    pool->locked.waiting--;
    uv_mutex_unlock(&pool->lock);
}

static int connection_take(struct uva_adbc_pool *pool, const struct wait *wait,
                           struct uva__connection **out)
{
    struct uva__connection *c = NULL;
    int code;

    uv_mutex_lock(&pool->lock);
    code = place_take_locked(pool, wait, &c);
    if (code == 0 && c->state == UVA__CONNECTION_CONNECTING) {
        code = connect_begin_locked(c, wait->failure);
        if (code == 0)
            code = connect_await_locked(pool, &c, wait);
    }
    pool->locked.queries += code == 0;
    if (code == 0) {
        *out = c;
        c = NULL;
    }
    uv_mutex_unlock(&pool->lock);
    if (c != NULL)
        uva__pool_drop(pool, c);
    else if (code != 0)
        uva__pool_permits_follow(pool);
    return code;
}

void uva__pool_cancel(struct uva_adbc_pool *pool,
                      struct uva__connection *const *at)
{
    uv_mutex_lock(&pool->lock);
    if (*at != NULL && (*at)->state == UVA__CONNECTION_USED) {
        (void)uva__pool_keeper_ensure_locked(pool);
        uva__pool_move_locked(*at, UVA__CONNECTION_CANCELLED);
    }
    uv_cond_broadcast(&pool->changed);
    uv_mutex_unlock(&pool->lock);
}

/* The query has ended. */
static struct uva__connection *connection_end(struct uva_adbc_pool *pool,
                                              struct uva__connection **at)
{
    struct uva__connection *c;

    uv_mutex_lock(&pool->lock);
    c = *at;
    *at = NULL;
    (void)uva__pool_keeper_ensure_locked(pool);
    if (c->state != UVA__CONNECTION_STUCK)
        uva__pool_move_locked(c, UVA__CONNECTION_ENDING);
    uv_mutex_unlock(&pool->lock);
    return c;
}

/* Keeps the connection for a later query, if that is wanted. */
static bool connection_keep(struct uva_adbc_pool *pool,
                            struct uva__connection *c)
{
    const struct uva__places *places = &pool->locked.places;
    bool keeps;

    uv_mutex_lock(&pool->lock);
    keeps = c->state == UVA__CONNECTION_ENDING &&
            uva__pool_keeper_ensure_locked(pool) && places->idle_ns > MS &&
            !uva__places_is_old(places, c) &&
            c->database->state < UVA__DATABASE_STUCK;
    if (keeps)
        uva__pool_move_locked(c, UVA__CONNECTION_IDLE);
    uv_mutex_unlock(&pool->lock);
    return keeps;
}

bool uva__pool_autocommits(const struct uva_adbc_pool *pool)
{
    char **value = uva__pairs_find(pool->connection_options,
                                   ADBC_CONNECTION_OPTION_AUTOCOMMIT);

    return value == NULL || strcmp(*value, ADBC_OPTION_VALUE_DISABLED) != 0;
}

bool uva__pool_must_reset(const struct uva_adbc_pool *pool,
                          const struct uva__connection *c, const char *text)
{
    return !pool->keeps_session &&
           (!uva__pool_autocommits(pool) || uva__reset_is_needed(c, text));
}

static bool connection_clean(struct uva_adbc_pool *pool,
                             struct uva__connection *c, const char *text)
{
    return !uva__pool_must_reset(pool, c, text) ||
           uva__reset(c, pool->connection_options, text != NULL ? text : "",
                      pool->runtime);
}

void uva__pool_put(struct uva_adbc_pool *pool, struct uva__connection **at,
                   const struct uva__used *used)
{
    struct uva__connection *c = connection_end(pool, at);
    bool is_good = used->how == UVA__USE_COMPLETE;

    if (is_good && pool->is_read_only)
        is_good = uva__read_only_end(c);
    if (!is_good || !connection_clean(pool, c, used->text) ||
        !connection_keep(pool, c))
        uva__pool_drop(pool, c);
}

int uva__pool_take(struct uva_adbc_pool *pool, enum uva__sql sql,
                   const atomic_bool *is_cancelled, uint64_t needed_ns,
                   struct uva__connection **out,
                   struct uva__adbc_failure *failure)
{
    const struct wait wait = {
        is_cancelled, needed_ns + (uint64_t)pool->wait_ms * MS, failure};
    int code;

    (void)sql;
    while ((code = connection_take(pool, &wait, out)) == 0 && (*out)->is_dead) {
        uva__pool_idle_close(pool);
        uva__pool_drop(pool, connection_end(pool, out));
    }
    return code;
}
