/* SPDX-License-Identifier: Apache-2.0 */
/* A session: one connection of a pool, for queries that belong together.
 *
 * Happy path:  the first query takes a connection of the pool, and sets the
 *              options of the session -> queries, one after the other, as there
 *              is one permit for them -> a commit, or a roll-back -> ... -> the
 *              last reference rolls back and puts the connection back.
 *
 * Failures:    a query: the transaction goes on, or not, as the database has
 *              it, and a commit asks it; a commit: then it is rolled back.
 *
 * On cancel:   of a query that had begun: how far it came is not known. The
 *              session is lost, and so is its connection.
 *
 * The permit of the session passes from one execution to the next by the loop,
 * so that no lock is needed. */
#include <errno.h>
#include <stdlib.h>

#include "adbc/pairs.h"
#include "adbc/pooled.h"
#include "uvarrow/sources.h"

struct session {
    const struct uva__handle_ops *ops; /* static, first */
    struct uva_adbc_pool *outer;       /* counts */
    struct uva_permits *permits; /* counts: one permit, within the pool's */
    char **options;              /* owns: of the connection */
    bool autocommits;            /* unless SQL begins a transaction */
    atomic_long refs;            /* the user, and executions */
    atomic_long endings;         /* were made, and have not run */
    atomic_bool is_released;     /* by the user */

    /* of the execution that has the permit, and of the end */
    struct uva__connection *connection; /* owns; NULL: not taken */
    bool is_begun;   /* with `autocommits`, by SQL: in a transaction */
    bool has_failed; /* a query has, in this transaction */
    bool is_lost;    /* a query was cancelled */
};

static struct session *session_of(struct uva_adbc_pool *pool)
{
    return (struct session *)(void *)pool;
}

static const struct session *session_seen(const struct uva_adbc_pool *pool)
{
    return (const struct session *)(const void *)pool;
}

/* ---- steps, on a worker ------------------------------------------------- */

static int autocommit_set(const struct session *s, bool on,
                          struct uva__adbc_failure *failure)
{
    static char key[] = ADBC_CONNECTION_OPTION_AUTOCOMMIT;
    static char enabled[] = ADBC_OPTION_VALUE_ENABLED;
    static char disabled[] = ADBC_OPTION_VALUE_DISABLED;
    char *const pairs[] = {key, on ? enabled : disabled, NULL};

    return uva__connection_set(s->connection, pairs, failure);
}

static int session_roll_back(const struct session *s,
                             struct uva__adbc_failure *failure)
{
    struct AdbcConnection *connection = &s->connection->adbc;
    struct AdbcDriver *driver = connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);

    return uva__adbc_failure_take(
        failure, "cannot roll back",
        driver->ConnectionRollback != NULL
            ? driver->ConnectionRollback(connection, &error)
            : ADBC_STATUS_NOT_IMPLEMENTED,
        &error, driver);
}

static int session_commit(const struct session *s,
                          struct uva__adbc_failure *failure)
{
    struct AdbcConnection *connection = &s->connection->adbc;
    struct AdbcDriver *driver = connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);

    return uva__adbc_failure_take(
        failure, "cannot commit",
        driver->ConnectionCommit != NULL
            ? driver->ConnectionCommit(connection, &error)
            : ADBC_STATUS_NOT_IMPLEMENTED,
        &error, driver);
}

/* Asks whether the transaction goes on: some databases end it with the first
 * query that fails, and take a commit for a roll-back, without a word. */
static int session_ask(const struct session *s,
                       struct uva__adbc_failure *failure)
{
    return uva__connection_execute(s->connection, "SELECT 1",
                                   "cannot commit, as a query has failed",
                                   failure);
}

/* ---- the connection ------------------------------------------------------ */

/* Gives it back to the pool: as it was, or to be closed. */
static void session_put(struct session *s, bool is_clean)
{
    const struct uva__used used = {
        UVA__SQL_OTHER, is_clean ? UVA__USE_COMPLETE : UVA__USE_CANCELLED, ""};

    uva__handle(s->outer)->put(s->outer, &s->connection, &used);
}

static int session_connect(struct session *s, const atomic_bool *is_cancelled,
                           uint64_t needed_ns,
                           struct uva__adbc_failure *failure)
{
    int code =
        uva__handle(s->outer)->take(s->outer, UVA__SQL_OTHER, is_cancelled,
                                    needed_ns, &s->connection, failure);

