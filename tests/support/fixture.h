/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a test of streams needs: an embedded runtime on a loop that
 * the test turns, a fake source, a soft device if the test opens one, and a
 * recording consumer. fixture_close() checks that no object is left (no block
 * of the allocator, no array, no context of a source, no event of the device),
 * and that every batch had the values of its ordinal. Thread: the test's own,
 * which is the loop thread. */
#ifndef UVA_SUPPORT_FIXTURE_H
#define UVA_SUPPORT_FIXTURE_H

#include "support/fake_source.h"
#include "support/loop_fixture.h"
#include "support/recording_consumer.h"
#include "support/soft_device.h"
#include "uvarrow/sources.h"
#include "uvarrow/uvarrow.h"

struct fixture {
    bool open;
    bool shares; /* the runtime belongs to another fixture */
    struct loop_fixture loop;
    struct fake_source fake;
    struct uva_arrow_source options; /* options of blocking sources */
    struct soft_device device;
    bool has_device;
    struct uva_stream *stream;     /* counts; NULL: released, or not made */
    struct recording_consumer got; /* the callbacks that the stream made */
    long readers, contexts; /* blocking streams and contexts given away */
    void *ctx;              /* borrows: for the test's callbacks */
    /* results of uva_array_wait() */
    int answers;
    struct uva_error answer;
};

/* ---- opening and closing ------------------------------------------------ */

/* Opens the fixture with a source of `batches` batches. The second form takes
 * options, of which the fixture replaces the allocator. */
void fixture_open(struct fixture *f, int64_t batches);
void fixture_open_with(struct fixture *f, int64_t batches,
                       const struct uva_runtime_options *options);

/* Opens a source and a consumer on the runtime of `other`. It must be closed
 * before `other`, and each turn of the loop serves both. */
void fixture_open_beside(struct fixture *f, int64_t batches,
                         const struct fixture *other);

/* Registers a soft device of type EXT_DEV, which wakes the loop whenever it
 * arms an event. */
void fixture_device(struct fixture *f, enum soft_mode mode);

/* Opens the fixture with `batches` batches, and a soft device. */
void fixture_open_device(struct fixture *f, enum soft_mode mode,
                         int64_t batches);

/* Releases the stream. The second form drops it, after which no callback may
 * follow. */
void fixture_release(struct fixture *f);
void fixture_drop(struct fixture *f);

/* Closes all open objects, waits for the worker threads that are still
 * returning, and checks that no object is left. A thread that never returns
 * hangs the test. The second form takes the expected numbers of calls, for a
 * source that the test gave away itself. Without effect where the fixture is
 * not open. */
enum { ANY_COUNT = -1 };

void fixture_close(struct fixture *f);
void fixture_close_now(
    struct fixture *f); /* no array may outlive the runtime */
void fixture_close_counted(struct fixture *f, long released, long freed);

/* ---- sources ------------------------------------------------------------ */

/* Each function makes a stream that the caller owns. */
struct uva_stream *fixture_blocking(struct fixture *f);
struct uva_stream *fixture_tasks(struct fixture *f);

/* The same source, opened by a hook on a worker; by a hook on the loop thread,
 * as a stream of device arrays; and as a stream of the soft device. */
struct uva_stream *fixture_hook(struct fixture *f);
struct uva_stream *fixture_on_loop(struct fixture *f);
struct uva_stream *fixture_device_stream(struct fixture *f);

/* Makes a stream of `arrays`, which it takes; they have the source's schema. */
struct uva_stream *fixture_arrays(struct fixture *f,
                                  struct ArrowDeviceArray *arrays, int count);

/* A source under test, for cases that run with several. */
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

/* Starts the stream where that may fail. Returns the code of the start. */
int fixture_try(struct fixture *f, struct uva_error *error);

/* Turns the loop until on_done was called, and returns the code of the outcome.
 */
int fixture_await(struct fixture *f);

/* Starts the stream, and awaits its end. */
int fixture_run(struct fixture *f);

/* Keeps `stream`, which it takes, and has it wait for the events of its batches
 * as `options` state, which must succeed. */
void fixture_ready(struct fixture *f, struct uva_stream *stream,
                   const struct uva_ready *options);

/* Runs the stream, which must complete after `batches` batches. */
void fixture_completes(struct fixture *f, int64_t batches);

/* Starts `stream`, releases it, and awaits its end. */
int fixture_consume(struct fixture *f, struct uva_stream *stream);

/* Turns the loop, without blocking, until the source waits at its gate. */
void fixture_await_gate(struct fixture *f);

/* Checks that a stream could not be built: both its status and a start must
 * report `code` and the same message, which contains `text`. Releases the
 * stream. */
void fixture_refused(struct fixture *f, struct uva_stream *stream, int code,
                     const char *text);

/* Waits for `array`, and notes the result. The second form of the callback
 * releases the array. Both have the fixture as their ctx. */
void fixture_wait(struct fixture *f, struct ArrowDeviceArray *array,
                  int64_t timeout_ms);
uva_array_wait_fn fixture_on_answer, fixture_on_answer_release;

/* Turns the loop until there are `n` results, and returns the code of the last
 * one. */
int fixture_await_answers(struct fixture *f, int n);

#endif
