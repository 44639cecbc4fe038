/* SPDX-License-Identifier: Apache-2.0 */
/* An execution on a connection of a pool. */
#ifndef UVA_ADBC_POOLED_H
#define UVA_ADBC_POOLED_H

#include "adbc/execution.h"
#include "adbc/handle.h"

struct uva__pooled {
    struct uva__execution execution; /* first */
    struct uva_adbc_pool *pool;      /* counts */
    enum uva__sql sql;               /* its effect on a transaction */
    const char *text; /* borrows: the executed text; NULL: no text that leaves
                         state in a session */
    struct uva__connection *connection; /* owns; NULL: not taken, or put back */
    bool is_spoiled;    /* the connection is not as it was; it is closed */
    uint64_t needed_ns; /* since when it waits for one; 0: it does not */
};

/* Initialises it in cleared memory. Thread: any. */
void uva__pooled_init(struct uva__pooled *pooled, struct uva_adbc_pool *pool,
                      const struct uva__execution_ops *ops);

/* Takes a connection. If its session shares a backend with others, that is an
 * error unless `may_share`: calls that belong together could then come from
 * several clients. 0 or an errno, with the failure. Thread: blocking worker. */
int uva__pooled_connect(struct uva__pooled *pooled, bool may_share);

/* For uva__execution_ops.prepare without a statement: takes a connection and
 * lets it be cancelled. */
int uva__pooled_prepare(struct uva__execution *execution);

/* Ops of pooled executions. */
void uva__pooled_needed(struct uva__execution *execution);
void uva__pooled_interrupt(struct uva__execution *execution);

/* Puts a connection back that needs no reset. */
void uva__pooled_settle(struct uva__execution *execution);
void uva__pooled_lost(struct uva__execution *execution);
void uva__pooled_look(struct uva__execution *execution,
                      const struct ArrowSchema *schema);

/* Whether a failed execution may be tried once more, as its connection was lost
 * before a statement was executed, or it `may_repeat` in any case. Then it has
 * no statement and no connection. Thread: blocking worker. */
bool uva__pooled_retry(struct uva__pooled *pooled, bool may_repeat);

/* Puts the connection back, and drops the pool. Thread: any. */
void uva__pooled_fini(struct uva__pooled *pooled);

/* Creates the stream, as uva__execution_stream() does. Thread: any. */
UVA_MUST_CHECK struct uva_stream *
uva__pooled_stream(struct uva__pooled *pooled, const struct uva_window *window);

#endif
