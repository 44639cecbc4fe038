/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer for uva_stream_for_each() that counts its callbacks, returns the
 * codes that the test sets, and keeps the outcome. On request it also keeps a
 * transcript: one word per callback, batches by their length. batch_make()
 * makes batches that have as many bytes as rows. The atomic counters may be
 * read by any thread. Everything else is written on the loop thread, and before
 * `done` is counted. */
#ifndef UVA_SUPPORT_RECORDING_CONSUMER_H
#define UVA_SUPPORT_RECORDING_CONSUMER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/loop_fixture.h"
#include "uvarrow/stream.h"

enum { BATCH_MAX = 1 << 20 };

/* Make the schema of such batches, and a batch of `length` rows. */
void batch_schema(struct ArrowSchema *out);
void batch_make(struct ArrowDeviceArray *out, int64_t length);

struct recording_consumer {
    /* its plan; set before the start */
    int schema_code;    /* on_schema returns it */
    int batch_code;     /* on_batch returns it ... */
    int64_t batch_from; /* ... from this batch on; the first is 0 */
    int64_t batch_to;   /* ... before this batch; 0: to the end */
    int64_t appetite;   /* batches it takes until it is paused, by EAGAIN at
                           the last; negative: all */
    bool transcribes; /* batches have the format "c" and go into `transcript` */
    bool quiet;       /* transcribes, except for the batches */
    bool silent;      /* no callback may come any more */
    /* called by on_batch, and may set `answer`; called by on_done */
    void (*on_batch)(struct recording_consumer *c, struct uva_batch *batch);
    void (*on_done)(struct recording_consumer *c,
                    const struct uva_outcome *outcome);
    void *ctx;  /* borrows: for those functions */
    int answer; /* return code of on_batch for this one batch, unless it is 0 */
    /* its record */
    struct uva_stream *stream; /* borrows: set by the start */
    atomic_int schemas;        /* calls of on_schema */
    atomic_long batches;       /* calls of on_batch */
    atomic_long rows;          /* rows of the batches that it took */
    atomic_long tagged;        /* batches with metadata that it took */
    int64_t taken;   /* batches for which it returned 0 or EAGAIN, or that were
                        moved out */
    int64_t ordinal; /* ordinal of the last batch taken */
    ArrowDeviceType device_type; /* of the last batch */
    const void *sync_event;      /* of the last batch */
    int64_t sum;                 /* sum of the ordinals of the batches taken */
    bool in_order;               /* the ordinals have been in order */
    int64_t wrong;               /* values that do not fit the ordinal */
    char transcript[1024];       /* "schema 3 1 complete" */
    size_t transcript_size;      /* length of `transcript` */
    char metadata[256];   /* of the last batch or error, if it transcribes */
    size_t metadata_size; /* length of `metadata` */
    atomic_int done;      /* calls of on_done */
    struct uva_outcome outcome; /* without its metadata */
    pthread_t thread;           /* thread of the last callback */
};

/* Prepares a consumer that takes all batches. */
void recording_init(struct recording_consumer *c);

/* Adds a word to the transcript. Thread: loop. */
void recording_add(struct recording_consumer *c, const char *format, ...)
    UVA_PRINTF(2, 3);

/* Return the callbacks for uva_stream_for_each(), and on_done for other
 * consumers, with `c` as the ctx. They borrow `c` as long as they are used. */
struct uva_consumer recording_table(struct recording_consumer *c);
void recording_on_done(void *c, const struct uva_outcome *outcome);

/* Starts `stream`, which must succeed. The second form also releases it. */
void recording_start(struct recording_consumer *c, struct uva_stream *stream);
void recording_consume(struct recording_consumer *c, struct uva_stream *stream);

/* Lets the consumer take `n` more batches. Thread: any. */
void recording_feed(struct recording_consumer *c, int64_t n);

/* Turns the loop until on_done was called, or `n` batches were taken. */
void recording_await_done(struct recording_consumer *c,
                          struct loop_fixture *loop);
void recording_await(struct recording_consumer *c, struct loop_fixture *loop,
                     int64_t n);

/* Waits until on_done was called, or until `counter` is `n`, while another
 * thread turns the loop. */
void recording_join(struct recording_consumer *c);
void await_count(atomic_long *counter, long n);

/* Checks that on_done was called once, with this end and code and a message
 * that contains `text`. Without an error `text` is ignored. */
void recording_ended(const struct recording_consumer *c, enum uva_end end,
                     int code, const char *text);

/* Checks that `message` is not empty and contains `text`. */
void text_contains(const char *message, const char *text);

#endif
