/* SPDX-License-Identifier: Apache-2.0 */
/* What is still under way of a copy whose result was passed on: its source, and
 * the replica whose memory is filled, stay until the last event is over. */
#ifndef UVA_DEVICES_TAIL_H
#define UVA_DEVICES_TAIL_H

#include "devices/replica.h"
#include "devices/watch.h"

/* Who is told when it is over. */
struct uva__tail_client {
    /* once: service; may only post. NULL: nobody */
    void (*over)(void *ctx, int64_t weight);
    void *ctx;      /* borrows: lasts until then */
    int64_t weight; /* whatever it likes */
};

/* Takes `source`, and `event` into the replica, whose result carries it.
 * `event` says which device too. False without memory: nothing was taken.
 * Thread: service. */
UVA_MUST_CHECK bool uva__tail_new(struct uva__devices *devices,
                                  const struct uva_device_event *event,
                                  struct uva__replica *replica,
                                  struct ArrowDeviceArray *source,
                                  const struct uva__tail_client *client);

#endif
