/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of connections.
 *
 * Happy path:  a query takes an idle connection, which another worker asks
 * whether it is alive if it has rested, or has one made: that worker opens a
 * database for it, unless there is one, and connects -> the query puts it back
 * -> the keeper has it closed when it was idle for too long, or is too old.
 *
 * What can fail: the driver, the database: reported to the query that needs it;
 *              the next query tries again. A connection of a query that failed
 *              is closed. A call that does not return within its limit is
 *              written off: adbc/places.h.
 *
 * On cancel:   a query stops to wait at once. What it waited for goes on, and
 * is closed when it is there.
 *
 * On release:  idle connections are closed by a worker, others when they are
 *              put back; the last reference closes the databases.
 *
 * A query that has its turn finds an idle connection or room for a new one, or
 * waits until one was closed: connections that are being closed count, too. */
#define _GNU_SOURCE
#include "adbc/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "adbc/execution.h"
#include "adbc/pairs.h"
#include "adbc/places.h"
#include "adbc/read_only.h"
#include "adbc/reset.h"
#include "adbc/uri.h"
#include "uvarrow/adapters.h"

enum {
    CONNECTIONS = 8,
    IDLE_MS = 60000,
    MAX_AGE_MS = 3600000,
    CONNECT_MS = 10000,
    WAIT_MS = 30000,
    BATCH_BYTES = 256 * 1024,
    UNKNOWN = 8,  /* types that are remembered */
    SHARE_MS = 20 /* for the call of another connect; then a remote database is
                     opened once more */
};

/* The text of a query that gets no connection. */
#define FULL "the pool is full: %d connections are used"

#define MS          UINT64_C(1000000)
#define WAIT_MAX_MS ((int64_t)1 << 40) /* 34 years: no time overflows */
#define LONG_NS     (3600000 * MS)     /* for a wait that an event ends */

/* A type that a database did not know, and when it was first asked for it. */
struct unknown {
    char type[40];
    uint64_t asked_ns;
};

struct uva_adbc_pool {
    const struct uva__handle_ops *ops; /* static, first: see adbc/handle.h */
    struct uva_runtime *runtime;       /* counts */
    struct uva_turns *turns;           /* counts: one for each connection */
    char *driver_name;                 /* owns */
    char *entrypoint;                  /* owns; NULL: guessed */
    char **options;                    /* owns: of the database */
    char **connection_options;         /* owns */
    int64_t connect_ms, wait_ms;
    int64_t batch_bytes;   /* of queries that have none */
    int32_t lock_ms;       /* of connections; 0: as the driver has it */
    bool is_read_only;     /* queries change nothing: see adbc/read_only.h */
    bool keeps_session;    /* connections are not reset */
    atomic_long refs;      /* the user, streams, and jobs */
    atomic_long holds;     /* of the memory: all `refs`, and a release */
    atomic_bool is_closed; /* released by the user */
    uv_thread_t keeper;    /* if there is one; joined by the release */
    uv_pid_t process;      /* that made it */

    uv_mutex_t lock;
    uv_cond_t changed; /* a member below has */
    uv_cond_t wakes;   /* the keeper */
    struct {
        struct uva__places places;
        struct uva__database *databases; /* owns: the last one opened first */
        const struct uva__known *known;  /* static: of all of them */
        struct unknown unknown[UNKNOWN]; /* types */
        uint64_t keeper_due_ns;          /* when the keeper looks again */
        int64_t queries;                 /* that got a connection, so far */
        int64_t waiting;                 /* queries, for a connection */
        int32_t turns;                   /* that there are */
        bool is_resizing;                /* a thread changes the turns */
        bool has_keeper;
    } locked;
};

/* Waits until something has changed, or until then. */
static void pool_wait_locked(struct uva_adbc_pool *pool, uint64_t until_ns)
{
    const uint64_t now = uv_hrtime();

    if (now < until_ns)
        (void)uv_cond_timedwait(&pool->changed, &pool->lock, until_ns - now);
}

/* The turns follow the places. Without the lock: it wakes the loop, which may
 * be a call of the program's. */
