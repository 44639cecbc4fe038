/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a query is its number. A query fails, gets stuck until it is
 * cancelled, or for good; a pool may have a database that refuses some
 * connections, where the first ones get stuck, or with a server in trouble. */
#include "sim/adbc_peer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/interrupt.h"
#include "adbc/known.h"
#include "adbc/library.h"
#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/fake_server.h"
#include "sim/fake_threads.h"
#include "sim/fake_uv.h"
#include "sim/hosts.h"
#include "sim/peers.h"
#include "uvarrow/adbc.h"

enum { POOLS = 4, QUERIES = 64, RIVALS = 8, OPEN = -1, NOWHERE = -2 };
enum { CONNECTIONS = 3, PROBE_BATCHES = 4 };

#define READS                                                                  \
    "select " /* how the text of a query that leaves no state begins           \
               */

#define AN_HOUR_NS (UINT64_C(3600) * 1000000000)
#define MINUTES_NS (UINT64_C(300) * 1000000000)

/* Where a query fails that gives no batch. */
enum place { AT_TEXT, AT_EXECUTE, AT_SCHEMA, AT_BATCH, PLACES };

struct pool {
    struct uva_runtime *runtime; /* borrows */
    struct uva_adbc_pool *pool;  /* owns; NULL: released */
    int32_t most;                /* connections */
    int32_t most_stuck;          /* that may be replaced */
    struct uva__known known;     /* of its driver */
    bool refuses;                /* some connections */
    bool sticks;                 /* connections wait until unblocked */
    bool is_late;                /* it is released after its runtime's close */
    bool waits;                  /* for a connection, for milliseconds */
    bool keeps;                  /* queries leave state in their sessions */
    bool hurries;                /* a slow connect may take too long */
    struct fake_server server;
    int drivers, databases, connections;     /* live */
    struct connection *all[2 * CONNECTIONS]; /* live; borrows */
};

/* ADBC allows one call of each at one time. */
struct database {
    struct pool *pool;
    int inside;      /* calls */
    int connections; /* live */
};

struct connection {
    struct pool *pool;
    struct database *database; /* NULL: not connected */
    struct query *query;       /* the last one */
    int inside;                /* calls */
    bool is_stuck;             /* in a call, though the server is well */
    bool is_dirty;             /* a query has left something in its session */
    bool resets;               /* the statement is the pool's own */
    int cancelling;            /* calls of a cancel */
    int parts;                 /* statements and results, live */
    int64_t start;             /* of the server, in which the session began */
    bool is_spent;             /* the last query did not end well, so far */
    bool was_cancelled;        /* a cancel may have an effect later */
};

struct query {
    struct expectation *expectation;
    int64_t next;     /* batch */
    int64_t stuck_at; /* batch it gets stuck at; OPEN; or NOWHERE */
    enum place fails; /* where, if it gives no batch */
    bool is_deaf;     /* cancels have no effect */
    bool leaves;      /* something in its session */
    bool is_cancelled;
};

/* A query that competes with the chains. */
struct rival {
    struct expectation expectation;
    struct expectation *beside; /* borrows: the chain that it may hold up */
    struct uva_stream *stream;  /* counts: until it is consumed */
    struct uva_stream *meddled; /* counts: until it is cancelled; or NULL */
};

static struct {
    struct pool pools[POOLS];
    struct query queries[QUERIES];
    struct rival rivals[RIVALS];
    int pools_used, queries_used, rivals_used;
    struct expectation nothing; /* of queries without batches */
    int fibers; /* that release pools, or start or cancel rivals */
} adbc;

void adbc_begin(void)
{
    memset(&adbc, 0, sizeof(adbc));
    adbc.nothing.fails_at = INT64_MAX;
}

/* ---- rules -------------------------------------------------------------- */

/* Begins a driver call on the object with the count `inside`. */
static void call_begin(const char *what, int *inside)
{
    expectation_note("driver: %s", what);
    if (fake_uv_holds_mutex())
        sim_fail("%s is called under a lock", what);
    if (hosts_on_loop() && !arena_has_failed() && !fake_threads_have_failed())
        sim_fail("%s is called on a loop", what);
    if ((*inside)++ != 0)
        sim_fail("%s: a connection is used by two threads at once", what);
    peers_dawdle();
    for (uint64_t steps = peers_chance(1, 8) ? sim_choose(100) : 1; steps > 0;
         steps--)
        sim_point();
}

static AdbcStatusCode call_end(int *inside, AdbcStatusCode status,
                               struct AdbcError *error)
{
    --*inside;
    if (status != ADBC_STATUS_OK && error->message != NULL)
        sim_fail("an error is filled in twice");
    return status;
}

