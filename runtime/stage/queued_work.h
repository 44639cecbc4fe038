/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a user function queues on a device for one batch: it is made before
 * the work is queued, so that no later step can fail for lack of memory. It
 * keeps the memory that the work reads and writes, until the work is complete.
 * stage/map_device.c has the rest of the map. */
#ifndef UVA_STAGE_QUEUED_WORK_H
#define UVA_STAGE_QUEUED_WORK_H

#include "stream/runtime_devices.h"

struct uva__queued_work;

/* Makes it, for a device of a type with a table that is loaded and can record.
 * Uses the devices. 0; ENOMEM. Thread: a job of `rt`, which lasts until the
 * work is begun or freed. */
UVA_MUST_CHECK int uva__queued_work_new(struct uva__rt *rt,
                                        struct uva__devices *devices,
                                        const struct uva_device_event *device,
                                        struct uva__queued_work **out,
                                        struct uva_error *error);

/* Frees it: no work was queued. Thread: that job. */
void uva__queued_work_free(struct uva__queued_work *work);

/* Records an event on `device_stream`, after the work, and takes `input`, if
 * that is live, until the event is complete or has failed. `output`, if that is
 * live, gets the event, and its release waits for the event, too. If the event
 * cannot be recorded, both arrays are taken, and kept until the workers end. 0,
 * or why that is. Takes `work`. Thread: that job. */
UVA_MUST_CHECK int uva__queued_work_begin(struct uva__queued_work *work,
                                          void *device_stream,
                                          struct ArrowDeviceArray *input,
                                          struct ArrowDeviceArray *output,
                                          struct uva_error *error);

#endif
