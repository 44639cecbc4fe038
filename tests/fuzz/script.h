/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile peers that do what bytes say: a producer that calls a handler of
 * ours, and a handler that a producer of ours calls. Each byte is one call, in
 * any order, with any argument, also inside calls that are made to them.
 *
 * They start no thread, wait for nothing and look at no clock: where the others
 * are to go on, the host is asked. So they can be driven by any loop, and by a
 * simulated one. What a peer may never do is kept, for nothing can be done
 * about it: calls through pointers that have gone, on several threads at a
 * time.
 *
 * Books are kept; check them once the peer has gone home. */
#ifndef UVA_FUZZ_SCRIPT_H
#define UVA_FUZZ_SCRIPT_H

#include <stdatomic.h>

#include "fuzz/fuzz_input.h"
#include "support/fake_source.h"
#include "uvarrow/stream.h"

/* Whom a script runs with. */
struct script_host {
    /* lets the others go on for a while */
    void (*pause)(void *ctx);
    /* has the owner of the stream do something; `way` says what */
    void (*meddle)(void *ctx, int way);
    /* a call to the peer has begun, on whatever thread: returns once the peer
     * may go on; false: only at once, and without a call of its own */
    bool (*enter)(void *ctx);
    void (*leave)(void *ctx); /* it is over */
    /* brackets a call of the peer's that may wait for such threads */
    void (*wait)(void *ctx, bool begins);
    void *ctx; /* borrows */
};

/* ---- the producer ------------------------------------------------------- */

struct script_producer {
    struct fuzz_input in;
    struct script_host host;
    struct fake_source data; /* its schema and batches */

    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows; NULL: not yet */
    struct ArrowAsyncDeviceStreamHandler copy;     /* of it (AH-24) */
    void (*release)(struct ArrowAsyncDeviceStreamHandler *); /* as it was */
    struct ArrowAsyncProducer *object; /* owns; NULL once it cannot be called */
    atomic_int frames;                 /* calls made to it that run now */
    int calls;                         /* calls of the handler that run now */
    int64_t ordinal;                   /* of the next batch */
    int on_request;                    /* steps inside the next request */
    int on_cancel;                     /* steps inside the next cancel */
    int on_extract;                    /* steps inside the next extraction */
    int asked;                         /* requests inside the innermost call */

    bool touched;         /* it has called the handler */
    bool schema_taken;    /* on_schema answered 0 */
    bool complete;        /* it has called NULL */
    atomic_bool ended;    /* it has called NULL, on_error or release */
    atomic_bool released; /* it has called release */
    bool gone;            /* ... and nothing of ours is below any more */
    bool freed;           /* free_ctx was called */
    int64_t offered;      /* tasks with a function, before the end */
    int64_t open;         /* batches requested and not offered */
    int64_t unasked;      /* offered while none was */
    int64_t window;       /* the most that may be; set before the start */
    atomic_long items;    /* tasks not yet extracted */
    atomic_int cancels;   /* calls of cancel */
    int starts;           /* calls of start */
    bool prompt;          /* no thread decides on a call while it is at work */
    int steps_in_start;   /* that are made inside it */
    int start_code;       /* that it returns */
};

/* A producer that does what `in` says. */
void script_producer_init(struct script_producer *p, struct fuzz_input in,
                          const struct script_host *host);

/* It as a source; its ctx is counted. */
struct uva_async_source script_producer_source(struct script_producer *p);

/* Does what the next bytes say. False: there are none, or it may do nothing any
 * more. */
bool script_producer_step(struct script_producer *p);

/* Lets go of the handler, if it has it still. */
void script_producer_go_home(struct script_producer *p);

/* Checks that all it gave came back, and frees what is left. */
void script_producer_fini(struct script_producer *p);

/* ---- the handler -------------------------------------------------------- */

enum { SCRIPT_TASKS = 64 };

struct script_handler {
    struct fuzz_input in;
    struct script_host host;
    struct ArrowAsyncDeviceStreamHandler handler; /* to be driven */

    struct ArrowAsyncProducer
        *producer; /* borrows: till the runtime has gone */
    struct ArrowAsyncTask tasks[SCRIPT_TASKS]; /* that came */
    bool spent[SCRIPT_TASKS];     /* of these, extracted or refused */
    int declined;                 /* of these, the one refused, or -1 */
    struct ArrowDeviceArray kept; /* the last one extracted */
    int task_count;               /* of those */
    int calls;                    /* callbacks that run now; at most 1 */
    int answer;                   /* of the next callback */
    bool deaf;                    /* the runtime has gone: nothing of it is
                                     called but tasks not yet spent */

    int64_t asked;  /* batches, by lawful requests before the end */
    bool bad;       /* an unlawful one */
    int64_t came;   /* tasks */
    int schemas;    /* calls of on_schema */
    int ends;       /* calls with NULL */
    int errors;     /* calls of on_error */
    int releases;   /* calls of release */
    bool cancelled; /* it has called cancel */
    bool prompt;    /* its calls are heeded at once: no thread in between */
    bool refused;   /* it has answered with an error */
    bool plays;     /* the callback that runs may call something itself */
};

/* A handler that does what `in` says. */
void script_handler_init(struct script_handler *h, struct fuzz_input in,
                         const struct script_host *host);

/* Does what the next bytes say, outside of callbacks. False: there are none. */
bool script_handler_step(struct script_handler *h);

/* Extracts what it holds (AT-02). */
void script_handler_go_home(struct script_handler *h);

/* Forgets what it holds: that was taken back from it (G-16). */
void script_handler_forget(struct script_handler *h);

/* Checks how it was treated, and frees what is left. `accepted`: its release
 * was promised. */
void script_handler_fini(struct script_handler *h, bool accepted);

#endif
