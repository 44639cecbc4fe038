/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that keeps to the letter of the interface: its callbacks take what
 * comes, its steps do the rest - extract, request, cancel, let go. `mutant`
 * names the one clause that it is to break (consumer_mutants.c). */
#ifndef UVA_SUPPORT_REFERENCE_CONSUMER_H
#define UVA_SUPPORT_REFERENCE_CONSUMER_H

#include <pthread.h>

#include "support/reference_data.h"

struct reference_mutant;

enum reference_extract {
    REFERENCE_LATER,  /* in a step, which any thread may make */
    REFERENCE_AT_ONCE /* inside on_next_task */
};

/* What it does. Zeroes: takes nothing, and asks for nothing. Copied. */
struct reference_consumer_options {
    int64_t first;      /* requested in on_schema; 0: nothing */
    int64_t second;     /* then that; 0: nothing (negative: breaks AP-08) */
    int64_t more;       /* requested whenever all that was asked for came */
    bool more_at_once;  /* that: inside on_next_task, otherwise in a step */
    int64_t cancel_at;  /* cancels when it has had so many tasks; 0: never */
    bool cancel_inside; /* that: inside on_next_task; otherwise in a step */
    int64_t refuse_at;  /* answers EIO to that task, 1 being the first */
    bool refuse_schema; /* answers ENOTSUP */
    enum reference_extract extract;
    bool discard;         /* extracts to NULL */
    bool keep;            /* releases arrays only when all is over */
    bool splits;          /* moves a child out of an array, releases it last */
    bool hold;            /* extracts only when all is over */
    bool asks_on;         /* requests once more after a cancel or refusal */
    bool cancels_on_fail; /* cancels when an extraction fails */
    const struct reference_mutant *mutant; /* borrows; NULL: none */
};

/* A task that waits, or an array that is kept. */
struct reference_piece {
    struct reference_piece *next;
    struct ArrowAsyncTask task;
    struct ArrowDeviceArray array;
};

struct reference_pieces {
    struct reference_piece *first, **end;
};

struct reference_consumer {
    struct reference_consumer_options how;
    struct ArrowAsyncDeviceStreamHandler handler; /* for the producer */
    struct ArrowSchema schema;                    /* moved here; or released */
    struct ArrowArray lost;                       /* a mutant's */
    struct { /* what was shown last: mutants use it when they ought not to */
        struct ArrowSchema *schema;
        struct ArrowAsyncProducer *producer;
        struct ArrowAsyncTask *task;
    } seen;
    atomic_int acts; /* of the mutant */

    pthread_mutex_t lock;
    pthread_cond_t calm;
    struct {                                 /* under the lock */
        struct ArrowAsyncProducer *producer; /* NULL: not to be called */
        int64_t asked, had;                  /* batches */
        int calling; /* calls of the producer, made outside of callbacks */
        bool cancelled, refused, asked_on;
        bool cancel_due;
        bool failed; /* an extraction did */
        bool ended, erred, over;
        int code; /* on_error's */
        struct reference_pieces tasks, arrays;
    } now;

    atomic_long rows;   /* seen in arrays */
    atomic_long faults; /* by the producer, that a consumer can see */
};

void reference_consumer_init(struct reference_consumer *consumer,
                             const struct reference_consumer_options *how);
void reference_consumer_fini(struct reference_consumer *consumer);

/* Releases the schema and the arrays that it still has. Called when nothing is
 * being called any more. */
void reference_consumer_let_go(struct reference_consumer *consumer);

/* Does one thing that is to be done outside of callbacks. False if there is
 * none now. Thread: any. */
bool reference_consumer_step(struct reference_consumer *consumer);

/* Has the next step cancel, if that was not done. Thread: any. */
void reference_consumer_cancel(struct reference_consumer *consumer);

/* True when release came and nothing is left to do. Thread: any. */
bool reference_consumer_over(struct reference_consumer *consumer);

#endif
