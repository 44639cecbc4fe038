/* SPDX-License-Identifier: Apache-2.0 */
/* What a test of streams needs: an embedded runtime on a loop that the test
 * turns, a fake source, a soft device if the test asks for one, and a recording
 * consumer. fixture_close() checks that nothing is left: no block of the
 * allocator, of which streams and tasks are made, no array, no context of a
 * source, no event of the device; and that every batch had the values of its
 * ordinal. Thread: the test's own, which is the loop thread. */
#ifndef UVA_SUPPORT_FIXTURE_H
#define UVA_SUPPORT_FIXTURE_H

#include "support/fake_source.h"
#include "support/loop_fixture.h"
#include "support/recording_consumer.h"
#include "support/soft_device.h"
#include "uvarrow/uvarrow.h"

struct fixture {
    bool open;
    bool shares; /* the runtime is another fixture's */
    struct loop_fixture loop;
    struct fake_source fake;
    struct uva_blocking_source options; /* options of blocking sources */
    struct soft_device device;
    bool has_device;
    struct uva_stream *stream;     /* counts; NULL: none, or released */
    struct recording_consumer got; /* what the stream delivered */
    long readers, contexts;        /* plain streams, and ctx, given away */
    void *ctx;                     /* borrows: for the test's callbacks */
    /* of uva_array_wait() */
    int answers;
    struct uva_error answer;
};

/* ---- opening and closing ------------------------------------------------ */

/* Opens it all; the source has `batches`. The second form has options, of which
 * the allocator is the fixture's. */
void fixture_open(struct fixture *f, int64_t batches);
void fixture_open_with(struct fixture *f, int64_t batches,
                       const struct uva_runtime_options *options);

/* Opens a source and a consumer on the runtime of `other`, which is closed
 * after it, and whose loop is turned for both. */
void fixture_open_beside(struct fixture *f, int64_t batches,
                         const struct fixture *other);

/* Registers a soft device of the type EXT_DEV, which wakes the loop whenever it
 * arms an event. */
void fixture_device(struct fixture *f, enum soft_mode mode);

/* Both, for a source of so many batches. */
void fixture_open_device(struct fixture *f, enum soft_mode mode,
                         int64_t batches);

/* Releases the stream; drops it, after which no callback may come. */
void fixture_release(struct fixture *f);
void fixture_drop(struct fixture *f);

/* Closes all that is open, waits for the worker threads that are still
 * returning, and checks that nothing is left. What never comes back is a test
 * that never ends. The second form has the numbers of calls for a source that
 * the test gave away itself. Without effect where it is not open. */
enum { ANY_COUNT = -1 };

void fixture_close(struct fixture *f);
void fixture_close_now(
    struct fixture *f); /* no array may outlive the runtime */
void fixture_close_counted(struct fixture *f, long released, long freed);

/* ---- sources ------------------------------------------------------------ */

/* Each makes a stream that the caller holds. */
struct uva_stream *fixture_blocking(struct fixture *f);
struct uva_stream *fixture_tasks(struct fixture *f);

/* The same source, opened by a hook on a worker; on the loop thread, as a
 * stream of device arrays; and as a stream of the soft device. */
struct uva_stream *fixture_hook(struct fixture *f);
struct uva_stream *fixture_on_loop(struct fixture *f);
struct uva_stream *fixture_device_stream(struct fixture *f);

/* `arrays` as a stream, which takes them; they have the source's schema. */
struct uva_stream *fixture_arrays(struct fixture *f,
                                  struct ArrowDeviceArray *arrays, int count);

/* A source under test, for cases that are run with several. */
struct fixture_source {
    const char *name;
    struct uva_stream *(*make)(struct fixture *f);
};

enum {
    SOURCE_BLOCKING,
    SOURCE_TASKS,
    SOURCE_HOOK,
    SOURCE_ON_LOOP,
    FIXTURE_SOURCES
};

extern const struct fixture_source fixture_sources[FIXTURE_SOURCES];

/* ---- running ------------------------------------------------------------ */

/* Starts the stream with the recording consumer, which must succeed. */
void fixture_start(struct fixture *f);

/* Starts it where that may fail. Returns 0, or what the start returned. */
int fixture_try(struct fixture *f, struct uva_error *error);

/* Turns the loop until on_done was called, and returns the outcome's code. */
int fixture_await(struct fixture *f);

/* Starts and awaits. */
int fixture_run(struct fixture *f);

/* Starts `stream`, releases it, and awaits. */
int fixture_consume(struct fixture *f, struct uva_stream *stream);

/* Turns the loop, without waiting, until the source is at its gate. */
void fixture_await_gate(struct fixture *f);

/* Checks that a stream could not be built: that its status and a start report
 * `code` and the same message, which contains `text`. Releases the stream. */
void fixture_refused(struct fixture *f, struct uva_stream *stream, int code,
                     const char *text);

/* Waits for `array`, and notes the answer; the second form of the callback
 * releases the array. Both have the fixture as their ctx. */
void fixture_wait(struct fixture *f, struct ArrowDeviceArray *array,
                  int64_t timeout_ms);
uva_array_wait_fn fixture_on_answer, fixture_on_answer_release;

/* Turns the loop until there are `n` answers, and returns the last one's code.
 */
int fixture_await_answers(struct fixture *f, int n);

#endif
