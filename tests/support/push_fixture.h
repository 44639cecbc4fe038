/* SPDX-License-Identifier: Apache-2.0 */
/* A stream with a pusher at one end and a recording consumer at the other, on a
 * loop. The pusher's callbacks are words of the consumer's story too: "room"
 * and "gone". */
#ifndef UVA_SUPPORT_PUSH_FIXTURE_H
#define UVA_SUPPORT_PUSH_FIXTURE_H

#include <stdatomic.h>

#include "support/recording_consumer.h"
#include "uvarrow/adapters.h"

struct push_fixture {
    struct loop_fixture loop;
    struct recording_consumer consumer; /* takes all batches, unless set */
    struct uva_stream *stream;          /* NULL once released */
    struct uva_pusher *pusher;          /* NULL once closed */
    atomic_int freed;                   /* calls of free_ctx */
    atomic_bool pushing;                /* the loop thread is inside push */
    /* called by on_writable and on_closed, after their word; NULL: nothing */
    void (*on_told)(struct push_fixture *p);
};

/* Options whose callbacks add words to the story. */
struct uva_push_source push_options(struct push_fixture *p);

/* Opens the loop, then a stream with a window of `batches` (0: the default) and
 * `bytes` (0: the default), and sets the schema unless it is the bare form. */
void push_open(struct push_fixture *p, int32_t batches, int64_t bytes);
void push_open_bare(struct push_fixture *p, int32_t batches, int64_t bytes);

/* Pushes a batch of `length`, and returns the code of the push. A batch that
 * was not taken is released. Thread: loop. */
int push_batch(struct push_fixture *p, int64_t length, int64_t timeout_ms);

/* Pushes a batch with metadata. */
int push_batch_with(struct push_fixture *p, int64_t length,
                    const char *metadata, int64_t timeout_ms);

/* Sets the schema; starts the stream with the consumer. */
int push_describe(struct push_fixture *p);
void push_start(struct push_fixture *p);

/* Closes the pusher; releases the stream. Neither has an effect the second
 * time.
 */
void push_end(struct push_fixture *p);
void push_release(struct push_fixture *p);

/* Closes all that is open, and checks that all was released and freed once. */
void push_close(struct push_fixture *p);

#endif
