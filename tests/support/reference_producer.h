/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that follows the interface exactly, and is passive: each step
 * makes the next callback. The test decides which thread makes the steps, so
 * any order of events is possible, at random or on threads. `mutant` names the
 * one clause that it must break (producer_mutants.c). */
#ifndef UVA_SUPPORT_REFERENCE_PRODUCER_H
#define UVA_SUPPORT_REFERENCE_PRODUCER_H

#include <pthread.h>

#include "support/reference_data.h"

struct reference_mutant;

/* Its plan. All zeroes: an empty stream. Copied. */
struct reference_producer_options {
    int64_t batches;  /* number of batches; negative: endless */
    bool fails_first; /* calls on_error instead of on_schema */
    bool fails;       /* calls on_error after the batches, instead of the end */
    bool lazy;        /* release waits for the tasks, which may fail ... */
    int64_t spoilt_at; /* ... as the batch with this ordinal does */
    bool leaves_out;   /* ... and leaves `out` untouched */
    bool hurries;      /* ... and release does not wait after all */
    /* ... and on_error comes before the extraction returns, from another
     * thread, if no callback is running. Only with one stepping thread. */
    bool reports_early;
    bool slow;       /* a batch takes long; the steps are the test's */
    bool hasty;      /* each step uses the state as of the last one */
    int cancel_code; /* cancelling fails with this code; 0: it works */
    /* ... and on_error comes inside cancel, if no callback is running. Only
     * with one thread. */
    bool reports_at_once;
    int64_t late;      /* batches offered after a cancel, if requested before */
    bool late_end;     /* calls on_next_task(NULL) after a cancel */
    bool end_is_asked; /* NULL and errors wait for a request */
    bool metadata;     /* sends metadata in all four places; otherwise NULL */
    ArrowDeviceType device_type; /* type of the object and the arrays; 0: CPU */
    const struct reference_mutant *mutant; /* borrows; may be NULL */
    /* A request from outside of callbacks waits for a thread that makes all
     * steps. */
    bool steps_in_request;
};

enum reference_producer_phase {
    REFERENCE_NEW,
    REFERENCE_ATTACHED, /* has a handler, but has not called it */
    REFERENCE_OPEN,     /* the schema was accepted */
    REFERENCE_ENDED,    /* on_next_task(NULL) was called */
    REFERENCE_FAILED,   /* on_error was called */
    REFERENCE_REFUSED,  /* a callback returned an error */
    REFERENCE_OVER      /* release was called */
};

/* The producer's side of a task. It is kept until the end, so that a late or
 * second extraction is detected. */
struct reference_item {
    struct reference_producer *producer;
    struct reference_item *older;
    int64_t ordinal;
    bool settled; /* guarded by the producer's lock */
};

/* The state that a step uses. */
struct reference_view {
    int64_t demand;   /* requested and not offered */
    int64_t held;     /* tasks not settled */
    bool bad_request; /* n <= 0 */
    bool cancelled;   /* cancel was called */
    bool spoilt;      /* an extraction failed */
};

struct reference_producer {
    struct reference_producer_options how;
    struct ArrowAsyncProducer object; /* the object that the consumer gets */
    struct ArrowAsyncProducer other;  /* used by a mutant */
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows */
    struct reference_counts live_structs;
    enum reference_producer_phase phase; /* used by the stepping thread */
    struct reference_view view; /* after the last step; used by that thread */
    atomic_int_least64_t next;  /* ordinal of the next batch; any may look */
    char about[REFERENCE_BLOCK_SIZE]; /* additional_metadata */
    struct { /* blocks chosen by a mutant; otherwise SOUND */
        enum reference_block schema, about, task, error;
    } blocks;
    atomic_int acts;   /* how often the mutant has acted */
    atomic_int inside; /* callbacks in progress */
    pthread_t stepper; /* the thread of the last step; read by a mutant */

    pthread_mutex_t lock;
    struct { /* guarded by the lock */
        struct reference_view view;
        int64_t asked;                /* requested before a cancel, in total */
        struct reference_item *items; /* owns: the newest one */
    } now;

    /* its record; any thread */
    atomic_long offered;
    atomic_long settled;  /* extracted, discarded, or failed */
    atomic_long released; /* calls of release */
    /* Faults of the consumer: a second extraction, a call of the object after
     * release, a schema left unreleased, ... */
    atomic_long faults;
};

/* Prepares a producer that is not attached. */
void reference_producer_init(struct reference_producer *producer,
                             const struct reference_producer_options *how);

/* Frees the rest. Everything that it gave must have been released, or will
 * never be. */
void reference_producer_fini(struct reference_producer *producer);

/* Takes the handler; the steps make the callbacks. */
void reference_producer_start(struct reference_producer *producer,
                              struct ArrowAsyncDeviceStreamHandler *handler);

/* Makes the next callback. Returns false if no callback is due. Thread: any,
 * one at a time. */
bool reference_producer_step(struct reference_producer *producer);

/* Returns true once release was called. Thread: the stepping thread. */
bool reference_producer_over(const struct reference_producer *producer);

/* The single callbacks, in any state: for the mutants. Thread: any. */
void reference_producer_offer(struct reference_producer *producer);
void reference_producer_end(struct reference_producer *producer);
void reference_producer_fail(struct reference_producer *producer, int code,
                             const char *text);
void reference_producer_schema(struct reference_producer *producer);
void reference_producer_release(struct reference_producer *producer);

/* Marks an item's task as settled. Returns false if it was settled before.
 * Thread: any. */
bool reference_item_settle(struct reference_item *item);

#endif
