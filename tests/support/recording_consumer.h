/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer for uva_stream_for_each() that records its callbacks, and takes no
 * more batches than the test allows; and batches that are identified by their
 * length, which is also their size in bytes. */
#ifndef UVA_SUPPORT_RECORDING_CONSUMER_H
#define UVA_SUPPORT_RECORDING_CONSUMER_H

#include "support/loop_rig.h"
#include "uvarrow/stream.h"

enum { BATCH_MAX = 1 << 20 };

/* Make the schema of such batches, and a batch of `length`. */
void batch_schema(struct ArrowSchema *out);
void batch_make(struct ArrowDeviceArray *out, int64_t length);

struct recording_consumer {
    struct uva_stream *stream; /* borrows: set by start */
    char story[1024];          /* "schema 3 1 complete" */
    size_t told;               /* characters in the transcript */
    int64_t appetite;          /* batches it accepts; negative: all */
    int verdict;               /* what on_batch returns instead of 0 */
    int64_t batches;           /* batches accepted */
    int64_t ordinal;           /* ordinal of the last batch */
    char metadata[256];        /* metadata of the last batch or of the error */
    size_t metadata_size;      /* its size */
    bool quiet;                /* batches are not recorded */
    bool done;                 /* the outcome has arrived */
    struct uva_outcome outcome;
    /* called with each batch; NULL: nothing */
    void (*hook)(void *ctx, struct uva_batch *batch);
    void *ctx; /* borrows: argument of hook */
};

/* Adds a word to the transcript. Thread: loop. */
void recording_tell(struct recording_consumer *consumer, const char *format,
                    ...) UVA_PRINTF(2, 3);

/* Returns the callbacks. Borrows `consumer` as long as they are used. */
struct uva_consumer recording_table(struct recording_consumer *consumer);

/* Starts `stream` with the callbacks; must succeed. Its appetite may be set
 * before. */
void recording_start(struct recording_consumer *consumer,
                     struct uva_stream *stream);

/* Allows `n` batches more. Thread: any. */
void recording_feed(struct recording_consumer *consumer, int64_t n);

/* Turns the loop until the outcome has arrived, or `n` batches have. */
void recording_await_done(struct recording_consumer *consumer,
                          struct loop_rig *rig);
void recording_await(struct recording_consumer *consumer, struct loop_rig *rig,
                     int64_t n);

#endif
