/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime, some GPU streams with a gate each, and batches with events that
 * are recorded after the gates. */
#ifndef UVA_TESTS_GPU_SCENE_H
#define UVA_TESTS_GPU_SCENE_H

#include "devices/vendor_driver.h"
#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

enum { GPU_STREAMS = 4, GPU_BATCHES = 4096 };

struct gpu_scene {
    const struct vendor_driver *gpu;
    const struct fake_control *control; /* NULL functions: a real driver */
    struct loop_rig rig;
    struct fake_source fake;
    void *streams[GPU_STREAMS];
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

/* Opens the fixture, for at most so many batches; the device is current until
 * it is closed. */
void gpu_scene_open(struct gpu_scene *s, const struct vendor_driver *gpu,
                    const struct fake_control *control, int64_t batches);

/* Opens the gates and closes the runtime; everything must have been freed, also
 * in a fake device. */
void gpu_scene_close(struct gpu_scene *s);

/* Gives batch k an event after gate k % GPU_STREAMS, which opens for it at the
 * value k / GPU_STREAMS + 1. */
void gpu_scene_arrays(struct gpu_scene *s, int count);

/* Makes batch k, without an event. */
void gpu_scene_array(struct gpu_scene *s, int k, struct ArrowDeviceArray *out);

/* Opens the gate for batch k, and for those before it on its stream. */
void gpu_scene_pass(struct gpu_scene *s, int k);
void gpu_scene_pass_all(struct gpu_scene *s);

/* Makes a stream of the first batches, which waits for their events. */
struct uva_stream *gpu_scene_ready(struct gpu_scene *s, int count,
                                   const struct uva_ready *how);

/* Turns the loop until the stream's end, or the result of a wait. */
void gpu_scene_until_done(struct gpu_scene *s);

/* Waits for array k; does not release it. */
void gpu_scene_ask(struct gpu_scene *s, int k, int64_t timeout_ms);

#endif
