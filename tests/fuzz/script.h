/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile peers whose acts are decided by bytes: a producer that calls our
 * handler, and a handler that our producer calls. Each byte is one call, in any
 * order, with any argument, also inside calls made to the peer.
 *
 * They start no threads, never block and read no clock: to let other threads
 * run, they call the host. So any loop can drive them, a simulated one, too.
 * They obey only those rules that cannot be enforced: no calls through dangling
 * pointers, and no concurrent calls.
 *
 * They count their calls; check the counts once the peer is finished. */
#ifndef UVA_FUZZ_SCRIPT_H
#define UVA_FUZZ_SCRIPT_H

#include <stdatomic.h>

#include "fuzz/fuzz_input.h"
#include "support/fake_source.h"
#include "uvarrow/stream.h"

/* The environment of a script. */
struct script_host {
    /* lets other threads run for a while */
    void (*pause)(void *ctx);
    /* makes the owner of the stream act; `way` chooses how */
    void (*meddle)(void *ctx, int way);
    /* a call to the peer has begun, on any thread: returns once the peer may
     * run; false: it must return at once and make no calls */
    bool (*enter)(void *ctx);
    void (*leave)(void *ctx); /* the call has ended */
    /* surrounds a call of the peer that may wait for such threads */
    void (*wait)(void *ctx, bool begins);
    void *ctx; /* borrows */
};

/* ---- the producer ------------------------------------------------------- */

struct script_producer {
    struct fuzz_input in;
    struct script_host host;
    struct fake_source data; /* its schema and batches */

    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows; may be NULL */
    struct ArrowAsyncDeviceStreamHandler copy; /* copy of the handler (AH-24) */
    void (*release)(struct ArrowAsyncDeviceStreamHandler *); /* its own */
    struct ArrowAsyncProducer *object; /* owns; NULL once it is invalid */
    atomic_int frames;                 /* calls to the peer in progress */
    int calls;                         /* calls of the handler in progress */
    int64_t ordinal;                   /* ordinal of the next batch */
    int on_request; /* steps to make inside the next request */
    int on_cancel;  /* steps to make inside the next cancel */
    int on_extract; /* steps to make inside the next extraction */
    int requested;  /* requests inside the innermost call */

    bool touched;             /* it has called the handler */
    bool schema_taken;        /* on_schema returned 0 */
    bool complete;            /* it has ended the stream with NULL */
    atomic_bool ended;        /* it has called NULL, on_error or release */
    atomic_bool released;     /* it has called release */
    bool gone;                /* ... and no frame of ours is on a stack */
    bool tasks_outlive;       /* tasks may be extracted after that, and before
                                 free_ctx: it may release on a loop thread */
    bool freed;               /* free_ctx was called */
    int64_t offered;          /* tasks with a function, before the end */
    atomic_llong open;        /* batches requested and not offered */
    atomic_llong unrequested; /* tasks offered without a request */
    int64_t window;     /* maximum of open requests; set before the start */
    atomic_long items;  /* tasks not extracted so far */
    atomic_int cancels; /* calls of cancel */
    int starts;         /* calls of start */
    int steps_in_start; /* steps to make inside start */
    int start_code;     /* return code of start */
};

/* Prepares a producer whose acts are in `in`. */
void script_producer_init(struct script_producer *p, struct fuzz_input in,
                          const struct script_host *host);

/* Returns it as a source; its ctx is counted. */
struct uva_async_source script_producer_source(struct script_producer *p);

/* Makes the step that the next bytes choose. Returns false if there are no
 * steps, or if the peer must not act any more. */
bool script_producer_step(struct script_producer *p);

/* Releases the handler, unless it has done so. */
void script_producer_finish(struct script_producer *p);

/* Checks that every object it gave was released, and frees the rest. */
void script_producer_fini(struct script_producer *p);

/* ---- the handler -------------------------------------------------------- */

enum { SCRIPT_TASKS = 64 };

struct script_handler {
    struct fuzz_input in;
    struct script_host host;
    struct ArrowAsyncDeviceStreamHandler handler; /* the handler to be driven */

    struct ArrowAsyncProducer
        *producer; /* borrows: until the runtime is gone */
    struct ArrowAsyncTask tasks[SCRIPT_TASKS]; /* tasks received */
    bool spent[SCRIPT_TASKS];                  /* tasks extracted or refused */
    int declined;                 /* index of the refused task, or -1 */
    struct ArrowDeviceArray kept; /* the latest array extracted */
    int task_count;               /* number of tasks received */
    int calls;                    /* callbacks in progress; at most 1 */
    int answer;                   /* return code of the next callback */
    bool deaf; /* the runtime is gone: only tasks not extracted may be called */

    int64_t requested; /* batches requested validly before the end */
    bool bad;          /* an invalid request was made */
    int64_t came;      /* tasks received */
    int schemas;       /* calls of on_schema */
    int ends;          /* calls with NULL */
    int errors;        /* calls of on_error */
    int releases;      /* calls of release */
    bool cancelled;    /* it has called cancel */
    bool refused;      /* a callback returned an error */
    bool plays;        /* the current callback may make calls itself */
};

/* Prepares a handler whose acts are in `in`. */
void script_handler_init(struct script_handler *h, struct fuzz_input in,
                         const struct script_host *host);

/* Makes the step that the next bytes choose, outside of callbacks. Returns
 * false if there are no steps. */
bool script_handler_step(struct script_handler *h);

/* Extracts the tasks that it holds (AT-02). */
void script_handler_finish(struct script_handler *h);

/* Forgets the tasks that it holds: they were revoked (G-16). */
void script_handler_forget(struct script_handler *h);

/* Checks how it was called, and frees the rest. `accepted`: its release was
 * promised. */
void script_handler_fini(struct script_handler *h, bool accepted);

#endif