    if (code != 0)
        return code;
    code = uva__connection_set(s->connection, s->options, failure);
    if (code == 0 && !s->autocommits)
        code = autocommit_set(s, false, failure);
    if (code != 0)
        session_put(s, false);
    return code;
}

/* A query in a transaction that cannot be ended would report success, and be
 * rolled back. */
static bool session_is_over(const struct session *s)
{
    return !s->autocommits && atomic_load(&s->is_released) &&
           atomic_load(&s->endings) == 0;
}

static int session_check(const struct session *s,
                         struct uva__adbc_failure *failure)
{
    if (s->is_lost)
        return uva__adbc_failure_set(failure, ECONNABORTED,
                                     "the session is lost, and rolled back: "
                                     "a query of it was cancelled");
    return session_is_over(s) ? uva__adbc_failure_set(failure, ECANCELED,
                                                      "the session is over")
                              : 0;
}

static int session_take(struct uva_adbc_pool *pool, enum uva__sql sql,
                        const atomic_bool *is_cancelled, uint64_t needed_ns,
                        struct uva__connection **out,
                        struct uva__adbc_failure *failure)
{
    struct session *s = session_of(pool);
    int code = session_check(s, failure);

    if (code == 0 && s->connection == NULL)
        code = session_connect(s, is_cancelled, needed_ns, failure);
    if (code == 0 && sql == UVA__SQL_COMMIT && s->has_failed)
        code = session_ask(s, failure);
    if (code == 0)
        *out = s->connection;
    return code;
}

/* The pool's queries only see the place of the session's connection. */
static void session_cancel(struct uva_adbc_pool *pool,
                           struct uva__connection *const *at)
{
    const struct session *s = session_of(pool);

    (void)at;
    uva__handle(s->outer)->cancel(s->outer, &s->connection);
}

static void session_lose(struct uva_adbc_pool *pool, enum uva__loss loss)
{
    const struct session *s = session_of(pool);

    uva__handle(s->outer)->lose(s->outer, loss);
}

static void session_know(struct uva_adbc_pool *pool, const char *type)
{
    const struct session *s = session_of(pool);

    uva__handle(s->outer)->know(s->outer, type);
}

/* State that its queries leave is for the session's next ones. */
static bool session_must_reset(const struct uva_adbc_pool *pool,
                               const struct uva__connection *connection,
                               const char *text)
{
    (void)pool;
    (void)connection;
    (void)text;
    return false;
}

static void session_take_back(struct uva_adbc_pool *pool,
                              struct uva__connection **at,
                              const struct uva__used *used)
{
    struct session *s = session_of(pool);

    *at = NULL;
    switch (used->how) {
    case UVA__USE_CANCELLED:
        s->is_lost = true;
        session_put(s, false);
        return;
    case UVA__USE_FAILED:
        s->has_failed = true;
        return;
    case UVA__USE_COMPLETE:
        break;
    }
    if (used->sql == UVA__SQL_OTHER || used->sql == UVA__SQL_SAVEPOINT)
        return;
    s->has_failed = false;
    s->is_begun = used->sql == UVA__SQL_BEGIN;
}

/* Ends the session's state on its connection. State that cannot be set back
 * ends with the connection. */
static bool session_clean(const struct session *s)
{
    struct uva__adbc_failure failure = {0};
    bool is_clean = !s->is_begun && s->options[0] == NULL;

    if (is_clean && !s->autocommits)
        is_clean = session_roll_back(s, &failure) == 0 &&
                   (!uva__handle(s->outer)->autocommits(s->outer) ||
                    autocommit_set(s, true, &failure) == 0);
    uva__adbc_failure_fini(&failure);
    return is_clean;
}

/* ---- as a pool ----------------------------------------------------------- */

static struct uva_runtime *session_runtime(const struct uva_adbc_pool *pool)
{
    const struct session *s = session_seen(pool);

    return uva__handle(s->outer)->runtime(s->outer);
}

static struct uva_permits *session_permits(const struct uva_adbc_pool *pool)
{
    return session_seen(pool)->permits;
}

static int32_t session_connections(const struct uva_adbc_pool *pool)
{
    (void)pool;
    return 1;
}

static int64_t session_batch_bytes(const struct uva_adbc_pool *pool)
{
    const struct session *s = session_seen(pool);

    return uva__handle(s->outer)->batch_bytes(s->outer);
}

static bool session_is_read_only(const struct uva_adbc_pool *pool)
{
    (void)pool; /* those have no sessions */
    return false;
}

