/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that follows the interface exactly: its callbacks take schemas and
 * tasks, and its steps do the rest: extract, request, cancel, release. `mutant`
 * names the one clause that it must break (consumer_mutants.c). */
#ifndef UVA_SUPPORT_REFERENCE_CONSUMER_H
#define UVA_SUPPORT_REFERENCE_CONSUMER_H

#include <pthread.h>

#include "support/reference_data.h"

struct reference_mutant;

enum reference_extract {
    REFERENCE_LATER,  /* in a step, on any thread */
    REFERENCE_AT_ONCE /* inside on_next_task */
};

/* Its plan. All zeroes: it takes and requests no task. Copied. */
struct reference_consumer_options {
    int64_t first;  /* number requested in on_schema; 0: no request */
    int64_t second; /* requested next; 0: no request (negative: breaks AP-08) */
    int64_t more;   /* number requested when all requested tasks have arrived */
    bool more_at_once;  /* requests more in on_next_task, otherwise in a step */
    int64_t cancel_at;  /* cancels after this many tasks; 0: never */
    bool cancel_inside; /* cancels inside on_next_task; otherwise in a step */
    int64_t refuse_at;  /* returns EIO for that task, 1 being the first */
    bool refuse_schema; /* returns ENOTSUP */
    enum reference_extract extract;
    bool discard; /* extracts tasks to NULL */
    bool keep;    /* releases arrays only at the very end */
    bool splits;  /* moves a child out of an array, and releases it last */
    bool hold;    /* extracts tasks only at the very end */
    bool asks_on; /* requests once more after a cancel or refusal */
    bool cancels_on_fail; /* cancels when an extraction fails */
    const struct reference_mutant *mutant; /* borrows; may be NULL */
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
    struct ArrowAsyncDeviceStreamHandler handler; /* passed to the producer */
    struct ArrowSchema schema; /* moved here from on_schema; or released */
    struct ArrowArray lost;    /* used by a mutant */
    struct { /* the latest arguments: mutants use them when they must not */
        struct ArrowSchema *schema;
        struct ArrowAsyncProducer *producer;
        struct ArrowAsyncTask *task;
    } seen;
    atomic_int acts; /* how often the mutant has acted */

    pthread_mutex_t lock;
    pthread_cond_t calm;
    struct {                                 /* guarded by the lock */
        struct ArrowAsyncProducer *producer; /* NULL: must not be called */
        int64_t asked, had; /* batches requested, batches received */
        int calling;        /* calls of the producer outside of callbacks */
        bool cancelled, refused, asked_on;
        bool cancel_due;
        bool failed; /* an extraction has failed */
        bool ended, erred, over;
        int code; /* code of on_error */
        struct reference_pieces tasks, arrays;
    } now;

    atomic_long rows;   /* rows found in arrays */
    atomic_long faults; /* faults of the producer that a consumer can see */
};

void reference_consumer_init(struct reference_consumer *consumer,
                             const struct reference_consumer_options *how);
void reference_consumer_fini(struct reference_consumer *consumer);

/* Releases the schema and the arrays that it still has. No other call may be in
 * progress. */
void reference_consumer_release(struct reference_consumer *consumer);

/* Makes one step outside of callbacks. Returns false if no step is possible
 * now. Thread: any. */
bool reference_consumer_step(struct reference_consumer *consumer);

/* Makes the next step cancel, unless it has cancelled before. Thread: any. */
void reference_consumer_cancel(struct reference_consumer *consumer);

/* Returns true once release was called and no step is left. Thread: any. */
bool reference_consumer_over(struct reference_consumer *consumer);

#endif