static void turns_follow(struct uva_adbc_pool *pool)
{
    int32_t turns;

    uv_mutex_lock(&pool->lock);
    while (!pool->locked.is_resizing &&
           (turns = uva__places_turns(&pool->locked.places)) !=
               pool->locked.turns) {
        pool->locked.turns = turns;
        pool->locked.is_resizing = true;
        uv_mutex_unlock(&pool->lock);
        (void)uva_turns_resize(pool->turns, turns);
        uv_mutex_lock(&pool->lock);
        pool->locked.is_resizing = false;
    }
    uv_mutex_unlock(&pool->lock);
}

/* ---- connections and places ---------------------------------------------- */

/* Takes out a database that nothing uses any more; NULL: there is none. */
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

static void database_drop(struct uva__database *d)
{
    uva__database_close(d);
    free(d);
}

static void databases_sweep(struct uva_adbc_pool *pool)
{
    struct uva__database *leaving;

    uv_mutex_lock(&pool->lock);
    while ((leaving = database_leaving_locked(pool)) != NULL) {
        uv_cond_broadcast(&pool->changed);
        uv_mutex_unlock(&pool->lock);
        database_drop(leaving);
        uv_mutex_lock(&pool->lock);
    }
    uv_mutex_unlock(&pool->lock);
}

/* It is gone: its place is free, and its database, if it was retired. */
static void connection_drop(struct uva_adbc_pool *pool,
                            struct uva__connection *c)
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
    databases_sweep(pool);
    turns_follow(pool);
}

static void connection_drop_on_worker(void *ctx)
{
    struct uva__connection *c = ctx;
    struct uva_adbc_pool *pool = c->pool;

    connection_drop(pool, c);
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

static void connection_move_locked(struct uva__connection *c,
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

    connection_move_locked(c, UVA__CONNECTION_CLOSING);
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
        connection_move_locked(c, then);
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
            turns_follow(pool);
            uv_mutex_lock(&pool->lock);
            continue;
        }
        pool->locked.keeper_due_ns = due_ns;
        (void)uv_cond_timedwait(&pool->wakes, &pool->lock,
                                first != NULL ? due_ns - now_ns : LONG_NS);
    }
    uv_mutex_unlock(&pool->lock);
}

/* Starts the keeper before something needs it. False: there is none. */
static bool keeper_ensure_locked(struct uva_adbc_pool *pool)
{
    if (!pool->locked.has_keeper && !atomic_load(&pool->is_closed))
        pool->locked.has_keeper =
            uv_thread_create(&pool->keeper, keeper_run, pool) == 0;
    return pool->locked.has_keeper;
}

static void keeper_stop(struct uva_adbc_pool *pool)
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

/* ---- databases ------------------------------------------------------------
 */

/* No connect uses it any more, but for one that is inside. */
static void database_retire_locked(struct uva__database *d)
{
    if (d->state == UVA__DATABASE_FREE)
        d->state = UVA__DATABASE_RETIRED;
    else if (d->state == UVA__DATABASE_CALLED)
        d->state = UVA__DATABASE_STUCK;
}

/* One that a connect may use; NULL: there is none. One of another process may
 * have changed since it was opened: it is retired when it is too old. */
static struct uva__database *database_free_locked(struct uva_adbc_pool *pool)
{
    const uint64_t now = uv_hrtime();
    struct uva__database *d = pool->locked.databases;

    for (; d != NULL; d = d->next) {
        if (d->state != UVA__DATABASE_FREE)
            continue;
        if (!pool->locked.known->connects_at_once ||
            now - d->born_ns < pool->locked.places.max_age_ns)
            break;
        database_retire_locked(d);
    }
    return d;
}

/* Whether one may be opened besides those that there are. Of one in this
 * process there is no other, until it is closed. */
static bool database_may_open_locked(const struct uva_adbc_pool *pool,
                                     uint64_t shared_ns)
{
    const struct uva__database *d = pool->locked.databases;

    if (pool->locked.known->connects_at_once && uv_hrtime() >= shared_ns)
        return true;
    for (; d != NULL; d = d->next)
        if (d->state == UVA__DATABASE_CALLED ||
            (d->state == UVA__DATABASE_RETIRED &&
             !pool->locked.known->connects_at_once))
            return false;
    return true;
}