static bool are_unblocked(void *arg)
{
    (void)arg;
    return peers_are_unblocked();
}

static bool query_may_go_on(void *arg)
{
    const struct query *query = arg;

    return query->is_cancelled || peers_are_unblocked();
}

/* Returns false if it was cancelled. */
static bool query_wait(struct connection *c, int64_t at)
{
    struct query *query = c->query;

    if (query->stuck_at != at)
        return true;
    c->is_stuck = true;
    sim_wait(query_may_go_on, query);
    c->is_stuck = false;
    return !query->is_cancelled;
}

static bool query_fails(const struct query *query, enum place place)
{
    return query->expectation->fails_at == 0 && query->fails == place;
}

/* Waits for the server. Returns whether the session is alive. */
static bool connection_reach(const struct connection *c)
{
    return fake_server_reach(&c->pool->server, c->start);
}

static void error_release(struct AdbcError *error)
{
    arena_free(error->message);
    error->message = NULL;
    error->release = NULL;
}

/* Fails, with or without a text. */
static AdbcStatusCode fault(struct AdbcError *error)
{
    if (peers_chance(1, 2)) {
        error->message = arena_new(16, "a text of the driver");
        (void)snprintf(error->message, 16, "no such luck");
        error->release = error_release;
    }
    return ADBC_STATUS_IO;
}

/* ---- results ------------------------------------------------------------ */

static struct query *connection_begin(struct connection *c, const char *what)
{
    call_begin(what, &c->inside);
    return c->query;
}

static int connection_end(struct connection *c, int code)
{
    c->inside--;
    c->is_spent = c->is_spent || code != 0;
    return code;
}

static int result_get_schema(struct ArrowArrayStream *stream,
                             struct ArrowSchema *out)
{
    struct connection *c = stream->private_data;
    const struct query *query = connection_begin(c, "get_schema");

    if (query_fails(query, AT_SCHEMA))
        return connection_end(c, EIO);
    batches_schema(out);
    return connection_end(c, 0);
}

static int result_get_next(struct ArrowArrayStream *stream,
                           struct ArrowArray *out)
{
    struct connection *c = stream->private_data;
    struct query *query = connection_begin(c, "get_next");
    const struct expectation *expectation = query->expectation;

    if (!connection_reach(c))
        return connection_end(c, EIO);
    if (!query_wait(c, query->next) && peers_chance(1, 2))
        return connection_end(c, ECANCELED); /* or too late for the cancel */
    if (query->next >= expectation->fails_at)
        return connection_end(c, EIO);
    out->release = NULL;
    if (query->next < expectation->total)
        batches_batch(query->next++, 0, out);
    else
        c->is_spent = false;
    return connection_end(c, 0);
}

static const char *result_get_last_error(struct ArrowArrayStream *stream)
{
    const struct connection *c = stream->private_data;

    return c->query->next % 2 == 0 ? NULL : "connection lost";
}

static void result_release(struct ArrowArrayStream *stream)
{
    struct connection *c = stream->private_data;

    (void)connection_begin(c, "release of a result");
    c->parts--;
    (void)connection_end(c, 0);
    stream->release = NULL;
}

/* Until its end was read, the connection must not be used otherwise. */
static void result_make(struct connection *c, struct ArrowArrayStream *out)
{
    c->parts++;
    c->is_spent = true;
    *out = (struct ArrowArrayStream){result_get_schema, result_get_next,
                                     result_get_last_error, result_release, c};
}

/* Executes the query of the connection. */
static AdbcStatusCode execute(struct connection *c,
                              struct ArrowArrayStream *out,
                              struct AdbcError *error)
{
    if (!connection_reach(c))
        return fault(error);
    if (!query_wait(c, OPEN))
        return ADBC_STATUS_CANCELLED;
    if (query_fails(c->query, AT_EXECUTE))
        return fault(error);
    result_make(c, out);
    return ADBC_STATUS_OK;
}

/* ---- connections -------------------------------------------------------- */

static AdbcStatusCode connection_leave(struct connection *c,
                                       AdbcStatusCode status,
                                       struct AdbcError *error)
{
    (void)error;
    (void)connection_end(c, status != ADBC_STATUS_OK);
    return status;
}

/* A query begins on the connection. */
static void connection_use(struct connection *c)
{
    if (c->is_spent)
        sim_fail("a connection is used again after a query that did not end "
                 "well");
    if (c->was_cancelled)
        sim_fail("a connection is used again after a cancel");
    if (c->parts != 0)
        sim_fail("a connection is used with a query on it");
}

