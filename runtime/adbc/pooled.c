/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is taken when the stream has a permit, and put back when
 * its result was released: before the stream ends, or after that if its session
 * must be reset first, for which only the query waits that needs the permit. */
#include "adbc/pooled.h"

#include "adbc/read_only.h"

void uva__pooled_init(struct uva__pooled *p, struct uva_adbc_pool *pool,
                      const struct uva__execution_ops *ops)
{
    p->execution.ops = ops;
    p->pool = pool;
    uva__handle(pool)->acquire(pool);
}

void uva__pooled_needed(struct uva__execution *execution)
{
    struct uva__pooled *p = (struct uva__pooled *)execution;

    uva__handle(p->pool)->need(p->pool, &p->needed_ns);
}

void uva__pooled_interrupt(struct uva__execution *execution)
{
    const struct uva__pooled *p = (const struct uva__pooled *)execution;

    uva__handle(p->pool)->cancel(p->pool, &p->connection);
}

static void connection_warn(struct uva__connection *c,
                            struct uva_runtime *runtime)
{
    if (c->warns)
        uva_runtime_log(runtime, UVA_LOG_WARN, NULL,
                        "PostgreSQL is behind a pooler: if it shares backends "
                        "between sessions, as pgbouncer does without "
                        "pool_mode=session, queries may get the rows of "
                        "other clients");
    c->warns = false;
}

/* A connection that is lost here has not executed any part of the query. */
static int connection_restrict(struct uva__pooled *p)
{
    struct uva__adbc_failure *failure = &p->execution.failure;
    const int code = uva__read_only_begin(p->connection, failure);

    if (code != 0 && failure->loss == UVA__LOSS_CONNECTION)
        failure->loss = UVA__LOSS_UNUSED;
    return code;
}

int uva__pooled_connect(struct uva__pooled *p, bool may_share)
{
    int code;

    uva__handle(p->pool)->need(p->pool, &p->needed_ns);
    code = uva__handle(p->pool)->take(p->pool, p->sql,
                                      &p->execution.is_cancelled, p->needed_ns,
                                      &p->connection, &p->execution.failure);
    uva__handle(p->pool)->unneed(p->pool, &p->needed_ns);
    if (code != 0 && code != ECANCELED)
        uva__adbc_failure_note(&p->execution.failure, "adbc.step", "connect");
    if (code != 0)
        return code;
    p->execution.connection = &p->connection->adbc;
    p->execution.interrupt = p->connection->interrupt;
    p->execution.reads_ahead =
        !uva__known_has(p->connection->known, UVA__KNOWN_DROPS_RESULTS);
    connection_warn(p->connection, uva__handle(p->pool)->runtime(p->pool));
    if (uva__handle(p->pool)->is_read_only(p->pool))
        return connection_restrict(p);
    if (!p->connection->shares || may_share ||
        !uva__handle(p->pool)->autocommits(p->pool)) /* has its backend */
        return 0;
    return uva__adbc_failure_set(
        &p->execution.failure, ENOTSUP,
        "a pooler gives each transaction any of its backends, as pgbouncer "
        "does with pool_mode=transaction, so this could get the rows of "
        "another client: use pool_mode=session, or a session, which is one "
        "transaction; besides, only a query without parameters can be "
        "executed, with the option adbc.postgresql.use_copy=false");
}

int uva__pooled_prepare(struct uva__execution *execution)
{
    struct uva__pooled *p = (struct uva__pooled *)execution;
    const int code = uva__pooled_connect(p, false);

    if (code == 0)
        atomic_store(&execution->may_cancel, UVA__MAY_CANCEL);
    return code;
}

/* A cancel may reach the database late, and end a later query. */
static enum uva__use pooled_use(const struct uva__pooled *p)
{
    const struct uva__execution *e = &p->execution;

    if (atomic_load(&e->is_cancelled) || p->is_spoiled)
        return UVA__USE_CANCELLED;
    if (e->is_complete)
        return UVA__USE_COMPLETE;
    return e->has_failed ? UVA__USE_FAILED : UVA__USE_CANCELLED;
}

void uva__pooled_settle(struct uva__execution *e)
{
    struct uva__pooled *p = (struct uva__pooled *)e;
    const struct uva__used used = {p->sql, UVA__USE_COMPLETE, p->text};

    if (pooled_use(p) != UVA__USE_COMPLETE ||
        uva__handle(p->pool)->must_reset(p->pool, p->connection, p->text) ||
        !uva__execution_withdraw(e))
        return;
    e->connection = NULL;
    uva__handle(p->pool)->put(p->pool, &p->connection, &used);
}

void uva__pooled_lost(struct uva__execution *execution)
{
    const struct uva__pooled *p = (const struct uva__pooled *)execution;

    uva__handle(p->pool)->lose(p->pool, execution->failure.loss);
}

void uva__pooled_look(struct uva__execution *execution,
                      const struct ArrowSchema *schema)
{
    const struct uva__pooled *p = (const struct uva__pooled *)execution;
    char type[40];

    if (uva__known_is_strange(schema, type, sizeof(type)))
        uva__handle(p->pool)->know(p->pool, type);
}

/* The driver's cancel is not called from now on. False if it is called. */
static bool pooled_withdraw(struct uva__execution *e)
{
    return atomic_load(&e->may_cancel) == UVA__MAY_CANCEL_NOT ||
           uva__execution_withdraw(e);
}

bool uva__pooled_retry(struct uva__pooled *p, bool may_repeat)
{
    const struct uva__used used = {p->sql, UVA__USE_FAILED, p->text};
    struct uva__execution *e = &p->execution;

    if (uva__handle(p->pool)->is_session)
        return false; /* the queries before it are lost, too */
    if (e->failure.loss != UVA__LOSS_UNUSED &&
        !(may_repeat && e->failure.loss == UVA__LOSS_CONNECTION))
        return false;
    if (p->connection == NULL || !pooled_withdraw(e))
        return false;
    uva__execution_release(e);
    e->connection = NULL;
    uva__handle(p->pool)->put(p->pool, &p->connection, &used);
    return true;
}

void uva__pooled_fini(struct uva__pooled *p)
{
    const struct uva__used used = {p->sql, pooled_use(p), p->text};

    uva__handle(p->pool)->unneed(p->pool, &p->needed_ns);
    if (p->connection != NULL)
        uva__handle(p->pool)->put(p->pool, &p->connection, &used);
    uva__handle(p->pool)->unref(p->pool);
}

struct uva_stream *uva__pooled_stream(struct uva__pooled *p,
                                      const struct uva_window *window)
{
    return uva__execution_stream(&p->execution,
                                 uva__handle(p->pool)->runtime(p->pool), window,
                                 uva__handle(p->pool)->permits(p->pool));
}