/* Gives the connection a database that is not in a call, and is from now on. 0;
 * ENOMEM; ECANCELED if the connection was written off. */
static int database_enter_locked(struct uva_adbc_pool *pool,
                                 struct uva__connection *c)
{
    const uint64_t shared_ns = uv_hrtime() + SHARE_MS * MS;
    struct uva__database *d;

    while ((d = database_free_locked(pool)) == NULL &&
           !database_may_open_locked(pool, shared_ns) &&
           c->state == UVA__CONNECTION_CONNECTING)
        pool_wait_locked(pool, uv_hrtime() < shared_ns ? shared_ns
                                                       : uv_hrtime() + LONG_NS);
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

/* The call of the connection has returned. */
static void database_leave_locked(struct uva__database *d)
{
    d->state = d->state == UVA__DATABASE_CALLED && d->born_ns != 0
                   ? UVA__DATABASE_FREE
                   : UVA__DATABASE_RETIRED;
}

/* ---- connecting, on a worker of its own -----------------------------------
 */

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
    code = database_enter_locked(pool, c);
    uv_mutex_unlock(&pool->lock);
    if (code == 0)
        (void)connect_call(pool, c);
    else
        (void)uva__adbc_failure_set(&c->failure, code,
                                    "no memory for a database");
    uv_mutex_lock(&pool->lock);
    if (c->database != NULL)
        database_leave_locked(c->database);
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
        connection_move_locked(c, UVA__CONNECTION_USED);
    uv_mutex_unlock(&pool->lock);
    if (is_left)
        connection_drop(pool, c);
    pool->ops->unref(pool);
}

static void connect_begin_locked(struct uva__connection *c)
{
    struct uva_adbc_pool *pool = c->pool;

    pool->ops->acquire(pool);
    uv_mutex_unlock(&pool->lock);
    uva__worker_call(pool->runtime, connect_on_worker, c);
    uv_mutex_lock(&pool->lock);
}

/* ---- taking and putting ------------------------------------------------- */

/* What a query waits with. */
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

/* One that was idle for so long is asked whether it is alive, if its driver can
 * be. */
#define RESTED_NS (100 * MS)

static void idle_take_locked(struct uva__connection *c)
{
    c->is_asked = c->known->answers && uv_hrtime() - c->since_ns >= RESTED_NS;
    uva__places_move(&c->pool->locked.places, c,
                     c->is_asked ? UVA__CONNECTION_CONNECTING
                                 : UVA__CONNECTION_USED);
}

/* Gives an idle connection, or one that is to be connected or asked. */
static int place_take_locked(struct uva_adbc_pool *pool,
                             const struct wait *wait,
                             struct uva__connection **out)
{
    struct uva__places *places = &pool->locked.places;
    struct uva__connection **idle = &places->of[UVA__CONNECTION_IDLE];

    while (*idle == NULL && !uva__places_have_room(places) &&
           !wait_is_over(wait))
        pool_wait_locked(pool, wait->until_ns);
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
        database_retire_locked(c->database);
    connection_move_locked(c, UVA__CONNECTION_LEFT);
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
        pool_wait_locked(pool, own.until_ns);
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

static void pool_need(struct uva_adbc_pool *pool, uint64_t *needed_ns)
{
    if (*needed_ns != 0)
        return;
    *needed_ns = uv_hrtime() | 1; /* not 0 */
    uv_mutex_lock(&pool->lock);
    pool->locked.waiting++;
    uv_mutex_unlock(&pool->lock);
}

static void pool_unneed(struct uva_adbc_pool *pool, uint64_t *needed_ns)
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
        connect_begin_locked(c);
        code = connect_await_locked(pool, &c, wait);
    }
    pool->locked.queries += code == 0;
    if (code == 0) {
        *out = c;
        c = NULL;
    }
    uv_mutex_unlock(&pool->lock);
    if (c != NULL)
        connection_drop(pool, c);
    else if (code != 0)
        turns_follow(pool);
    return code;
}

