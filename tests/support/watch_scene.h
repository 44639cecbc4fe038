/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with a service and no loop: the test's thread is the client of
 * watches, and waits for them. */
#ifndef UVA_SUPPORT_WATCH_SCENE_H
#define UVA_SUPPORT_WATCH_SCENE_H

#include <semaphore.h>

#include "device/copy.h"
#include "support/soft_device.h"

struct event_wait_scene {
    struct soft_device device;    /* of type EXT_DEV */
    struct uva__devices *devices; /* counts */
    bool ended;                   /* the workers' use of them is over */
    sem_t over;                   /* posted for each watch that is over */
    struct uva_error outcome;     /* of the last one that was awaited */
};

void event_wait_scene_open(struct event_wait_scene *s, enum soft_mode mode);

/* The same around a table of the test's. */
void event_wait_scene_open_with(struct event_wait_scene *s,
                                const struct uva_device_ops *ops, void *ctx);

/* The workers go. */
void event_wait_scene_end(struct event_wait_scene *s);

/* Waits until the service has ended, and checks that all is tidied up. */
void event_wait_scene_close(struct event_wait_scene *s);

/* Makes a watch for event `k` of the device, not begun. */
struct uva_watch *event_wait_scene_watch(struct event_wait_scene *s, int k);

/* Waits until a watch is over, and gives its outcome. */
int event_wait_scene_await(struct event_wait_scene *s, struct uva_watch *watch);

/* Waits until the service has run what was sent so far. */
void event_wait_scene_flush(struct event_wait_scene *s);

/* Begins to copy `array`, which it takes. 0 gives a watch. */
int event_wait_scene_begin_copy(struct event_wait_scene *s,
                                ArrowDeviceType target,
                                const struct ArrowSchema *schema,
                                struct ArrowDeviceArray *array,
                                struct uva_watch **out,
                                struct uva_error *error);

/* The same, and waits for it. 0 gives `out`. */
int event_wait_scene_copy(struct event_wait_scene *s, ArrowDeviceType target,
                          const struct ArrowSchema *schema,
                          struct ArrowDeviceArray *array,
                          struct ArrowDeviceArray *out,
                          struct uva_error *error);

#endif
