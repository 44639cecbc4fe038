/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer that plays a script, lawful or not, and keeps books of
 * what is done to it. The script is a line of words, each perhaps with "*n":
 *
 *   schema         on_schema; schema-none, schema-dead, schema-alone: without
 *                  one, with a released one, without a producer
 *   task           waits for a request, then on_next_task; push: does not wait
 *   broken, empty, crooked, alien, slow, ending
 *                  tasks pushed whose extraction fails with EIO, gives nothing,
 *                  gives what does not fit the schema, of another device, waits
 *                  for the gate, calls on_error and release on its own stack
 *   hollow         a task without extract_data
 *   tagged, smudged  a task pushed with metadata, sound or malformed
 *   end            on_next_task(NULL)
 *   error          on_error(EIO, "the disk is on fire"); error-0: with code 0;
 *                  error-tagged, error-smudged: with metadata
 *   release        release
 *   copy           goes on with a copy of the handler (AH-24)
 *   poison         sets the handler's producer to what nobody may read
 *   free           frees the producer object
 *   thread         start returns here; the rest runs on a thread of its own
 *   gate           waits until the test opens the gate
 *   watch          waits until another thread is at the gate
 *   asked          waits for a request
 *   cancelled      waits until it is cancelled
 *   flood          pushes tasks until it is cancelled
 *
 * A NULL `out` crashes it. The producer object is freed behind the last
 * word, at the latest. Memory is malloc's. */
#ifndef UVA_SUPPORT_HOSTILE_PRODUCER_H
#define UVA_SUPPORT_HOSTILE_PRODUCER_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/fake_source.h"
#include "uvarrow/stream.h"

/* What it does inside request. */
enum hostile_request {
    HOSTILE_COUNTS,   /* adds up */
    HOSTILE_IGNORES,  /* nothing at all */
    HOSTILE_DELIVERS, /* calls on_next_task on the stack, as often (AP-04) */
    HOSTILE_ENDS,     /* calls NULL and release on the stack */
    HOSTILE_OVERLAPS, /* has another thread call on_next_task (TH-01) */
    HOSTILE_DAWDLES,  /* outside of callbacks: waits for the gate */
    HOSTILE_BLOCKS    /* outside of callbacks: waits for the next to return, as
                         if a lock were held over them (TH-06) */
};

/* What it does inside cancel, besides noting it. */
enum hostile_cancel {
    HOSTILE_NOTES,
    HOSTILE_TELLS,    /* on_error(ECANCELED), on the stack (R08) */
    HOSTILE_LETS_GO,  /* and release */
    HOSTILE_GOES_DEAF /* does not return before the gate opens */
};

struct hostile_producer {
    /* what it does; set before the start */
    const char *script;
    int start_code;         /* start returns this, at its end ... */
    const char *start_text; /* ... and says this; or NULL */
    enum hostile_request request;
    int request_at; /* only in this call, the first is 1; 0: all */
    enum hostile_cancel cancel;
    int32_t window;              /* of the source */
    bool cheap;                  /* likewise */
    const char *about;           /* additional_metadata; or NULL */
    ArrowDeviceType device_type; /* 1 */
    bool printed;                /* laid out as the document prints it */

    /* what happened; any thread */
    struct fake_source data;  /* its schema and batches */
    atomic_long offered;      /* tasks with a function */
    atomic_long spent;        /* of these, extracted */
    atomic_long credits;      /* requested, in all */
    atomic_long requests;     /* calls of request */
    atomic_long cancels;      /* calls of cancel */
    atomic_long most;         /* requests in one callback, at most */
    atomic_long together;     /* threads in request, at most */
    atomic_long refusals;     /* answers other than 0 to a task (G-18) */
    atomic_int schema_answer; /* of on_schema */
    atomic_long running;      /* calls of its functions, just now */
    atomic_long faults;       /* n < 1; calls behind a terminal callback, or
                                 not over when it returned (TH-10, AP-24);
                                 free_ctx before all is over */
    atomic_long freed;        /* calls of free_ctx */
    atomic_long played;       /* scripts that are over */
    atomic_long on_loop;      /* calls of its own, on the thread `loop` */
    pthread_t loop;

    /* its own */
    struct ArrowAsyncDeviceStreamHandler *handler, copy;
    void (*release)(struct ArrowAsyncDeviceStreamHandler *); /* its first */
    void *object; /* the producer object; NULL once freed */
    const char *rest;
    pthread_t thread;
    bool threaded;
    bool ended;             /* a terminal callback was made */
    pthread_mutex_t serial; /* held over callbacks, but for OVERLAPS */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct { /* under the lock */
        int64_t credit;
        int inside, cancelling; /* threads in request, in cancel */
        int64_t back;           /* callbacks that have returned */
        int64_t next;           /* ordinal of the next task */
        bool cancelled;
        bool open; /* the gate is */
        int at_gate;
    } now;
};

void hostile_producer_init(struct hostile_producer *peer, const char *script);

/* Joins its thread, and checks the books: everything that was given came back,
 * once, and no rule was broken towards it. */
void hostile_producer_fini(struct hostile_producer *peer);

/* Options for it. Borrows `peer`. */
struct uva_async_source hostile_producer_source(struct hostile_producer *peer);

/* Opens the gate; waits until `n` threads are at it. Thread: any. */
void hostile_producer_open_gate(struct hostile_producer *peer);
void hostile_producer_await_gate(struct hostile_producer *peer, int n);

/* Waits until nobody is inside request. Thread: any. */
void hostile_producer_await_calm(struct hostile_producer *peer);

#endif
