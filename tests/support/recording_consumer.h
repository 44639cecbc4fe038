/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer for uva_stream_for_each() that counts its callbacks, returns the
 * codes that the test asks for, and keeps the outcome. On request it also keeps
 * a transcript: one word per callback, batches by their length. batch_make()
 * makes batches whose length is also their size in bytes.
 *
 * The atomic counters may be read by any thread. Everything else is written on
 * the loop thread, and before `done` is counted. */
#ifndef UVA_SUPPORT_RECORDING_CONSUMER_H
#define UVA_SUPPORT_RECORDING_CONSUMER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/loop_fixture.h"
#include "uvarrow/stream.h"

enum { BATCH_MAX = 1 << 20 };

/* Make the schema of such batches, and a batch of `length`. */
void batch_schema(struct ArrowSchema *out);
void batch_make(struct ArrowDeviceArray *out, int64_t length);

struct recording_consumer {
    /* what it does; set before the start */
    int schema_code;    /* on_schema returns it */
    int batch_code;     /* on_batch returns it ... */
    int64_t batch_from; /* ... from this batch on; the first is 0 */
    int64_t batch_to;   /* ... before this batch; 0: to the end */
    int64_t appetite;   /* batches it takes before EAGAIN; negative: all */
    bool transcribes;   /* batches have the format "c" and go into `story` */
    bool quiet;         /* but batches do not */
    bool silent;        /* no callback may come any more */
    /* called by on_batch, and may set `answer`; called by on_done */
    void (*on_batch)(struct recording_consumer *c, struct uva_batch *batch);
    void (*on_done)(struct recording_consumer *c,
                    const struct uva_outcome *outcome);
    void *ctx;  /* borrows: for those */
    int answer; /* on_batch returns it this once, if it is not 0 */
    /* what happened */
    struct uva_stream *stream; /* borrows: set by the start */
    atomic_int schemas;        /* calls of on_schema */
    atomic_long batches;       /* calls of on_batch */
    atomic_long rows;          /* in batches for which it returned 0 */
    atomic_long tagged;        /* of these, batches that had metadata */
    int64_t taken;             /* batches for which it returned 0, or whose data
                                  was moved out */
    int64_t ordinal;           /* of the last of them */
    ArrowDeviceType device_type; /* of the last batch */
    const void *sync_event;      /* of the last batch */
    int64_t sum;                 /* of their ordinals */
    bool in_order;               /* so far, by ordinal */
    int64_t wrong;               /* values of a fake source that are not those
                                    of the ordinal */
    char story[1024];            /* "schema 3 1 complete" */
    size_t told;                 /* length of `story` */
    char metadata[256];          /* of the last batch or the error, if it
                                    transcribes */
    size_t metadata_size;        /* length of `metadata` */
    atomic_int done;             /* calls of on_done */
    struct uva_outcome outcome;  /* without its metadata */
    pthread_t thread;            /* that made the last callback */
};

/* Clears it: it takes all batches. */
void recording_init(struct recording_consumer *c);

/* Adds a word to the story. Thread: loop. */
void recording_tell(struct recording_consumer *c, const char *format, ...)
    UVA_PRINTF(2, 3);

/* The callbacks for uva_stream_for_each(), and on_done for other consumers,
 * with `c` as its ctx. Borrows `c` as long as they are used. */
struct uva_consumer recording_table(struct recording_consumer *c);
void recording_on_done(void *c, const struct uva_outcome *outcome);

/* Starts `stream`, which must succeed; the second form releases it too. */
void recording_start(struct recording_consumer *c, struct uva_stream *stream);
void recording_consume(struct recording_consumer *c, struct uva_stream *stream);

/* Allows `n` batches more. Thread: any. */
void recording_feed(struct recording_consumer *c, int64_t n);

/* Turns the loop until on_done was called, or `n` batches were taken. */
void recording_await_done(struct recording_consumer *c,
                          struct loop_fixture *loop);
void recording_await(struct recording_consumer *c, struct loop_fixture *loop,
                     int64_t n);

/* Waits until another thread, which turns the loop, has called on_done, or has
 * brought `counter` to `n`. */
void recording_join(struct recording_consumer *c);
void await_count(atomic_long *counter, long n);

/* Checks that on_done was called once, with this end and code and a message
 * that contains `text`; without an error the text is not looked at. */
void recording_ended(const struct recording_consumer *c, enum uva_end end,
                     int code, const char *text);

/* Checks that `message` is not empty and contains `text`. */
void text_contains(const char *message, const char *text);

#endif
