/* SPDX-License-Identifier: Apache-2.0 */
/* One array of a soft device, on a loop and without a stream, and what is
 * answered and logged about it. */
#ifndef UVA_TEST_ARRAY_SCENE_H
#define UVA_TEST_ARRAY_SCENE_H

#include "support/loop_rig.h"
#include "support/soft_copies.h"
#include "uvarrow/uvarrow.h"

struct array_scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct soft_device device;
    struct ArrowDeviceArray array; /* its event is the device's first */
    struct uva_error error;        /* the answer */
    int answers;
    int wanted; /* of those, for the loop to go on; 1 at first */
    bool on_loop;
    atomic_int warnings; /* logged, of EV-17 */
    char warning[200];   /* the last one */
};

/* Opens a runtime with a soft device, and makes an array of it. */
void array_scene_open(struct array_scene *s, enum soft_mode mode);

/* Closes it; nothing may be left. */
void array_scene_close(struct array_scene *s);

/* uva_array_wait() on the array, and what answers it: `ctx` is the scene. */
int array_scene_wait(struct array_scene *s, int64_t timeout_ms);
uva_array_wait_fn array_scene_on_answer;

/* Runs the loop until all answers that are wanted have come; the last one's
 * code. */
int array_scene_outcome(struct array_scene *s);

#endif