/* A query that only reads leaves no state. */
static void query_begin(struct connection *c, const char *text)
{
    const size_t reads = sizeof(READS) - 1;
    const long number = strtol(
        strncmp(text, READS, reads) == 0 ? text + reads : text, NULL, 10);

    if (c->is_dirty && !c->pool->keeps)
        sim_fail("a session is not clean when it is given out");
    if (number < 0 || number >= adbc.queries_used)
        sim_fail("there is no query %s", text);
    c->query = &adbc.queries[number];
}

static struct connection **connection_slot(struct pool *pool,
                                           const struct connection *c)
{
    for (int i = 0; i < 2 * CONNECTIONS; i++)
        if (pool->all[i] == c)
            return &pool->all[i];
    sim_fail("a connection that is none");
}

static AdbcStatusCode connection_new(struct AdbcConnection *connection,
                                     struct AdbcError *error)
{
    struct AdbcDriver *driver = connection->private_driver;
    struct pool *pool = driver->private_data;
    struct connection *c;

    (void)error;
    if (++pool->connections > pool->most + pool->most_stuck)
        sim_fail("%d connections instead of %d", pool->connections,
                 (int)(pool->most + pool->most_stuck));
    c = arena_new(sizeof(*c), "a connection");
    c->pool = pool;
    *connection_slot(pool, NULL) = c;
    call_begin("ConnectionNew", &c->inside);
    connection->private_data = c;
    return call_end(&c->inside, ADBC_STATUS_OK, error);
}

static AdbcStatusCode connection_init(struct AdbcConnection *connection,
                                      struct AdbcDatabase *database,
                                      struct AdbcError *error)
{
    struct connection *c = connection->private_data;
    struct database *d = database->private_data;
    bool refused;

    if (d->pool != c->pool)
        sim_fail("a connection to another database");
    c->database = d;
    d->connections++;
    call_begin("ConnectionInit", &c->inside);
    if (d->inside++ != 0)
        sim_fail("a database is used by two threads at once");
    sim_point();
    if (c->pool->sticks) {
        c->is_stuck = true;
        sim_wait(are_unblocked, NULL);
        c->is_stuck = false;
    }
    refused = !fake_server_accepts(&c->pool->server) ||
              (c->pool->refuses && peers_chance(1, 3));
    c->start = c->pool->server.starts;
    d->inside--;
    return connection_leave(c, refused ? fault(error) : ADBC_STATUS_OK, error);
}

/* A version, for which the server is asked; its value does not matter. */
static AdbcStatusCode connection_info(struct AdbcConnection *connection,
                                      const uint32_t *codes, size_t count,
                                      struct ArrowArrayStream *out,
                                      struct AdbcError *error)
{
    struct connection *c = connection->private_data;

    (void)codes;
    (void)count;
    out->release = NULL;
    call_begin("ConnectionGetInfo", &c->inside);
    return connection_leave(
        c, connection_reach(c) ? ADBC_STATUS_OK : fault(error), error);
}

static AdbcStatusCode connection_release(struct AdbcConnection *connection,
                                         struct AdbcError *error)
{
    struct connection *c = connection->private_data;
    struct pool *pool = c->pool;

