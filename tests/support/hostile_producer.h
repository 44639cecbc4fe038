/* SPDX-License-Identifier: Apache-2.0 */
/* A foreign producer that plays a script, valid or not, and counts the calls to
 * it. The script is a line of words, each optionally followed by "*n":
 *
 *   schema         on_schema; schema-none, schema-dead, schema-alone: without
 *                  one, with a released one, without a producer
 *   task           waits for a request, then on_next_task; push: does not wait
 *   broken, negative, empty, crooked, alien, slow, ending
 *                  pushes a task; its extraction fails with EIO, fails with
 *                  -EIO, gives no array, gives one that does not fit the
 *                  schema, gives one of another device, waits for the gate,
 *                  calls on_error and release on its own stack
 *   hollow         a task without extract_data
 *   tagged, smudged  pushes a task with metadata, valid or malformed
 *   end            on_next_task(NULL)
 *   error          on_error(EIO, "the disk is on fire"); error-0,
 *                  error-negative: with code 0, and -EIO; error-tagged,
 *                  error-smudged: with metadata
 *   error-aborted  on_error(ECONNABORTED, "the cable is cut")
 *   release        release
 *   copy           continues with a copy of the handler (AH-24)
 *   poison         sets the handler's producer to an unreadable address
 *   free           frees the producer object
 *   thread         start returns here; the rest runs on a separate thread
 *   gate           waits until the test opens the gate
 *   watch          waits until another thread is at the gate
 *   asked          waits for a request
 *   cancelled      waits until it is cancelled
 *   flood          pushes tasks until it is cancelled
 *
 * A NULL `out` crashes it. The producer object is freed after the last
 * word, at the latest. Memory comes from malloc(). */
#ifndef UVA_SUPPORT_HOSTILE_PRODUCER_H
#define UVA_SUPPORT_HOSTILE_PRODUCER_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/fake_source.h"
#include "uvarrow/stream.h"

/* Its reaction inside request. */
enum hostile_request {
    HOSTILE_COUNTS,   /* adds up the numbers */
    HOSTILE_IGNORES,  /* no reaction */
    HOSTILE_DELIVERS, /* calls on_next_task n times on its stack (AP-04) */
    HOSTILE_ENDS,     /* calls on_next_task(NULL) and release on its stack */
    HOSTILE_OVERLAPS, /* another thread calls on_next_task (TH-01) */
    HOSTILE_DAWDLES,  /* outside of callbacks: waits for the gate */
    /* Outside of callbacks: waits until the next callback returns, as if a lock
     * were held during callbacks (TH-06). */
    HOSTILE_BLOCKS
};

/* Its reaction inside cancel, in addition to recording it. */
enum hostile_cancel {
    HOSTILE_NOTES,
    HOSTILE_REPORTS,  /* calls on_error(ECANCELED) on its stack */
    HOSTILE_RELEASES, /* calls release on its stack, too */
    HOSTILE_HANGS     /* does not return until the gate opens */
};

struct hostile_producer {
    /* its plan; set before the start */
    const char *script;
    int start_code;         /* start returns this code ... */
    const char *start_text; /* ... with this text; or NULL */
    enum hostile_request request;
    int request_at; /* acts only in this call of request, from 1; 0: in all */
    enum hostile_cancel cancel;
    int32_t window;              /* option of the source */
    bool on_loop;                /* option of the source */
    const char *about;           /* additional_metadata; or NULL */
    ArrowDeviceType device_type; /* device type of the object */
    bool printed;                /* uses the layout printed in the document */
    int interrupt_at; /* the interrupt that opens the gate, from 1; 0: the
                         source has no interrupt */

    /* its record; any thread */
    struct fake_source data;  /* its schema and batches */
    atomic_long offered;      /* tasks with a function */
    atomic_long spent;        /* tasks extracted */
    atomic_long credits;      /* batches requested in total */
    atomic_long requests;     /* calls of request */
    atomic_long cancels;      /* calls of cancel */
    atomic_long interrupts;   /* calls of interrupt */
    atomic_long most;         /* maximum of requests in one callback */
    atomic_long together;     /* maximum of threads in request */
    atomic_long refusals;     /* tasks that the handler refused (G-18) */
    atomic_int schema_answer; /* return code of on_schema */
    atomic_long running;      /* calls of its functions in progress */
    /* Faults of the library: a request of n < 1; calls after a terminal
     * callback, or still running when it returned (TH-10, AP-24); free_ctx
     * before the last call has returned. */
    atomic_long faults;
    atomic_long freed;  /* calls of free_ctx */
    atomic_long played; /* scripts that have ended */
    atomic_bool held;   /* other threads than the loop's do not play so far */
    atomic_long calls_on_loop; /* calls of its methods on the thread `loop` */
    pthread_t loop;

    /* private state */
    struct ArrowAsyncDeviceStreamHandler *handler, copy;
    void (*release)(struct ArrowAsyncDeviceStreamHandler *); /* original */
    void *object; /* the producer object; NULL once freed */
    const char *rest;
    pthread_t thread;
    bool threaded;
    bool ended;             /* a terminal callback was made */
    pthread_mutex_t serial; /* held during callbacks, unless it OVERLAPS */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct { /* guarded by the lock */
        int64_t credit;
        int inside, cancelling; /* threads in request, and in cancel */
        int64_t back;           /* callbacks that have returned */
        int64_t next;           /* ordinal of the next task */
        bool cancelled;
        bool open; /* the gate is open */
        int at_gate;
    } now;
};

void hostile_producer_init(struct hostile_producer *peer, const char *script);

/* Joins its thread and checks the counts: everything that it gave was released
 * once, and the library broke no rule. */
void hostile_producer_fini(struct hostile_producer *peer);

/* Returns source options for it. Borrows `peer`. */
struct uva_async_source hostile_producer_source(struct hostile_producer *peer);

/* Opens the gate; waits until `n` threads are at it. Thread: any. */
void hostile_producer_open_gate(struct hostile_producer *peer);
void hostile_producer_await_gate(struct hostile_producer *peer, int n);

/* Waits until no thread is inside request. Thread: any. */
void hostile_producer_await_calm(struct hostile_producer *peer);

#endif
