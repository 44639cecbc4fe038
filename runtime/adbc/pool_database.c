/* SPDX-License-Identifier: Apache-2.0 */
/* The databases of a pool: an open one is shared by connects, one after the
 * other. A database that lost its use is retired, and closed with its last
 * connection. */
#define _GNU_SOURCE
#include "adbc/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARE_MS = 20 /* for the call of another connect; then a remote database is
                     opened once more */
};

void uva__pool_wait_locked(struct uva_adbc_pool *pool, uint64_t until_ns)
{
    const uint64_t now = uv_hrtime();

    if (now < until_ns)
        (void)uv_cond_timedwait(&pool->changed, &pool->lock, until_ns - now);
}

/* ---- opening and sharing --------------------------------------------------
 */

void uva__pool_database_retire_locked(struct uva__database *d)
{
    if (d->state == UVA__DATABASE_FREE)
        d->state = UVA__DATABASE_RETIRED;
    else if (d->state == UVA__DATABASE_CALLED)
        d->state = UVA__DATABASE_STUCK;
}

/* A database that a connect may use; NULL: there is none. A database of another
 * process may have changed since it was opened: it is retired when it is too
 * old. */
static struct uva__database *database_free_locked(struct uva_adbc_pool *pool)
{
    const uint64_t now = uv_hrtime();
    struct uva__database *d = pool->locked.databases;

    for (; d != NULL; d = d->next) {
        if (d->state != UVA__DATABASE_FREE)
            continue;
        if (!uva__known_has(pool->locked.known, UVA__KNOWN_CONNECTS_AT_ONCE) ||
            now - d->born_ns < pool->locked.places.max_age_ns)
            break;
        uva__pool_database_retire_locked(d);
    }
    return d;
}

/* Whether its last connection can be expected to close a retired database: not
 * where all of them are in calls that do not return. */
static bool database_will_close_locked(const struct uva_adbc_pool *pool,
                                       const struct uva__database *d)
{
    static const enum uva__connection_state written_off[] = {
        UVA__CONNECTION_STUCK, UVA__CONNECTION_LEFT};
    const struct uva__connection *c;
    int32_t others = d->connections;

    for (int i = 0; i < 2; i++)
        for (c = pool->locked.places.of[written_off[i]]; c != NULL; c = c->next)
            others -= c->database == d;
    return d->connections == 0 || others > 0;
}

/* Whether a further database may be opened. Of one in this process there is no
 * other, until it is closed. */
static bool database_may_open_locked(const struct uva_adbc_pool *pool,
                                     uint64_t shared_ns)
{
    const struct uva__database *d = pool->locked.databases;

    if (uva__known_has(pool->locked.known, UVA__KNOWN_CONNECTS_AT_ONCE) &&
        uv_hrtime() >= shared_ns)
        return true;
    for (; d != NULL; d = d->next)
        if (d->state == UVA__DATABASE_CALLED ||
            (d->state == UVA__DATABASE_RETIRED &&
             !uva__known_has(pool->locked.known, UVA__KNOWN_CONNECTS_AT_ONCE) &&
             database_will_close_locked(pool, d)))
            return false;
    return true;
}

int uva__pool_database_enter_locked(struct uva_adbc_pool *pool,
                                    struct uva__connection *c)
{
    const uint64_t shared_ns = uv_hrtime() + SHARE_MS * MS;
    struct uva__database *d;

    while ((d = database_free_locked(pool)) == NULL &&
           !database_may_open_locked(pool, shared_ns) &&
           c->state == UVA__CONNECTION_CONNECTING)
        uva__pool_wait_locked(
            pool, uv_hrtime() < shared_ns ? shared_ns : uv_hrtime() + LONG_NS);
    if (c->state != UVA__CONNECTION_CONNECTING)
        return ECANCELED;
    if (d == NULL) {
        d = calloc(1, sizeof(*d));
        if (d == NULL)
            return ENOMEM;
        d->next = pool->locked.databases;
        pool->locked.databases = d;
    }
    d->state = UVA__DATABASE_CALLED;
    d->connections++;
    c->database = d;
    return 0;
}

void uva__pool_database_leave_locked(struct uva__database *d)
{
    d->state = d->state == UVA__DATABASE_CALLED && d->born_ns != 0
                   ? UVA__DATABASE_FREE
                   : UVA__DATABASE_RETIRED;
}

/* ---- leaving ------------------------------------------------------------- */

/* Takes an unused database out of the list; NULL: there is none. */
static struct uva__database *database_leaving_locked(struct uva_adbc_pool *pool)
{
    struct uva__database **at = &pool->locked.databases, *d;

    while ((d = *at) != NULL) {
        if (d->state == UVA__DATABASE_RETIRED && d->connections == 0) {
            *at = d->next;
            break;
        }
        at = &d->next;
    }
    return d;
}

void uva__pool_database_drop(struct uva__database *d)
{
    uva__database_close(d);
    free(d);
}

void uva__pool_databases_sweep(struct uva_adbc_pool *pool)
{
    struct uva__database *leaving;

    uv_mutex_lock(&pool->lock);
    while ((leaving = database_leaving_locked(pool)) != NULL) {
        uv_cond_broadcast(&pool->changed);
        uv_mutex_unlock(&pool->lock);
        uva__pool_database_drop(leaving);
        uv_mutex_lock(&pool->lock);
    }
    uv_mutex_unlock(&pool->lock);
}

/* ---- types that are new ---------------------------------------------------
 */

/* Whether a database that is open was opened before it was asked for the type.
 * If not, no other one knows it either. */
static bool type_is_news_locked(struct uva_adbc_pool *pool, const char *type)
{
    struct unknown *place = &pool->locked.unknown[0];
    const struct uva__database *d = pool->locked.databases;

    for (int i = 0; i < UNKNOWN_TYPES; i++) {
        if (strcmp(pool->locked.unknown[i].type, type) == 0) {
            place = &pool->locked.unknown[i];
            break;
        }
        if (pool->locked.unknown[i].asked_ns < place->asked_ns)
            place = &pool->locked.unknown[i];
    }
    if (strcmp(place->type, type) != 0) {
        place->asked_ns = uv_hrtime();
        (void)snprintf(place->type, sizeof(place->type), "%s", type);
    }
    while (d != NULL &&
           (d->state >= UVA__DATABASE_STUCK || d->born_ns > place->asked_ns))
        d = d->next;
    return d != NULL;
}

bool uva__pool_databases_retire_locked(struct uva_adbc_pool *pool,
                                       const char *type)
{
    if (type != NULL && !type_is_news_locked(pool, type))
        return false;
    for (struct uva__database *d = pool->locked.databases; d != NULL;
         d = d->next)
        uva__pool_database_retire_locked(d);
    return true;
}