    (void)error;
    call_begin("ConnectionRelease", &c->inside);
    (void)connection_reach(c);
    if (c->parts != 0)
        sim_fail("a connection is released before its statement or result");
    if (c->cancelling != 0)
        sim_fail("a connection is released during a cancel");
    if (c->database != NULL)
        c->database->connections--;
    *connection_slot(pool, c) = NULL;
    arena_free(c);
    pool->connections--;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode connection_stop(struct connection *c)
{
    expectation_note("driver: cancel");
    if (fake_uv_holds_mutex())
        sim_fail("a cancel under a lock");
    if (c->cancelling++ != 0)
        sim_fail("two cancels at once");
    c->was_cancelled = true;
    peers_dawdle();
    if (!c->query->is_deaf)
        c->query->is_cancelled = true;
    sim_point();
    c->cancelling--;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode connection_cancel(struct AdbcConnection *connection,
                                        struct AdbcError *error)
{
    struct connection *c = connection->private_data;

    (void)error;
    return c->query != NULL ? connection_stop(c) : ADBC_STATUS_INVALID_STATE;
}

static AdbcStatusCode
connection_read_partition(struct AdbcConnection *connection,
                          const uint8_t *partition, size_t size,
                          struct ArrowArrayStream *out, struct AdbcError *error)
{
    struct connection *c = connection->private_data;

    connection_use(c);
    call_begin("ConnectionReadPartition", &c->inside);
    if (size == 0 || partition[size - 1] != '\0')
        sim_fail("a partition is not whole");
    query_begin(c, (const char *)partition);
    return connection_leave(c, execute(c, out, error), error);
}

/* ---- statements --------------------------------------------------------- */

static AdbcStatusCode statement_new(struct AdbcConnection *connection,
                                    struct AdbcStatement *statement,
                                    struct AdbcError *error)
{
    struct connection *c = connection->private_data;

    connection_use(c);
    call_begin("StatementNew", &c->inside);
    c->query = NULL;
    c->parts++;
    statement->private_data = c;
    return connection_leave(c, ADBC_STATUS_OK, error);
}

static AdbcStatusCode statement_set_sql(struct AdbcStatement *statement,
                                        const char *sql,
                                        struct AdbcError *error)
{
    struct connection *c = statement->private_data;

    call_begin("StatementSetSqlQuery", &c->inside);
    c->resets = strcmp(sql, "DISCARD ALL") == 0;
    if (c->resets)
        return connection_leave(c, ADBC_STATUS_OK, error);
    query_begin(c, sql);
    return connection_leave(
        c, query_fails(c->query, AT_TEXT) ? fault(error) : ADBC_STATUS_OK,
        error);
}

static AdbcStatusCode session_reset(struct connection *c,
                                    struct AdbcError *error)
{
    if (c->pool->known.reset != UVA__RESET_DISCARD_ALL)
        sim_fail("a session is reset by a statement of another database");
    if (!connection_reach(c) || peers_chance(1, 20))
        return fault(error);
    c->is_dirty = false;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode statement_execute(struct AdbcStatement *statement,
                                        struct ArrowArrayStream *out,
                                        int64_t *rows, struct AdbcError *error)
{
    struct connection *c = statement->private_data;

    call_begin("StatementExecuteQuery", &c->inside);
    if (c->resets)
        return connection_leave(c, session_reset(c, error), error);
    *rows = -1;
    c->is_dirty = c->is_dirty || c->query->leaves;
    return connection_leave(c, execute(c, out, error), error);
}

static AdbcStatusCode statement_cancel(struct AdbcStatement *statement,
                                       struct AdbcError *error)
{
    struct connection *c = statement->private_data;

    (void)error;
    return c->query != NULL ? connection_stop(c) : ADBC_STATUS_INVALID_STATE;
}

static AdbcStatusCode statement_release(struct AdbcStatement *statement,
                                        struct AdbcError *error)
{
    struct connection *c = statement->private_data;

    call_begin("StatementRelease", &c->inside);
    if (c->cancelling != 0)
        sim_fail("a statement is released during a cancel");
    if (--c->parts != 0)
        sim_fail("a statement is released before its result");
    statement->private_data = NULL;
    return connection_leave(c, ADBC_STATUS_OK, error);
}

/* ---- the database ------------------------------------------------------- */

static AdbcStatusCode database_new(struct AdbcDatabase *database,
                                   struct AdbcError *error)
{
    struct AdbcDriver *driver = database->private_driver;
    struct database *d = arena_new(sizeof(*d), "a database");

    (void)error;
    sim_point();
    d->pool = driver->private_data;
    d->pool->databases++;
    database->private_data = d;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode database_init(struct AdbcDatabase *database,
                                    struct AdbcError *error)
{
    struct database *d = database->private_data;
    AdbcStatusCode status = ADBC_STATUS_OK;

    call_begin("DatabaseInit", &d->inside);
    if (d->pool->refuses && peers_chance(1, 3))
        status = fault(error);
    d->inside--;
    return status;
}

static AdbcStatusCode database_release(struct AdbcDatabase *database,
                                       struct AdbcError *error)
{
    struct database *d = database->private_data;

    (void)error;
    call_begin("DatabaseRelease", &d->inside);
    if (d->connections != 0)
        sim_fail("a database is released before its connections");
    d->pool->databases--;
    arena_free(d);
    return ADBC_STATUS_OK;
}

static AdbcStatusCode driver_release(struct AdbcDriver *driver,
                                     struct AdbcError *error)
{
    struct pool *pool = driver->private_data;

    (void)error;
    if (pool->databases >= pool->drivers)
        sim_fail("a driver is released before its database");
    pool->drivers--;
    return ADBC_STATUS_OK;
}

/* These replace the library's: the name of the driver is the number of its
 * pool. */
const struct uva__known *uva__known_named(const char *driver)
{
    return &adbc.pools[strtol(driver, NULL, 10)].known;
}

const struct uva__known *uva__known_find(struct AdbcConnection *connection)
{
    const struct connection *c = connection->private_data;

    return &c->pool->known;
}

/* Its drivers load no extensions. */
struct uva__interrupt uva__interrupt_find(struct AdbcConnection *connection)
{
    (void)connection;
    return (struct uva__interrupt){0};
}

bool uva__known_is_strange(const struct ArrowSchema *schema, char *out,
                           size_t size)
{
    (void)schema;
    (void)out;
    (void)size;
    return false;
}

int uva__adbc_driver_load(const char *driver, const char *entrypoint,
                          struct AdbcDriver *out,
                          struct uva__adbc_failure *failure)
{
    struct pool *pool = &adbc.pools[strtol(driver, NULL, 10)];

    (void)entrypoint;
    memset(out, 0, sizeof(*out));
    sim_point();
    if (pool->refuses && peers_chance(1, 4))
        return uva__adbc_failure_set(failure, ENOENT, "no such driver");
    pool->drivers++;
    out->private_data = pool;
    out->release = driver_release;
    out->DatabaseNew = database_new;
    out->DatabaseInit = database_init;
    out->DatabaseRelease = database_release;
    out->ConnectionNew = connection_new;
    out->ConnectionInit = connection_init;
    out->ConnectionGetInfo = connection_info;
    out->ConnectionRelease = connection_release;
    out->ConnectionCancel = connection_cancel;
    out->ConnectionReadPartition = connection_read_partition;
    out->StatementNew = statement_new;
    out->StatementSetSqlQuery = statement_set_sql;
    out->StatementExecuteQuery = statement_execute;
    out->StatementCancel = statement_cancel;
    out->StatementRelease = statement_release;
    return 0;
}

/* ---- queries ------------------------------------------------------------ */

/* The ways in which the pool may end any query. */
static void query_excuse(const struct pool *pool,
                         struct expectation *expectation)
{
    expectation->excuses |= EXCUSE_TIMEOUT;
    if (pool->refuses || pool->server.has_trouble)
        expectation->excuses |= EXCUSE_ODD_END;
    if (pool->sticks || pool->server.has_trouble)
        expectation->stalls = true;
}

static struct query *query_draw(const struct pool *pool,
                                struct expectation *expectation)
{
    struct query *query = &adbc.queries[adbc.queries_used++];

    query->expectation = expectation;
    query->stuck_at = NOWHERE;
    query->leaves = peers_chance(1, 2);
    query->fails = (enum place)sim_choose(PLACES);
    query_excuse(pool, expectation);
    if (!peers_chance(1, expectation->meddled ? 2 : 8))
        return query;
    query->stuck_at = (int64_t)sim_choose((uint64_t)expectation->total + 2) - 1;
    if (peers_chance(1, 3)) /* where its rows are complete */
        query->stuck_at = expectation->total;
    query->is_deaf = peers_chance(1, 4);
    expectation->stalls = true;
    return query;
}

static struct uva_stream *query_stream(const struct pool *pool,
                                       struct expectation *expectation)
{
    struct query *query = query_draw(pool, expectation);
    const struct uva_window window = peers_window();
    char text[16];
    int size;

    size = snprintf(text, sizeof(text), "%s%d", query->leaves ? "" : READS,
                    (int)(query - adbc.queries));
    expectation_note("chain %d: query %s, stuck at %lld%s", expectation->number,
                     text, (long long)query->stuck_at,
                     query->is_deaf ? ", and deaf" : "");
    if (peers_chance(1, 4) && query->fails != AT_TEXT)
        return uva_stream_from_partition(pool->pool, text, (size_t)size + 1,
                                         &window);
    return uva_stream_from_query(
        pool->pool, &(struct uva_adbc_query){.sql = text, .window = window});
}

/* ---- rivals ------------------------------------------------------------- */

static void rival_canceller(void *arg)
{
    struct rival *rival = arg;

    for (uint64_t steps = sim_choose(2) == 0 ? sim_choose(200)
                                             : sim_choose(2000);
         steps > 0; steps--)
        sim_point();
    peers_dawdle();
    expectation_note("query of chain %d is given up",
                     rival->expectation.number);
    if (!rival->expectation.over)
        uva_stream_cancel(rival->meddled, 0, NULL);
    uva_stream_release(rival->meddled);
    adbc.fibers--;
}

static void rival_draw(struct rival *rival, const struct pool *pool,
                       const struct expectation *beside)
{
    struct expectation *e = &rival->expectation;

    e->number = 10 + (int)(rival - adbc.rivals);
    e->total = (int64_t)sim_choose(4);
    e->fails_at = e->limit = INT64_MAX;
    e->runtime = pool->runtime;
    e->made_ns = sim_now_ns();
    e->excuses = EXCUSE_MEMORY | (beside->excuses & EXCUSE_CLOSE);
    if (peers_chance(1, 5)) {
        e->fails_at = (int64_t)sim_choose((uint64_t)e->total + 1);
        e->fail_code = EIO;
        e->excuses |= EXCUSE_SOURCE;
    }
}

/* Some are never started. */
static void rival_consume(struct rival *rival)
{
    struct expectation *e = &rival->expectation;

    if (peers_chance(1, 6)) {
        e->over = true;
        uva_stream_release(rival->stream);
    } else {
        peers_consume(rival->stream, e);
    }
    rival->beside->stalls = rival->beside->stalls || e->stalls;
}

static void rival_starter(void *arg)
{
    for (uint64_t steps = sim_choose(2000); steps > 0; steps--)
        sim_point();
    peers_dawdle();
    rival_consume(arg);
    adbc.fibers--;
}

/* Makes a query, and starts it at once or later. Some are cancelled. */
static void rival_start(const struct pool *pool, struct expectation *beside)
{
    struct rival *rival = &adbc.rivals[adbc.rivals_used++];
    struct expectation *e = &rival->expectation;

    rival_draw(rival, pool, beside);
    e->meddled = peers_chance(1, 3);
    rival->beside = beside;
    rival->stream = query_stream(pool, e);
    beside->stalls = beside->stalls || e->stalls;
    if (e->meddled) {
        e->excuses |= EXCUSE_CANCEL;
        rival->meddled = uva_stream_acquire(rival->stream);
        adbc.fibers++;
        peers_spawn("canceller of a query", rival_canceller, rival);
    }
    if (peers_chance(1, 2)) {
        adbc.fibers++;
        peers_spawn("starter of a query", rival_starter, rival);
    } else {
        rival_consume(rival);
    }
}

/* ---- pools -------------------------------------------------------------- */

static void pool_draw(struct pool *pool, struct uva_runtime *runtime)
{
    pool->runtime = runtime;
    pool->most = 1 + (int32_t)sim_choose(CONNECTIONS);
    pool->most_stuck = 1 + (int32_t)sim_choose(CONNECTIONS);
    pool->known.traits = peers_chance(1, 2) ? UVA__KNOWN_ANSWERS : 0;
    if (peers_chance(1, 2))
        pool->known.traits |= UVA__KNOWN_CONNECTS_AT_ONCE;
    pool->known.reset = (enum uva__known_reset)sim_choose(3);
    pool->keeps = peers_chance(1, 6);
    pool->refuses = peers_chance(1, 4);
    pool->sticks = peers_chance(1, 10);
    pool->is_late = peers_chance(1, 2);
    pool->waits = peers_chance(1, 2);
    pool->hurries = peers_chance(1, 2);
    fake_server_begin(&pool->server, &adbc.fibers);
}

static int pool_new(struct pool *pool)
{
    char name[16];
    struct uva_adbc_pool_options options = {
        .driver = name,
        .connections = pool->most,
        .keeps_session = pool->keeps,
        .stuck_connections = pool->most_stuck,
        .connect_ms = pool->hurries ? 1 + (int32_t)sim_choose(2000) : 0,
        .max_age_ms = peers_chance(1, 4) ? 1 + (int32_t)sim_choose(100) : 0,
        .idle_ms = (int32_t)sim_choose(2),
        .wait_ms = pool->waits ? 1 + (int64_t)sim_choose(20) : 0};

    (void)snprintf(name, sizeof(name), "%d", (int)(pool - adbc.pools));
    return uva_adbc_pool_new(pool->runtime, &options, &pool->pool, NULL);
}

static struct pool *pool_find(const struct uva_runtime *runtime)
{
    for (int i = 0; i < adbc.pools_used; i++)
        if (adbc.pools[i].runtime == runtime)
            return &adbc.pools[i];
    return NULL;
}

/* Gives the pool of a runtime, which is made with rivals at first; NULL if that
 * failed. In a loop that ends by itself no wait may keep a query waiting. */
static struct pool *pool_get(struct uva_runtime *runtime,
                             struct expectation *expectation)
{
    struct pool *pool = pool_find(runtime);
    int code;

    if (pool != NULL || adbc.pools_used == POOLS)
        return pool;
    pool = &adbc.pools[adbc.pools_used];
    pool_draw(pool, runtime);
    code = pool_new(pool);
    if (code != 0 && !arena_has_failed() && !fake_threads_have_failed())
        sim_fail("a pool cannot be made: %s", uva_error_name(code));
    if (code != 0)
        return NULL;
    adbc.pools_used++;
    expectation_note("a pool of %d connections", (int)pool->most);
    if (!peers_are_alone() && peers_chance(1, 2))
        fake_server_trouble(&pool->server);
    for (uint64_t n = peers_are_alone() ? 0 : sim_choose(7); n > 0; n--)
        if (adbc.rivals_used < RIVALS)
            rival_start(pool, expectation);
    return pool;
}

struct uva_stream *adbc_peer_stream(struct uva_runtime *runtime,
                                    struct expectation *expectation)
{
    const struct pool *pool = pool_get(runtime, expectation);

    if (pool == NULL || adbc.queries_used == QUERIES)
        return NULL;
    return query_stream(pool, expectation);
}

bool adbc_has_pool(const struct uva_runtime *runtime)
{
    return pool_find(runtime) != NULL;
}

struct uva_stream *adbc_peer_nothing(struct uva_runtime *runtime,
                                     struct expectation *expectation)
{
    const struct pool *pool = pool_find(runtime);
    struct query *query;
    char text[16];

    if (pool == NULL || adbc.queries_used == QUERIES)
        return NULL;
    query = &adbc.queries[adbc.queries_used++];
    query->expectation = &adbc.nothing;
    query->stuck_at = NOWHERE;
    query_excuse(pool, expectation);
    (void)snprintf(text, sizeof(text), "%d", (int)(query - adbc.queries));
    expectation_note("chain %d: query %s, of nothing", expectation->number,
                     text);
    return uva_stream_from_query(pool->pool,
                                 &(struct uva_adbc_query){.sql = text});
}

static void pool_releaser(void *arg)
{
    struct pool *pool = arg;

    for (uint64_t steps = sim_choose(2000); steps > 0; steps--)
        sim_point();
    peers_dawdle();
    expectation_note("a pool is released");
    uva_adbc_pool_release(pool->pool);
    pool->pool = NULL;
    adbc.fibers--;
}

void adbc_release_pools(void)
{
    for (int i = 0; i < adbc.pools_used; i++)
        if (!adbc.pools[i].is_late) {
            adbc.fibers++;
            peers_spawn("releaser of a pool", pool_releaser, &adbc.pools[i]);
        }
}

/* ---- probes ------------------------------------------------------------- */

/* A query that has a connection, and keeps it until its next request. */
struct probe {
    struct expectation expectation;
    struct uva_stream *stream; /* counts */
    bool is_answered;
    bool is_over;
    int code;
};

static int probe_on_batch(void *ctx, struct uva_batch *batch)
{
    (void)batch;
    expectation_note("a probe: a batch");
    ((struct probe *)ctx)->is_answered = true;
    return EAGAIN;
}

static void probe_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct probe *probe = ctx;

    probe->code = outcome->error.code;
    expectation_note("a probe: %s", uva_error_name(probe->code));
    probe->is_answered = probe->is_over = true;
}

static bool probe_is_answered(void *arg)
{
    return ((const struct probe *)arg)->is_answered;
}

static void probe_start(struct probe *probe, const struct pool *pool)
{
    struct query *query = &adbc.queries[adbc.queries_used++];
    const struct uva_consumer consumer = {
        .on_batch = probe_on_batch, .on_done = probe_on_done, .ctx = probe};
    char text[16];

    *probe = (struct probe){
        .expectation = {.total = PROBE_BATCHES, .fails_at = INT64_MAX}};
    query->expectation = &probe->expectation;
    query->stuck_at = NOWHERE;
    (void)snprintf(text, sizeof(text), "%d", (int)(query - adbc.queries));
    expectation_note("a probe: query %s", text);
    probe->stream = uva_stream_from_query(
        pool->pool,
        &(struct uva_adbc_query){.sql = text, .window = {.batches = 1}});
    probe->code = uva_stream_for_each(probe->stream, &consumer, NULL);
    if (probe->code != 0)
        probe->is_answered = probe->is_over = true;
}

static int probe_finish(struct probe *probe)
{
    while (!probe->is_over) {
        probe->is_answered = false;
        uva_stream_resume(probe->stream);
        sim_wait(probe_is_answered, probe);
    }
    uva_stream_release(probe->stream);
    return probe->code;
}

/* How many connections are in a call that does not return: of queries that were
 * cancelled and connects, or of other queries. */
static int pool_stuck(const struct pool *pool, bool is_over)
{
    const struct connection *c;
    int count = 0;

    for (int i = 0; i < 2 * CONNECTIONS; i++) {
        c = pool->all[i];
        if (c != NULL && c->is_stuck)
            count += (c->was_cancelled || c->query == NULL) == is_over;
    }
    return count;
}

static void pool_check_stats(const struct pool *pool, int used)
{
    struct uva_adbc_pool_stats stats;

    uva_adbc_pool_get_stats(pool->pool, &stats);
    if (stats.connections_used != used || stats.queries_waiting != 0 ||
        stats.connections_stuck != pool_stuck(pool, true) ||
        stats.connections_max != pool->most + pool->most_stuck)
        sim_fail("a pool of %d and %d connections with %d used and %d stuck "
                 "states %d used, %d stuck, %d waiting",
                 (int)pool->most, (int)pool->most_stuck, used,
                 pool_stuck(pool, true), (int)stats.connections_used,
                 (int)stats.connections_stuck, (int)stats.queries_waiting);
}

/* All places of the pool are taken at one time. Returns how many probes have
 * failed. */
static int pool_probe(const struct pool *pool, int count)
{
    static struct probe probes[CONNECTIONS];
    int failures = 0, used = 0;

    for (int i = 0; i < count; i++)
        probe_start(&probes[i], pool);
    for (int i = 0; i < count; i++)
        sim_wait(probe_is_answered, &probes[i]);
    for (int i = 0; i < count; i++)
        used += !probes[i].is_over;
    if (used == count)
        pool_check_stats(pool, used);
    for (int i = 0; i < count; i++)
        failures += probe_finish(&probes[i]) != 0;
    return failures;
}

/* The database is well, and there is no other user of the pool: each of its
 * places can be used. A connection that has died fails one query more where the
 * driver cannot be asked for that. */
static void pool_prove(struct pool *pool)
{
    const int count = hosts_limit_sources(pool->runtime) ? 1 : (int)pool->most;
    const int deaths = pool->server.has_trouble &&
                               !uva__known_has(&pool->known, UVA__KNOWN_ANSWERS)
                           ? (int)pool->most
                           : 0;
    int failed = 0, failures;

    pool->refuses = pool->sticks = false;
    do {
        if (adbc.queries_used + count > QUERIES)
            return;
        failures = pool_probe(pool, count);
        failed += failures;
        if (failed > deaths + (arena_has_failed() ? 1 : 0) &&
            !fake_threads_have_failed())
            sim_fail("a pool of %d connections is not well, and its database "
                     "is",
                     (int)pool->most);
    } while (failures > 0);
}

/* ---- the end ------------------------------------------------------------ */

static bool fibers_are_over(void *arg)
{
    (void)arg;
    return adbc.fibers == 0;
}

static bool rivals_are_over(void *arg)
{
    (void)arg;
    for (int i = 0; i < adbc.rivals_used; i++)
        if (!adbc.rivals[i].expectation.over)
            return false;
    return true;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static bool pool_is_provable(const struct pool *pool, int stuck_threads)
{
    return pool->pool != NULL && !pool->waits &&
           !(pool->hurries && peers_are_slow()) &&
           pool_stuck(pool, true) <= pool->most_stuck &&
           (stuck_threads == 0 || pool_stuck(pool, true) <= stuck_threads) &&
           pool_stuck(pool, false) == 0;
}

/* The remains of chains that were given up, such as branches, end first. Calls
 * that are stuck for good have been replaced, or they return now: where few
 * threads may be written off, calls of other sources can have taken them all.
 */
static void pools_prove(int stuck_threads)
{
    if (peers_are_alone() || adbc.pools_used == 0 || peers_chance(1, 2))
        return;
    if (stuck_threads > 0 || peers_chance(1, 2))
        peers_unblock();
    (void)sim_wait_until(never, NULL, sim_now_ns() + MINUTES_NS);
    for (int i = 0; i < adbc.pools_used; i++)
        if (pool_is_provable(&adbc.pools[i], stuck_threads))
            pool_prove(&adbc.pools[i]);
}

/* What fails while the rivals end counts, too: a connect without memory for its
 * job, or without a thread, is made by its query, and has no limit of time. */
void adbc_await(bool may_hang, bool may_close, int stuck_threads)
{
    sim_wait(fibers_are_over, NULL);
    if (!may_hang &&
        !sim_wait_until(rivals_are_over, NULL, sim_now_ns() + AN_HOUR_NS)) {
        peers_unblock();
        sim_wait(rivals_are_over, NULL);
    }
    may_hang = may_hang || arena_has_failed() || fake_threads_have_failed();
    if (!may_hang && !may_close)
        pools_prove(stuck_threads);
    for (int i = 0; i < adbc.rivals_used; i++)
        adbc.rivals[i].expectation.excuses |= EXCUSE_CLOSE;
}

void adbc_end(void)
{
    for (int i = 0; i < adbc.pools_used; i++) {
        uva_adbc_pool_release(adbc.pools[i].pool);
        adbc.pools[i].pool = NULL;
    }
}

void adbc_check(void)
{
    for (int i = 0; i < adbc.pools_used; i++)
        if (adbc.pools[i].drivers != 0 || adbc.pools[i].databases != 0 ||
            adbc.pools[i].connections != 0)
            sim_fail("a pool is gone, and %d connections, %d databases and "
                     "%d drivers are left",
                     adbc.pools[i].connections, adbc.pools[i].databases,
                     adbc.pools[i].drivers);
    for (int i = 0; i < adbc.rivals_used; i++)
        if (!adbc.rivals[i].expectation.over)
            sim_fail("query of chain %d never ended",
                     adbc.rivals[i].expectation.number);
}
