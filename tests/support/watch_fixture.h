/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with a device thread and no loop: the test's thread is the client of
 * event waits, and blocks until they are over. */
#ifndef UVA_SUPPORT_WATCH_FIXTURE_H
#define UVA_SUPPORT_WATCH_FIXTURE_H

#include <semaphore.h>

#include "device/copy.h"
#include "support/soft_device.h"

struct event_wait_fixture {
    struct soft_device device;    /* of type EXT_DEV */
    struct uva__devices *devices; /* counts: one reference */
    bool ended;                   /* the workers have released them */
    sem_t over;                   /* posted when an event wait is over */
    struct uva_error outcome;     /* of the last event wait that was awaited */
};

void event_wait_open(struct event_wait_fixture *s, enum soft_mode mode);

/* Opens the fixture around a device table of the test. */
void event_wait_open_with(struct event_wait_fixture *s,
                          const struct uva_device_ops *ops, void *ctx);

/* Releases the devices on behalf of the workers. */
void event_wait_end(struct event_wait_fixture *s);

/* Waits until the device thread has ended, and checks that no object is left.
 */
void event_wait_close(struct event_wait_fixture *s);

/* Makes an event wait for event `k` of the device, without beginning it. */
struct uva_watch *event_wait_watch(struct event_wait_fixture *s, int k);

/* Waits until an event wait is over, and returns its outcome. */
int event_wait_await(struct event_wait_fixture *s, struct uva_watch *watch);

/* Waits until the device thread has run the commands sent so far. */
void event_wait_flush(struct event_wait_fixture *s);

/* Begins to copy `array`, which it takes. If it returns 0, it gives an event
 * wait. */
int event_wait_begin_copy(struct event_wait_fixture *s, ArrowDeviceType target,
                          const struct ArrowSchema *schema,
                          struct ArrowDeviceArray *array,
                          struct uva_watch **out, struct uva_error *error);

/* Copies `array`, which it takes. If it returns 0, it gives `out`. */
int event_wait_copy(struct event_wait_fixture *s, ArrowDeviceType target,
                    const struct ArrowSchema *schema,
                    struct ArrowDeviceArray *array,
                    struct ArrowDeviceArray *out, struct uva_error *error);

#endif
