/* SPDX-License-Identifier: Apache-2.0 */
/* A fake source that is read through uva_stream_to_blocking_cpu(), on a runtime
 * with a thread of its own so that the test's thread may block; and threads
 * that read. Closing it checks that everything was given back once. */
#ifndef UVA_SUPPORT_BLOCKING_FIXTURE_H
#define UVA_SUPPORT_BLOCKING_FIXTURE_H

#include <pthread.h>

#include "sink/task_ring.h"
#include "support/fake_source.h"
#include "support/faulty_allocator.h"
#include "uvarrow/uvarrow.h"

/* ---- a runtime with a thread of its own --------------------------------- */

struct blocking_fixture {
    bool open;
    struct uva_runtime *runtime;    /* NULL once it is gone */
    struct faulty_allocator memory; /* of the runtime */
    struct fake_source fake;        /* the source */
    int sources;                    /* how often it was given away */
    struct uva_stream *stream;      /* or NULL */
    struct ArrowArrayStream out;    /* given out by it; or released */
};

/* Opens the runtime (on `workers`; NULL: on its own) and prepares a source of
 * so many batches. */
void blocking_open(struct blocking_fixture *b, struct uva_workers *workers,
                   int64_t batches);

/* Makes the stream of the source, plain or of tasks, which reads one batch
 * ahead of what is requested. */
void blocking_plain(struct blocking_fixture *b);
void blocking_tasks(struct blocking_fixture *b);

/* Exports the stream, with a window of so many batches. The second and third
 * form make it first, the last one opens all. */
void blocking_start(struct blocking_fixture *b, int32_t window);
void blocking_start_plain(struct blocking_fixture *b, int32_t window);
void blocking_start_tasks(struct blocking_fixture *b, int32_t window);
void blocking_run(struct blocking_fixture *b, int64_t batches, int32_t window);

/* Closes the runtime and waits until it is gone. The rest stays. */
void blocking_end_runtime(struct blocking_fixture *b);

/* Releases the streams, lets them end, and checks. Without effect where it is
 * not open. */
void blocking_close(struct blocking_fixture *b);

/* ---- reading ------------------------------------------------------------ */

/* Reads at most `most` batches, checks that they are those of a fake source
 * from `first` on, and returns how many there were. `code` (may be NULL: must
 * be 0) is the code of the last call. */
int64_t blocking_read(struct ArrowArrayStream *stream, int64_t first,
                      int64_t most, int *code);

/* A thread that reads to the end. */
struct blocking_reader {
    struct ArrowArrayStream *stream; /* borrows */
    pthread_t thread;
    int64_t batches; /* how many there were */
    int code;        /* how it ended */
    char text[128];  /* and why */
};

void blocking_reader_start(struct blocking_reader *reader,
                           struct ArrowArrayStream *stream);
void blocking_reader_join(struct blocking_reader *reader);

/* The outlet behind `stream`, which to_blocking_cpu gave; waits until a thread
 * sleeps in it; until the loop has posted one of `news` (enum
 * uva__task_ring_event).
 */
struct uva__task_ring *blocking_outlet(const struct ArrowArrayStream *stream);
void blocking_await_sleeper(const struct ArrowArrayStream *stream);
void blocking_await_news(const struct ArrowArrayStream *stream,
                         uint64_t events);

/* Waits until `count` is `value`. */
void blocking_await(atomic_long *count, long value);

#endif
