/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer for uva_stream_for_each() that counts what it is told, answers on
 * cue, and keeps the outcome where any thread may look for it. It knows nothing
 * of what the batches hold. */
#ifndef UVA_SUPPORT_RECORDING_OUTCOME_H
#define UVA_SUPPORT_RECORDING_OUTCOME_H

#include <pthread.h>
#include <stdatomic.h>

#include "uvarrow/stream.h"

struct recording_outcome {
    /* what it does; set before the start */
    int schema_code;    /* answered by on_schema */
    int batch_code;     /* answered by on_batch ... */
    int64_t batch_from; /* ... from this batch on; the first is 0 */
    int64_t batch_to;   /* ... before this one; 0: to the end */
    /* called in each on_batch, and in on_done; NULL: nothing */
    void (*on_batch)(struct recording_outcome *o, struct uva_batch *batch);
    void (*on_done)(struct recording_outcome *o,
                    const struct uva_outcome *outcome);
    void *ctx; /* borrows: for those */
    /* what happened */
    atomic_int schemas;  /* calls of on_schema */
    atomic_long batches; /* calls of on_batch */
    atomic_long rows;    /* in batches it answered with 0 */
    atomic_long tagged;  /* batches that came with metadata */
    atomic_int done;     /* calls of on_done; the rest is there before it is */
    enum uva_end end;
    int code;
    char message[1008];
    int64_t delivered;
    pthread_t thread; /* of the last callback */
};

/* The callbacks to give away. Borrows `o`, as long as they are used. */
struct uva_consumer recording_outcome_table(struct recording_outcome *o);

/* Starts `stream` with them, which must succeed, and releases it. */
void recording_outcome_start(struct recording_outcome *o,
                             struct uva_stream *stream);

/* Waits for the outcome while another thread turns the loop. */
void recording_outcome_await(struct recording_outcome *o);

/* Waits until another thread has brought `counter` to `n`. */
void await_count(atomic_long *counter, long n);

#endif
