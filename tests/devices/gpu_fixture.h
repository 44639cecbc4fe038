/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime, some streams of a GPU with a gate each, and batches that carry
 * events recorded after the gates. */
#ifndef UVA_TESTS_GPU_FIXTURE_H
#define UVA_TESTS_GPU_FIXTURE_H

#include "devices/vendor_driver.h"
#include "support/fake_source.h"
#include "support/loop_fixture.h"
#include "uvarrow/uvarrow.h"

/* GPU_OPERATIONS: queued on a stream before a gate opens; a driver blocks when
 * about 1,000 are queued. */
enum { GPU_STREAMS = 4, GPU_OPERATIONS = 256, GPU_BATCHES = 1000 };

struct gpu_fixture {
    const struct vendor_driver *gpu;    /* NULL: not open */
    const struct fake_control *control; /* real driver: no functions */
    struct loop_fixture loop;
    struct fake_source fake;
    void *streams[GPU_STREAMS];
    void *idle;                /* a stream without a gate */
    _Atomic uint32_t *words;   /* words of the gates, in pinned memory */
    void *events[GPU_BATCHES]; /* events of batches; NULL: not made */
    struct ArrowDeviceArray arrays[GPU_BATCHES];
    bool unwatched; /* batches do not query their events */
    bool early;     /* a batch arrived before its event was complete */
    int64_t batches;
    bool done;
    struct uva_outcome outcome;
    int answers; /* results of uva_array_wait() */
    struct uva_error answer;
};

/* Opens the fixture, for at most this many batches. The device is current until
 * the fixture is closed. */
void gpu_fixture_open(struct gpu_fixture *s, const struct vendor_driver *gpu,
                      const struct fake_control *control, int64_t batches);

/* Waits for the work of a fake device after the end of a runtime, within the
 * time limit of the program: the device thread may end after it, and a stream
 * that was destroyed still runs its queued work. */
void gpu_fixture_await_end(const struct fake_control *control);

/* Opens the gates and closes the loop. Checks that everything was released,
 * also on a fake device. Without effect where the fixture is not open. */
void gpu_fixture_close(struct gpu_fixture *s);

/* Batch k carries an event after gate k % GPU_STREAMS, which opens for it at
 * the value k / GPU_STREAMS + 1; or, if that takes too many operations, all
 * gates open at the value 1. */
void gpu_fixture_arrays(struct gpu_fixture *s, int count);

/* Makes batch k, without an event. */
void gpu_fixture_array(struct gpu_fixture *s, int k,
                       struct ArrowDeviceArray *out);

/* Opens the gate of batch k, and of those before it on its stream. */
void gpu_fixture_pass(struct gpu_fixture *s, int k);
void gpu_fixture_pass_all(struct gpu_fixture *s);

/* Waits until the device thread has run the commands sent so far, which it does
 * in order: the release of batch k, which is made for that, is the last one. No
 * stream is destroyed, as that may wait for all gates. */
void gpu_fixture_commands_end(struct gpu_fixture *s, int k);

/* Makes a stream of the first batches that waits for their events. */
struct uva_stream *gpu_fixture_ready(struct gpu_fixture *s, int count,
                                     const struct uva_ready *options);

/* Keeps the outcome, for gpu_fixture_until_done(); ctx is the fixture. */
void gpu_fixture_on_done(void *ctx, const struct uva_outcome *outcome);

/* Turns the loop until the stream's end, or until the result of the wait. */
void gpu_fixture_until_done(struct gpu_fixture *s);

/* Waits for the event of array k, which that does not release. */
void gpu_fixture_ask(struct gpu_fixture *s, int k, int64_t timeout_ms);

#endif