static void pool_cancel(struct uva_adbc_pool *pool,
                        struct uva__connection *const *at)
{
    uv_mutex_lock(&pool->lock);
    if (*at != NULL && (*at)->state == UVA__CONNECTION_USED) {
        (void)keeper_ensure_locked(pool);
        connection_move_locked(*at, UVA__CONNECTION_CANCELLED);
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
    (void)keeper_ensure_locked(pool);
    if (c->state != UVA__CONNECTION_STUCK)
        connection_move_locked(c, UVA__CONNECTION_ENDING);
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
    keeps = c->state == UVA__CONNECTION_ENDING && keeper_ensure_locked(pool) &&
            places->idle_ns > MS && !uva__places_is_old(places, c) &&
            c->database->state < UVA__DATABASE_STUCK;
    if (keeps)
        connection_move_locked(c, UVA__CONNECTION_IDLE);
    uv_mutex_unlock(&pool->lock);
    return keeps;
}

static bool pool_autocommits(const struct uva_adbc_pool *pool)
{
    char **value = uva__pairs_find(pool->connection_options,
                                   ADBC_CONNECTION_OPTION_AUTOCOMMIT);

    return value == NULL || strcmp(*value, ADBC_OPTION_VALUE_DISABLED) != 0;
}

static bool pool_must_reset(const struct uva_adbc_pool *pool,
                            const struct uva__connection *c, const char *text)
{
    return !pool->keeps_session &&
           (!pool_autocommits(pool) || uva__reset_is_needed(c, text));
}

static bool connection_clean(struct uva_adbc_pool *pool,
                             struct uva__connection *c, const char *text)
{
    return !pool_must_reset(pool, c, text) ||
           uva__reset(c, pool->connection_options, text != NULL ? text : "",
                      pool->runtime);
}

static void pool_put(struct uva_adbc_pool *pool, struct uva__connection **at,
                     const struct uva__used *used)
{
    struct uva__connection *c = connection_end(pool, at);
    bool is_good = used->how == UVA__USE_COMPLETE;

    if (is_good && pool->is_read_only)
        is_good = uva__read_only_end(c);
    if (!is_good || !connection_clean(pool, c, used->text) ||
        !connection_keep(pool, c))
        connection_drop(pool, c);
}

/* ---- what is lost -------------------------------------------------------- */

static void idle_close_locked(struct uva_adbc_pool *pool)
{
    struct uva__connection *const *idle =
        &pool->locked.places.of[UVA__CONNECTION_IDLE];

    while (*idle != NULL)
        connection_close_locked(*idle);
}

/* Connections to the server are dead, or of no use any more. */
static void idle_close(struct uva_adbc_pool *pool)
{
    uv_mutex_lock(&pool->lock);
    idle_close_locked(pool);
    uv_mutex_unlock(&pool->lock);
}

/* Whether a database that is open now was opened before it was asked for the
 * type. If not, no other one knows it either. */
static bool type_is_news_locked(struct uva_adbc_pool *pool, const char *type)
{
    struct unknown *place = &pool->locked.unknown[0];
    const struct uva__database *d = pool->locked.databases;

    for (int i = 0; i < UNKNOWN; i++) {
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

static void databases_renew(struct uva_adbc_pool *pool, const char *type)
{
    uv_mutex_lock(&pool->lock);
    if (type != NULL && !type_is_news_locked(pool, type)) {
        uv_mutex_unlock(&pool->lock);
        return;
    }
    for (struct uva__database *d = pool->locked.databases; d != NULL;
         d = d->next)
        database_retire_locked(d);
    idle_close_locked(pool);
    uv_mutex_unlock(&pool->lock);
}

static void pool_lose(struct uva_adbc_pool *pool, enum uva__loss loss)
{
    if (loss == UVA__LOSS_DATABASE)
        databases_renew(pool, NULL);
    else
        idle_close(pool);
}

static void pool_know(struct uva_adbc_pool *pool, const char *type)
{
    databases_renew(pool, type);
}

/* If one is dead, others are as well. */
static int pool_take(struct uva_adbc_pool *pool, enum uva__sql sql,
                     const atomic_bool *is_cancelled, uint64_t needed_ns,
                     struct uva__connection **out,
                     struct uva__adbc_failure *failure)
{
    const struct wait wait = {
        is_cancelled, needed_ns + (uint64_t)pool->wait_ms * MS, failure};
    int code;

    (void)sql;
    while ((code = connection_take(pool, &wait, out)) == 0 && (*out)->is_dead) {
        idle_close(pool);
        connection_drop(pool, connection_end(pool, out));
    }
    return code;
}

/* ---- life --------------------------------------------------------------- */

static struct uva_runtime *pool_runtime(const struct uva_adbc_pool *pool)
{
    return pool->runtime;
}

static struct uva_turns *pool_turns(const struct uva_adbc_pool *pool)
{
    return pool->turns;
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
    uva_turns_release(pool->turns);
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
        database_drop(d);
    }
    pool_unhold(pool);
}

static void pool_unref_on_worker(void *ctx)
{
    pool_unref(ctx);
}

static void pool_release(struct uva_adbc_pool *pool)
{
    atomic_fetch_add(&pool->holds, 1); /* it keeps the runtime's core */
    keeper_stop(pool);
    idle_close(pool);
    uva__worker_call(pool->runtime, pool_unref_on_worker, pool);
    pool_unhold(pool);
}

/* A snapshot reads behind the lock. */
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

static const struct uva__handle_ops pool_ops = {.runtime = pool_runtime,
                                                .turns = pool_turns,
                                                .connections = pool_connections,
                                                .wait_ms = pool_wait_ms,
                                                .batch_bytes = pool_batch_bytes,
                                                .autocommits = pool_autocommits,
                                                .is_read_only =
                                                    pool_is_read_only,
                                                .refusal = pool_refusal,
                                                .is_forked = pool_is_forked,
                                                .acquire = pool_acquire,
                                                .unref = pool_unref,
                                                .release = pool_release,
                                                .get_stats = pool_get_stats,
                                                .need = pool_need,
                                                .unneed = pool_unneed,
                                                .take = pool_take,
                                                .cancel = pool_cancel,
                                                .lose = pool_lose,
                                                .know = pool_know,
                                                .must_reset = pool_must_reset,
                                                .put = pool_put};

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

static int64_t limit_of(int64_t given, int64_t otherwise)
{
    return given > 0 ? given : otherwise;
}

static void pool_limit(struct uva_adbc_pool *pool,
                       const struct uva_adbc_pool_options *o)
{
    struct uva__places *p = &pool->locked.places;

    p->connections = (int32_t)limit_of(o->connections, CONNECTIONS);
    p->stuck_connections =
        (int32_t)limit_of(o->stuck_connections, p->connections);
    p->idle_ns = (uint64_t)limit_of(o->idle_ms, IDLE_MS) * MS;
    p->max_age_ns = (uint64_t)limit_of(o->max_age_ms, MAX_AGE_MS) * MS;
    pool->locked.turns = p->connections;
    pool->connect_ms = limit_of(o->connect_ms, CONNECT_MS);
    pool->lock_ms = o->lock_ms;
    pool->batch_bytes = limit_of(o->batch_bytes, BATCH_BYTES);
    pool->wait_ms = limit_of(o->wait_ms, WAIT_MS);
    if (pool->wait_ms > WAIT_MAX_MS)
        pool->wait_ms = WAIT_MAX_MS;
}

static int pool_make_turns(struct uva_adbc_pool *pool, struct uva_error *error)
{
    const int32_t connections = pool->locked.places.connections;
    const int code = uva_turns_new(pool->runtime, connections, pool->wait_ms,
                                   &pool->turns, error);
    char text[80];

    if (code != 0)
        return code;
    (void)snprintf(text, sizeof(text), FULL, (int)connections);
    uva_turns_explain(pool->turns, text);
    return 0;
}

static int pool_fill(struct uva_adbc_pool *pool,
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
    return pool_make_turns(pool, error);
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
