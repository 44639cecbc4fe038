/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the soft device that works in order: copies, and events recorded
 * behind them. What was begun goes on when somebody asks after its event, or
 * when the test says so. */
#ifndef UVA_SUPPORT_SOFT_COPIES_H
#define UVA_SUPPORT_SOFT_COPIES_H

#include "support/soft_device.h"

/* For the table. */
int soft_copy(void *state, const struct uva_device_copy *copy, void **event_out,
              struct uva_error *error);
int soft_record(void *state, const struct uva_device_event *device,
                void *device_stream, void **event_out, struct uva_error *error);
void soft_event_free(void *state, void *event);
void *soft_alloc(void *state, ArrowDeviceType device_type, int64_t device_id,
                 size_t size_bytes);
void soft_dealloc(void *state, ArrowDeviceType device_type, int64_t device_id,
                  void *memory);

/* Forgets what was begun, of which nobody has the event any more. */
void soft_copies_forget(struct soft_device *device);

/* Goes on with what was begun, unless it is held. Thread: any. */
void soft_copies_advance(struct soft_device *device);

#endif
