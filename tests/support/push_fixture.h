/* SPDX-License-Identifier: Apache-2.0 */
/* A stream with a pusher at one end and a recording consumer at the other, on a
 * loop. The pusher's callbacks add words to the consumer's transcript, too:
 * "room" and "gone". */
#ifndef UVA_SUPPORT_PUSH_FIXTURE_H
#define UVA_SUPPORT_PUSH_FIXTURE_H

#include <stdatomic.h>

#include "support/recording_consumer.h"
#include "uvarrow/sources.h"

struct push_fixture {
    struct loop_fixture loop;
    struct recording_consumer consumer; /* takes all batches by default */
    struct uva_stream *stream;          /* NULL once released */
    struct uva_pusher *pusher;          /* NULL once closed */
    atomic_int freed;                   /* calls of free_ctx */
    atomic_bool pushing;                /* the loop thread is inside push */
    /* called by on_writable and on_closed, after their word; NULL: not called
     */
    void (*on_callback)(struct push_fixture *p);
};

/* Returns options with callbacks that add words to the transcript. */
struct uva_push_source push_options(struct push_fixture *p);

/* Opens the loop, then a stream with a window of `batches` and `bytes` (0: the
 * default). Sets the schema, except in the bare form. */
void push_open(struct push_fixture *p, int32_t batches, int64_t bytes);
void push_open_bare(struct push_fixture *p, int32_t batches, int64_t bytes);

/* Pushes a batch of `length`, and returns the code of the push, which takes it
 * in any case. Thread: loop. */
int push_batch(struct push_fixture *p, int64_t length, int64_t timeout_ms);

/* Pushes batches of the lengths from `first` to `last`: there is room for each,
 * and after each but the last. */
void push_batches(struct push_fixture *p, int64_t first, int64_t last);

/* Pushes a batch with metadata. */
int push_batch_with(struct push_fixture *p, int64_t length,
                    const char *metadata, int64_t timeout_ms);

/* Sets the schema; starts the stream with the consumer. */
int push_describe(struct push_fixture *p);
void push_start(struct push_fixture *p);

/* Turns the loop until on_done was called. */
void push_await_done(struct push_fixture *p);

/* Turns the loop until it is idle, or until on_done was called, and checks the
 * transcript up to that moment. */
void push_settles(struct push_fixture *p, const char *transcript);
void push_ends(struct push_fixture *p, const char *transcript);

/* Closes the pusher; releases the stream. The second call of either has no
 * effect. */
void push_end(struct push_fixture *p);
void push_release(struct push_fixture *p);

/* Closes all open objects, and checks that everything was released and freed
 * once. */
void push_close(struct push_fixture *p);

#endif
