/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of the fake source through stages of devices, a soft device, a guest
 * runtime on a loop of the test's own, and a consumer that looks at batches on
 * the host and keeps the outcome. */
#ifndef UVA_SUPPORT_DEVICE_SCENE_H
#define UVA_SUPPORT_DEVICE_SCENE_H

#include "support/loop_rig.h"
#include "support/soft_device.h"
#include "uvarrow/uvarrow.h"

struct device_scene {
    struct loop_rig rig;
    struct fake_source fake;
    struct soft_device device;
    struct uva_stream *stream;
    /* what came of it */
    int64_t batches;             /* delivered */
    ArrowDeviceType device_type; /* of the last */
    const void *sync_event;      /* of the last */
    bool in_order;               /* by ordinals, and by values on the host */
    bool told;                   /* all with the metadata of the source */
    bool done;
    struct uva_outcome outcome;
    char text[200]; /* of the outcome */
};

void device_scene_open(struct device_scene *s, enum soft_mode mode,
                       int64_t batches);

/* The same on workers of the test's, or NULL. */
void device_scene_open_on(struct device_scene *s, enum soft_mode mode,
                          int64_t batches, struct uva_workers *workers);

/* Gives the scene the source as a stream: with events, or plain and of the
 * host. */
void device_scene_source(struct device_scene *s);
void device_scene_host_source(struct device_scene *s);

/* Starts the stream; 0, or why not. */
int device_scene_start(struct device_scene *s, struct uva_error *error);

/* Turns the loop until the outcome is here; gives its code. */
int device_scene_await(struct device_scene *s);

/* Starts and awaits. */
int device_scene_run(struct device_scene *s);

/* Lets go of the stream and closes all, and checks the books. */
void device_scene_close(struct device_scene *s);

#endif
