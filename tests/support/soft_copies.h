/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the soft device that works in order: copies, and events recorded
 * after them. Steps that were begun run when an event of theirs is queried, or
 * when the test advances them. */
#ifndef UVA_SUPPORT_SOFT_COPIES_H
#define UVA_SUPPORT_SOFT_COPIES_H

#include "support/soft_device.h"

/* Functions for the device table. */
int soft_copy(void *state, const struct uva_device_copy *copy, void **event_out,
              struct uva_error *error);
int soft_copy_on(void *state, const struct uva_device_copy *copy,
                 void *device_stream, void **event_out,
                 struct uva_error *error);
int soft_record(void *state, const struct uva_device_event *device,
                void *device_stream, void **event_out, struct uva_error *error);
void soft_event_free(void *state, void *event);
void *soft_alloc(void *state, ArrowDeviceType device_type, int64_t device_id,
                 size_t size_bytes);
void soft_dealloc(void *state, ArrowDeviceType device_type, int64_t device_id,
                  void *memory);

/* Frees the steps that were begun and have no event any more. */
void soft_copies_forget(struct soft_device *device);

/* Runs the steps that were begun, unless the device is held. Thread: any. */
void soft_copies_advance(struct soft_device *device);

#endif