static bool session_is_forked(const struct uva_adbc_pool *pool)
{
    const struct session *s = session_seen(pool);

    return uva__handle(s->outer)->is_forked(s->outer);
}

static bool session_autocommits(const struct uva_adbc_pool *pool)
{
    const struct session *s = session_seen(pool);

    return s->autocommits && !s->is_begun;
}

/* A driver does not see how SQL changes its transaction. */
static const char *session_refusal(const struct uva_adbc_pool *pool,
                                   enum uva__sql sql)
{
    if (session_seen(pool)->autocommits || sql == UVA__SQL_SAVEPOINT)
        return NULL;
    return sql == UVA__SQL_BEGIN
               ? "the session is in a transaction: it begins with the first "
                 "query, and with the next one after a commit"
               : "the transaction of a session ends by "
                 "uva_stream_from_commit() or uva_stream_from_rollback()";
}

static void session_need(struct uva_adbc_pool *pool, uint64_t *needed_ns)
{
    const struct session *s = session_of(pool);

    uva__handle(s->outer)->need(s->outer, needed_ns);
}

static void session_unneed(struct uva_adbc_pool *pool, uint64_t *needed_ns)
{
    const struct session *s = session_of(pool);

    uva__handle(s->outer)->unneed(s->outer, needed_ns);
}

static void session_get_stats(const struct uva_adbc_pool *pool,
                              struct uva_adbc_pool_stats *out)
{
    const struct session *s = session_seen(pool);

    uva__handle(s->outer)->get_stats(s->outer, out);
}

static void session_acquire(struct uva_adbc_pool *pool)
{
    atomic_fetch_add(&session_of(pool)->refs, 1);
}

static void session_free(struct session *s)
{
    uva_permits_release(s->permits);
    uva__handle(s->outer)->unref(s->outer);
    free(s->options);
    free(s);
}

