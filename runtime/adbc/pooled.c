/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is taken when the turn of the stream has come, and put back when
 * its result was released. */
#include "adbc/pooled.h"

#include "adbc/read_only.h"

void uva__pooled_init(struct uva__pooled *p, struct uva_adbc_pool *pool,
                      const struct uva__execution_ops *ops)
{
    p->execution.ops = ops;
    p->pool = uva__adbc_pool_acquire(pool);
}

void uva__pooled_needed(struct uva__execution *execution)
{
    struct uva__pooled *p = (struct uva__pooled *)execution;

    uva__adbc_pool_need(p->pool, &p->needed_ns);
}

void uva__pooled_interrupt(struct uva__execution *execution)
{
    const struct uva__pooled *p = (const struct uva__pooled *)execution;

    uva__adbc_pool_cancel(p->pool, &p->connection);
}

int uva__pooled_connect(struct uva__pooled *p, bool may_share)
{
    int code;

    uva__adbc_pool_need(p->pool, &p->needed_ns);
    code =
        uva__adbc_pool_take(p->pool, &p->execution.is_cancelled, p->needed_ns,
                            &p->connection, &p->execution.failure);
    uva__adbc_pool_unneed(p->pool, &p->needed_ns);
    if (code != 0)
        return code;
    p->execution.connection = &p->connection->adbc;
    if (uva__adbc_pool_is_read_only(p->pool))
        return uva__read_only_begin(p->connection, &p->execution.failure);
    if (!p->connection->shares || may_share)
        return 0;
    return uva__adbc_failure_set(
        &p->execution.failure, ENOTSUP,
        "a pooler gives each transaction any of its backends, as pgbouncer "
        "does with pool_mode=transaction, so this could get the rows of "
        "another client: use pool_mode=session; only a query without "
        "parameters can be executed, with the option "
        "adbc.postgresql.use_copy=false");
}

int uva__pooled_prepare(struct uva__execution *execution)
{
    struct uva__pooled *p = (struct uva__pooled *)execution;
    const int code = uva__pooled_connect(p, false);

    if (code == 0)
        atomic_store(&execution->may_cancel, true);
    return code;
}

void uva__pooled_fini(struct uva__pooled *p)
{
    uva__adbc_pool_unneed(p->pool, &p->needed_ns);
    /* a cancel may reach the database late, and end a later query */
    if (p->connection != NULL)
        uva__adbc_pool_put(p->pool, &p->connection,
                           p->execution.is_complete && !p->is_spoiled &&
                               !atomic_load(&p->execution.is_cancelled));
    uva__adbc_pool_unref(p->pool);
}

struct uva_stream *uva__pooled_stream(struct uva__pooled *p,
                                      const struct uva_window *window)
{
    return uva__execution_stream(&p->execution, uva__adbc_pool_runtime(p->pool),
                                 window, uva__adbc_pool_turns(p->pool));
}
