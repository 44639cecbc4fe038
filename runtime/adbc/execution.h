/* SPDX-License-Identifier: Apache-2.0 */
/* A statement that is executed, and its result, as a blocking source. */
#ifndef UVA_ADBC_EXECUTION_H
#define UVA_ADBC_EXECUTION_H

#include <stdatomic.h>

#include "adbc/failure.h"
#include "adbc/interrupt.h"
#include "uvarrow/stream.h"

struct uva__execution;

/* The additional steps of a kind of execution. All on blocking workers; but for
 * `interrupt`, one at a time. */
struct uva__execution_ops {
    const char *name; /* of the source */
    /* makes the statement ready, and sets `may_cancel` as soon as there is one.
     * 0 or an errno, with the failure. NULL: it is ready */
    int (*prepare)(struct uva__execution *execution);
    /* executes, and gives `result` and, if it is known, how many rows were
     * affected. 0 or an errno, with the failure. NULL: executes `statement` */
    int (*run)(struct uva__execution *execution, int64_t *rows);
    /* looks, after what a driver states, whether what it was given has failed:
     * 0 or an errno, with the failure. NULL: it has no input */
    int (*check)(struct uva__execution *execution);
    /* the result was read to its end: makes it count, before that is reported.
     * 0 or an errno, with the failure. NULL: it does */
    int (*finish)(struct uva__execution *execution);
    /* it has started, and is needed; on the loop thread. May be NULL */
    void (*needed)(struct uva__execution *execution);
    /* ends its waits besides its database's: also while another of these
     * functions runs, and again and again. May be NULL */
    void (*interrupt)(struct uva__execution *execution);
    /* the failure states that more is lost than the query. May be NULL */
    void (*lost)(struct uva__execution *execution);
    /* looks at the schema of the result, which it borrows. May be NULL */
    void (*look)(struct uva__execution *execution,
                 const struct ArrowSchema *schema);
    /* whether it may be prepared and run once more, after a failure: then it
     * is as before. Once. NULL: it may not */
    bool (*retry)(struct uva__execution *execution);
    /* the result was read, or released before, and the statement is released:
     * gives back the objects that later queries can use at once, before the
     * stream ends. May be NULL */
    void (*settle)(struct uva__execution *execution);
    /* the statement was released: frees the execution, perhaps after the end of
     * the stream. Any thread */
    void (*free)(struct uva__execution *execution);
};

/* Whether the driver's cancel may be called. */
enum uva__may_cancel {
    UVA__MAY_CANCEL_NOT,
    UVA__MAY_CANCEL,
    UVA__MAY_CANCEL_RUNS /* it is called now */
};

/* The first member of each kind. */
struct uva__execution {
    const struct uva__execution_ops *ops; /* static */
    struct AdbcStatement statement;       /* owns, if it has a driver */
    struct AdbcConnection *connection;    /* borrows: to be cancelled where a
                                             statement cannot be; or NULL */
    struct uva__interrupt interrupt;      /* where the driver has no way to
                                             cancel */
    int64_t busy_ms;  /* that calls of the driver may take; 0: no limit */
    int64_t rows;     /* of the result, as the driver states it; 0 or less: not
                         known */
    bool is_update;   /* no result is wanted, but the number of rows */
    bool reads_ahead; /* of a result the driver may, on threads of its own, for
                         which its release waits */
    struct ArrowArrayStream result;   /* owns */
    struct uva__adbc_failure failure; /* of the last call that failed */
    char described[64];               /* the stream's metadata ... */
    bool is_described;                /* ... if it has any */
    bool is_complete;                 /* the whole result was read */
    bool has_failed;                  /* it was not; set before it is freed */
    atomic_int may_cancel;    /* whether the members above may be used for it */
    atomic_bool is_cancelled; /* no further step is wanted */
};

/* Creates a stream of `execution`, which is cleared but for its ops, and takes
 * it: frees it on failure. Returns the stream, never NULL. Thread: any. */
UVA_MUST_CHECK struct uva_stream *uva__execution_stream(
    struct uva__execution *execution, struct uva_runtime *runtime,
    const struct uva_window *window, struct uva_permits *permits);

/* Sets the metadata of the stream, which are at most 64 bytes. Thread: a
 * worker, before its rows. */
void uva__execution_describe(struct uva__execution *execution, const char *key,
                             const char *value);

/* Creates a stream that has failed, with the text "what: text". Thread: any. */
UVA_MUST_CHECK struct uva_stream *
uva__execution_fail(struct uva_runtime *runtime, int code, const char *what,
                    const char *text);

/* Executes the statement: the default of `run`. Thread: a worker. */
UVA_MUST_CHECK int uva__statement_run(struct uva__execution *execution,
                                      int64_t *rows);

/* Takes back that it may be cancelled. False if it is being cancelled, or could
 * not be so far. Thread: a worker. */
bool uva__execution_withdraw(struct uva__execution *execution);

/* Releases the statement, if there is one. Thread: any. */
void uva__execution_release(struct uva__execution *execution);

/* Has a worker call `run`, which frees something; or calls it itself if the
 * runtime has closed, or there is no memory or thread: a release cannot fail,
 * and what it does not free would stay for ever. Thread: any. */
void uva__worker_call(struct uva_runtime *runtime, void (*run)(void *ctx),
                      void *ctx);

#endif
