/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer for uva_stream_for_each() that writes down what it is told, and
 * takes no more than the test allows; and batches that it tells apart by their
 * length, which is also their size in bytes. */
#ifndef UVA_SUPPORT_RECORDING_CONSUMER_H
#define UVA_SUPPORT_RECORDING_CONSUMER_H

#include "support/loop_rig.h"
#include "uvarrow/stream.h"

enum { BATCH_MAX = 1 << 20 };

/* Makes the schema of such batches, and one of `length`. */
void batch_schema(struct ArrowSchema *out);
void batch_make(struct ArrowDeviceArray *out, int64_t length);

struct recording_consumer {
    struct uva_stream *stream; /* borrows: set by start */
    char story[1024];          /* "schema 3 1 complete" */
    size_t told;               /* of that, in characters */
    int64_t appetite;          /* batches it accepts; negative: all */
    int verdict;               /* what on_batch returns instead of 0 */
    int64_t batches;           /* accepted */
    int64_t ordinal;           /* of the last one */
    char metadata[256];        /* of the last batch, or of the error */
    size_t metadata_size;      /* of that */
    bool quiet;                /* batches are not written down */
    bool done;                 /* the outcome is here */
    struct uva_outcome outcome;
    /* called with each batch; NULL: nothing */
    void (*hook)(void *ctx, struct uva_batch *batch);
    void *ctx; /* borrows: for the hook */
};

/* Adds a word to the story. Thread: loop. */
void recording_tell(struct recording_consumer *consumer, const char *format,
                    ...) UVA_PRINTF(2, 3);

/* The callbacks to give away. Borrows `consumer`, as long as they are used. */
struct uva_consumer recording_table(struct recording_consumer *consumer);

/* Starts `stream` with them; must succeed. Its appetite may be set before. */
void recording_start(struct recording_consumer *consumer,
                     struct uva_stream *stream);

/* Allows `n` batches more. Thread: any. */
void recording_feed(struct recording_consumer *consumer, int64_t n);

/* Turns the loop until the outcome is here, or `n` batches are. */
void recording_await_done(struct recording_consumer *consumer,
                          struct loop_rig *rig);
void recording_await(struct recording_consumer *consumer, struct loop_rig *rig,
                     int64_t n);

#endif
