/* SPDX-License-Identifier: Apache-2.0 */
/* A fake source that is read through uva_stream_to_arrow_stream(), on a runtime
 * with its own thread so that the test's thread may block; and threads that
 * read. Closing the fixture checks that each object was released once. */
#ifndef UVA_SUPPORT_BLOCKING_FIXTURE_H
#define UVA_SUPPORT_BLOCKING_FIXTURE_H

#include <pthread.h>

#include "sink/task_ring.h"
#include "support/fake_source.h"
#include "support/faulty_allocator.h"
#include "uvarrow/uvarrow.h"

/* ---- a runtime with its own thread -------------------------------------- */

struct blocking_fixture {
    bool open;
    struct uva_runtime *runtime;    /* NULL once it has closed */
    struct faulty_allocator memory; /* of the runtime */
    struct fake_source fake;        /* the source */
    int sources;                    /* how often the source was given away */
    struct uva_stream *stream;      /* or NULL */
    struct ArrowArrayStream out;    /* exported from the stream; or released */
};

/* Opens the runtime (on `workers`; NULL: on its own) and prepares a source of
 * `batches` batches. */
void blocking_open(struct blocking_fixture *b, struct uva_workers *workers,
                   int64_t batches);

/* Makes the stream of the source, from a blocking stream or from tasks. It
 * reads one batch ahead of the requests. */
void blocking_plain(struct blocking_fixture *b);
void blocking_tasks(struct blocking_fixture *b);

/* Exports the stream, with a window of `window` batches. The second and third
 * form also make the stream, the last one also opens the fixture. */
void blocking_start(struct blocking_fixture *b, int32_t window);
void blocking_start_plain(struct blocking_fixture *b, int32_t window);
void blocking_start_tasks(struct blocking_fixture *b, int32_t window);
void blocking_run(struct blocking_fixture *b, int64_t batches, int32_t window);

/* Closes the runtime and waits until it has closed. The streams stay open. */
void blocking_end_runtime(struct blocking_fixture *b);

/* Releases the streams, waits for their ends, and checks. Without effect where
 * the fixture is not open. */
void blocking_close(struct blocking_fixture *b);

/* ---- reading ------------------------------------------------------------ */

/* Reads at most `most` batches, checks that they come from a fake source, from
 * `first` on, and returns how many it read. `code` receives the return code of
 * the last call; if `code` is NULL, that must be 0. */
int64_t blocking_read(struct ArrowArrayStream *stream, int64_t first,
                      int64_t most, int *code);

/* A thread that reads to the end of the stream. */
struct blocking_reader {
    struct ArrowArrayStream *stream; /* borrows */
    pthread_t thread;
    int64_t batches; /* how many batches it read */
    int code;        /* code of the last call */
    char text[128];  /* error text of the last call */
};

void blocking_reader_start(struct blocking_reader *reader,
                           struct ArrowArrayStream *stream);
void blocking_reader_join(struct blocking_reader *reader);

/* Returns the task ring of `stream`, which to_arrow_stream gave; waits until a
 * thread sleeps in it; waits until the loop has posted some of `events` (enum
 * uva__task_ring_event). */
struct uva__task_ring *
blocking_task_ring(const struct ArrowArrayStream *stream);
void blocking_await_sleeper(const struct ArrowArrayStream *stream);
void blocking_await_event(const struct ArrowArrayStream *stream,
                          uint64_t events);

/* Waits until `count` is `value`. */
void blocking_await(atomic_long *count, long value);

#endif
