/* SPDX-License-Identifier: Apache-2.0 */
/* Where connections leave a pool: at once, or once the keeper, a thread, finds
 * that one has been in its state for too long. */
#define _GNU_SOURCE
#include "adbc/pool.h"

#include <stdlib.h>

#include "adbc/execution.h"

void uva__pool_permits_follow(struct uva_adbc_pool *pool)
{
    int32_t permits;

    uv_mutex_lock(&pool->lock);
    while (!pool->locked.is_resizing &&
           (permits = uva__places_permits(&pool->locked.places)) !=
               pool->locked.permits) {
        pool->locked.permits = permits;
        pool->locked.is_resizing = true;
        uv_mutex_unlock(&pool->lock);
        (void)uva_permits_resize(pool->permits, permits);
        uv_mutex_lock(&pool->lock);
        pool->locked.is_resizing = false;
    }
    uv_mutex_unlock(&pool->lock);
}

/* ---- leaving ------------------------------------------------------------- */

void uva__pool_drop(struct uva_adbc_pool *pool, struct uva__connection *c)
{
    uva__connection_close(c);
    uv_mutex_lock(&pool->lock);
    uva__places_remove(&pool->locked.places, c);
    if (c->database != NULL)
        c->database->connections--;
    uv_cond_broadcast(&pool->changed);
    uv_mutex_unlock(&pool->lock);
    uva__adbc_failure_fini(&c->failure);
    free(c);
    uva__pool_databases_sweep(pool);
    uva__pool_permits_follow(pool);
}

static void connection_drop_on_worker(void *ctx)
{
    struct uva__connection *c = ctx;
    struct uva_adbc_pool *pool = c->pool;

    uva__pool_drop(pool, c);
    pool->ops->unref(pool);
}

/* ---- the keeper ---------------------------------------------------------- */

/* A connection has come to a state that does not last. */
static void keeper_mind_locked(struct uva_adbc_pool *pool,
                               const struct uva__connection *c)
{
    if (uva__places_due(&pool->locked.places, c) < pool->locked.keeper_due_ns)
        uv_cond_broadcast(&pool->wakes);
}

void uva__pool_move_locked(struct uva__connection *c,
                           enum uva__connection_state state)
{
    uva__places_move(&c->pool->locked.places, c, state);
    keeper_mind_locked(c->pool, c);
    uv_cond_broadcast(&c->pool->changed);
}

/* Another worker closes a connection that is idle. */
static void connection_close_locked(struct uva__connection *c)
{
    struct uva_adbc_pool *pool = c->pool;

    uva__pool_move_locked(c, UVA__CONNECTION_CLOSING);
    pool->ops->acquire(pool);
    uv_mutex_unlock(&pool->lock);
    uva__worker_call(pool->runtime, connection_drop_on_worker, c);
    uv_mutex_lock(&pool->lock);
}

/* One has been in its state for too long. */
static void keeper_end_locked(struct uva__connection *c)
{
    const enum uva__connection_state then = uva__places_when_due(c);

    if (then == UVA__CONNECTION_CLOSING)
        connection_close_locked(c);
    else
        uva__pool_move_locked(c, then);
}

static void keeper_run(void *ctx)
{
    struct uva_adbc_pool *pool = ctx;
    struct uva__connection *first;
    uint64_t due_ns, now_ns;

    uv_mutex_lock(&pool->lock);
    while (!atomic_load(&pool->is_closed)) {
        pool->locked.keeper_due_ns = 0; /* it is awake */
        first = uva__places_first_due(&pool->locked.places, &due_ns);
        now_ns = uv_hrtime();
        if (first != NULL && due_ns <= now_ns) {
            keeper_end_locked(first);
            uv_mutex_unlock(&pool->lock);
            uva__pool_permits_follow(pool);
            uv_mutex_lock(&pool->lock);
            continue;
        }
        pool->locked.keeper_due_ns = due_ns;
        (void)uv_cond_timedwait(&pool->wakes, &pool->lock,
                                first != NULL ? due_ns - now_ns : LONG_NS);
    }
    uv_mutex_unlock(&pool->lock);
}

bool uva__pool_keeper_ensure_locked(struct uva_adbc_pool *pool)
{
    if (!pool->locked.has_keeper && !atomic_load(&pool->is_closed))
        pool->locked.has_keeper =
            uv_thread_create(&pool->keeper, keeper_run, pool) == 0;
    return pool->locked.has_keeper;
}

void uva__pool_keeper_stop(struct uva_adbc_pool *pool)
{
    bool has;

    uv_mutex_lock(&pool->lock);
    atomic_store(&pool->is_closed, true);
    has = pool->locked.has_keeper;
    pool->locked.has_keeper = false;
    uv_cond_broadcast(&pool->wakes);
    uv_mutex_unlock(&pool->lock);
    if (has)
        (void)uv_thread_join(&pool->keeper);
}

void uva__pool_idle_close_locked(struct uva_adbc_pool *pool)
{
    struct uva__connection *const *idle =
        &pool->locked.places.of[UVA__CONNECTION_IDLE];

    while (*idle != NULL)
        connection_close_locked(*idle);
}

void uva__pool_idle_close(struct uva_adbc_pool *pool)
{
    uv_mutex_lock(&pool->lock);
    uva__pool_idle_close_locked(pool);
    uv_mutex_unlock(&pool->lock);
}
