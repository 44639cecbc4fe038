/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that keeps to the letter of the interface, and does nothing by
 * itself: each step makes the next callback. Who steps is the test's affair; so
 * every order of events can be had, by chance or by thread. `mutant` names the
 * one clause that it is to break (producer_mutants.c). */
#ifndef UVA_SUPPORT_REFERENCE_PRODUCER_H
#define UVA_SUPPORT_REFERENCE_PRODUCER_H

#include <pthread.h>

#include "support/reference_data.h"

struct reference_mutant;

/* What it does. Zeroes: an empty stream. Copied. */
struct reference_producer_options {
    int64_t batches;    /* that it has; negative: without end */
    bool fails_first;   /* on_error instead of on_schema */
    bool fails;         /* after the batches, instead of the end */
    bool lazy;          /* release waits for the tasks: they may fail ... */
    int64_t spoilt_at;  /* ... the batch with this ordinal does, if lazy */
    bool leaves_out;    /* ... and leaves `out` untouched */
    bool hurries;       /* ... and the release does not wait after all */
    bool tells_early;   /* ... and on_error comes before the extraction returns,
                           from another thread, if no callback runs; for one
                           stepping thread */
    bool hasty;         /* each step goes by how things stood after the last */
    int cancel_code;    /* cancelling fails, with that; 0: it works */
    bool tells_at_once; /* ... and on_error comes inside cancel, if no callback
                           runs; for one thread */
    int64_t late;      /* batches offered after a cancel, if asked for before */
    bool late_end;     /* NULL after a cancel */
    bool end_is_asked; /* NULL and errors wait for a request */
    bool metadata;     /* in all four places; otherwise NULL */
    ArrowDeviceType device_type; /* 0: CPU; of the object and the arrays */
    const struct reference_mutant *mutant; /* borrows; NULL: none */
    bool steps_in_request; /* a request from outside of callbacks waits for a
                              thread that makes all steps */
};

enum reference_producer_phase {
    REFERENCE_NEW,
    REFERENCE_ATTACHED, /* has a handler, nothing called */
    REFERENCE_OPEN,     /* the schema is taken */
    REFERENCE_ENDED,    /* NULL was given */
    REFERENCE_FAILED,   /* on_error was called */
    REFERENCE_REFUSED,  /* a callback returned an error */
    REFERENCE_OVER      /* release was called */
};

/* A task's side of the producer; stays until the end, so that a late or second
 * extraction is noticed and not suffered. */
struct reference_item {
    struct reference_producer *producer;
    struct reference_item *older;
    int64_t ordinal;
    bool settled; /* under the producer's lock */
};

/* What a step goes by. */
struct reference_view {
    int64_t demand;   /* requested and not offered */
    int64_t held;     /* tasks not settled */
    bool bad_request; /* n <= 0 */
    bool cancelled;   /* cancel was called */
    bool spoilt;      /* an extraction failed */
};

struct reference_producer {
    struct reference_producer_options how;
    struct ArrowAsyncProducer object;              /* what the consumer sees */
    struct ArrowAsyncProducer other;               /* a mutant's */
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows */
    struct reference_ledger ledger;
    enum reference_producer_phase phase; /* the stepper's */
    struct reference_view view;          /* after the last step; likewise */
    int64_t next;                        /* ordinal of the next batch */
    char about[REFERENCE_BLOCK_SIZE];    /* additional_metadata */
    struct {                             /* blocks of a mutant; else SOUND */
        enum reference_block schema, about, task, error;
    } blocks;
    atomic_int acts;   /* of the mutant */
    atomic_int inside; /* callbacks running */

    pthread_mutex_t lock;
    struct { /* under the lock */
        struct reference_view view;
        int64_t asked;                /* requested before a cancel, in all */
        struct reference_item *items; /* owns: the newest */
    } now;

    /* what happened; any thread */
    atomic_long offered;
    atomic_long settled;  /* extracted, discarded, or failed */
    atomic_long released; /* calls of release */
    atomic_long faults;   /* by the consumer: a second extraction, a call of the
                             object after release, a live schema left, ... */
};

/* Makes one that is not attached. */
void reference_producer_init(struct reference_producer *producer,
                             const struct reference_producer_options *how);

/* Frees what is left. Everything that it gave must have come back, or never
 * come back. */
void reference_producer_fini(struct reference_producer *producer);

/* Takes the handler; callbacks come from the steps. */
void reference_producer_start(struct reference_producer *producer,
                              struct ArrowAsyncDeviceStreamHandler *handler);

/* Makes the next callback. False if there is none to make now. Thread: any, one
 * at a time. */
bool reference_producer_step(struct reference_producer *producer);

/* True when release has been called. Thread: the stepper's. */
bool reference_producer_over(const struct reference_producer *producer);

/* The single callbacks, whatever the state: for the mutants. Thread: any. */
void reference_producer_offer(struct reference_producer *producer);
void reference_producer_end(struct reference_producer *producer);
void reference_producer_fail(struct reference_producer *producer, int code,
                             const char *text);
void reference_producer_schema(struct reference_producer *producer);
void reference_producer_release(struct reference_producer *producer);

/* Notes that an item's task is settled. False if it was. Thread: any. */
bool reference_item_settle(struct reference_item *item);

#endif
