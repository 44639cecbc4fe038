/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer for uva_stream_for_each() that counts its callbacks, returns codes
 * set by the test, and keeps the outcome for any thread to read. It does not
 * read the content of batches. */
#ifndef UVA_SUPPORT_RECORDING_OUTCOME_H
#define UVA_SUPPORT_RECORDING_OUTCOME_H

#include <pthread.h>
#include <stdatomic.h>

#include "uvarrow/stream.h"

struct recording_outcome {
    /* what it does; set before the start */
    int schema_code;    /* return code of on_schema */
    int batch_code;     /* return code of on_batch ... */
    int64_t batch_from; /* ... from this batch on; the first is 0 */
    int64_t batch_to;   /* ... before this one; 0: to the end */
    /* called in each on_batch, and in on_done; or NULL */
    void (*on_batch)(struct recording_outcome *o, struct uva_batch *batch);
    void (*on_done)(struct recording_outcome *o,
                    const struct uva_outcome *outcome);
    void *ctx; /* borrows: argument for these */
    /* what happened */
    atomic_int schemas;  /* calls of on_schema */
    atomic_long batches; /* calls of on_batch */
    atomic_long rows;    /* rows of batches accepted with 0 */
    atomic_long tagged;  /* batches that came with metadata */
    atomic_int done;     /* calls of on_done; set after all others */
    enum uva_end end;
    int code;
    char message[1008];
    int64_t delivered;
    pthread_t thread; /* thread of the last callback */
};

/* Returns the callbacks. Borrows `o` as long as they are used. */
struct uva_consumer recording_outcome_table(struct recording_outcome *o);

/* Starts `stream` with the callbacks, which must succeed, and releases it. */
void recording_outcome_start(struct recording_outcome *o,
                             struct uva_stream *stream);

/* Waits for the outcome while another thread turns the loop. */
void recording_outcome_await(struct recording_outcome *o);

/* Waits until another thread has increased `counter` to `n`. */
void await_count(atomic_long *counter, long n);

#endif