static void session_unref(struct uva_adbc_pool *pool)
{
    struct session *s = session_of(pool);

    if (atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    if (s->connection != NULL) {
        /* a server that does not answer keeps no place of the pool */
        uva__handle(s->outer)->cancel(s->outer, &s->connection);
        session_put(s, session_clean(s));
    }
    session_free(s);
}

static void session_on_worker(void *ctx)
{
    session_unref(ctx);
}

static void session_release(struct uva_adbc_pool *pool)
{
    struct uva_runtime *runtime = uva_runtime_acquire(session_runtime(pool));

    atomic_store(&session_of(pool)->is_released, true);
    uva__worker_call(runtime, session_on_worker, pool);
    uva_runtime_release(runtime);
}

static const struct uva__handle_ops session_ops = {
    .runtime = session_runtime,
    .permits = session_permits,
    .connections = session_connections,
    .batch_bytes = session_batch_bytes,
    .autocommits = session_autocommits,
    .is_read_only = session_is_read_only,
    .refusal = session_refusal,
    .is_forked = session_is_forked,
    .acquire = session_acquire,
    .unref = session_unref,
    .release = session_release,
    .get_stats = session_get_stats,
    .need = session_need,
    .unneed = session_unneed,
    .take = session_take,
    .cancel = session_cancel,
    .lose = session_lose,
    .know = session_know,
    .must_reset = session_must_reset,
    .put = session_take_back,
    .is_session = true};

/* ---- making one --------------------------------------------------------- */

static const char *session_fault(const struct uva_adbc_pool *pool,
                                 const struct uva_adbc_session *o)
{
    for (size_t i = 0; i < 4; i++)
        if (o->reserved[i] != NULL)
            return "reserved members must be NULL; clear the struct before "
                   "filling it in";
    if (!uva__pairs_are_texts(o->options))
        return "options: a key or value has a NUL";
    if (uva__handle(pool)->is_read_only(pool))
        return "a pool that only reads has no sessions";
    return uva__handle(pool)->is_session ? "a session has no sessions" : NULL;
}

int uva_adbc_pool_session(struct uva_adbc_pool *pool,
                          const struct uva_adbc_session *options,
                          struct uva_adbc_pool **out, struct uva_error *error)
{
    static const struct uva_adbc_session none;
    const struct uva_adbc_session *o = options != NULL ? options : &none;
    const char *fault;
    struct session *s;
    int code = ENOMEM;

    if (pool == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "session: the %s is NULL",
                             pool == NULL ? "pool" : "result");
    fault = session_fault(pool, o);
    if (fault != NULL)
        return uva_error_set(error, EINVAL, "uva_adbc_session: %s", fault);
    s = calloc(1, sizeof(*s));
    if (s != NULL)
        s->options = uva__pairs_read(o->options);
    if (s == NULL || s->options == NULL)
        (void)uva_error_set(error, code, "no memory for a session");
    else
        code = uva_permits_within(uva__handle(pool)->permits(pool), 1,
                                  uva__handle(pool)->wait_ms(pool), &s->permits,
                                  error);
    if (code != 0) {
        if (s != NULL)
            free(s->options);
        free(s);
        return code;
    }
    uva_permits_explain(s->permits,
                        "another query of the session is not finished");
    s->ops = &session_ops;
    s->outer = pool;
    uva__handle(pool)->acquire(pool);
    s->autocommits = o->autocommit;
    atomic_init(&s->refs, 1);
    atomic_init(&s->endings, 0);
    atomic_init(&s->is_released, false);
    *out = (struct uva_adbc_pool *)(void *)s;
    return 0;
}

/* ---- the end of a transaction -------------------------------------------- */

struct ending {
    struct uva__pooled pooled; /* first */
    bool commits;
    bool has_run; /* it counts no longer */
};

/* Without a connection there is no transaction to end. */
static int ending_prepare(struct uva__execution *e)
{
    const struct ending *n = (const struct ending *)e;
    const struct session *s = session_of(n->pooled.pool);
    const int code = session_check(s, &e->failure);

    return code != 0 || s->connection == NULL ? code : uva__pooled_prepare(e);
}

/* Later queries are in another transaction. */
static void ending_uncount(struct ending *n)
{
    if (!n->has_run)
        atomic_fetch_sub(&session_of(n->pooled.pool)->endings, 1);
    n->has_run = true;
}

/* The driver may not see that a commit that fails has ended the transaction. */
static int ending_run(struct uva__execution *e, int64_t *rows)
{
    struct ending *n = (struct ending *)e;
    struct session *s = session_of(n->pooled.pool);
    struct uva__adbc_failure second = {0};
    int code = 0;

    (void)rows;
    ending_uncount(n);
    if (s->connection == NULL)
        return 0;
    if (!n->commits)
        code = session_roll_back(s, &e->failure);
    else if (s->has_failed)
        code = session_ask(s, &e->failure);
    if (code == 0 && n->commits)
        code = session_commit(s, &e->failure);
    if (code != 0)
        n->pooled.is_spoiled =
            !n->commits || session_roll_back(s, &second) != 0;
    uva__adbc_failure_fini(&second);
    s->has_failed = false;
    return code;
}

static void ending_free(struct uva__execution *e)
{
    struct ending *n = (struct ending *)e;

    ending_uncount(n);
    uva__pooled_fini(&n->pooled);
    free(n);
}

#define ENDING_OPS(NAME)                                                       \
    {                                                                          \
        .name = (NAME), .needed = uva__pooled_needed,                          \
        .prepare = ending_prepare, .run = ending_run,                          \
        .interrupt = uva__pooled_interrupt, .free = ending_free,               \
    }

static const struct uva__execution_ops commit_ops = ENDING_OPS("commit");
static const struct uva__execution_ops rollback_ops = ENDING_OPS("rollback");

static struct uva_stream *ending_stream(struct uva_adbc_pool *session,
                                        bool commits, const char *what)
{
    const struct uva_window window = {0};
    struct uva_runtime *runtime =
        session != NULL ? uva__handle(session)->runtime(session) : NULL;
    struct ending *n;

    if (session == NULL || !uva__handle(session)->is_session)
        return uva__execution_fail(runtime, EINVAL, what,
                                   "this is not a session");
    if (session_seen(session)->autocommits)
        return uva__execution_fail(runtime, EINVAL, what,
                                   "each query of the session is a transaction "
                                   "by itself (autocommit)");
    n = calloc(1, sizeof(*n));
    if (n == NULL)
        return uva__execution_fail(runtime, ENOMEM, what, "no memory");
    uva__pooled_init(&n->pooled, session,
                     commits ? &commit_ops : &rollback_ops);
    n->commits = commits;
    atomic_fetch_add(&session_of(session)->endings, 1);
    return uva__pooled_stream(&n->pooled, &window);
}

struct uva_stream *uva_stream_from_commit(struct uva_adbc_pool *session)
{
    return ending_stream(session, true, "from_commit");
}

struct uva_stream *uva_stream_from_rollback(struct uva_adbc_pool *session)
{
    return ending_stream(session, false, "from_rollback");
}
