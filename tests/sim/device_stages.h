/* SPDX-License-Identifier: Apache-2.0 */
/* Chains whose batches are on the simulated device: how they are made, wait,
 * and are consumed. */
#ifndef SIM_DEVICE_STAGES_H
#define SIM_DEVICE_STAGES_H

#include "sim/story.h"
#include "uvarrow/uvarrow.h"

/* Begins anew: nobody waits for an array. */
void device_stages_begin(void);

/* The type of what comes out of the chain as far as it is built. */
ArrowDeviceType device_type(const struct story *story);

/* Makes a batch, on the device or not; there it has an event, or none. */
void device_batch(struct story *story, bool on_device, int64_t ordinal,
                  int64_t hops, struct ArrowDeviceArray *out);

/* The same, now and then with an event that the library records. */
void device_recorded_batch(struct uva_runtime *runtime, struct story *story,
                           int64_t ordinal, struct ArrowDeviceArray *out);

/* Adds a stage: ready in one of its modes, or transfer; ready alone. */
void device_add_stage(struct uva_stream *stream, struct story *story);
void device_add_ready(struct uva_stream *stream, struct story *story);

/* A map makes new batches at this place. */
void device_add_fresh(struct story *story);

/* Ends the schedule if a batch arrives in another place, or before its event,
 * than the chain is made for. */
void device_see(const struct story *story,
                const struct ArrowDeviceArray *batch);

/* Whether a chain may fail with `code` for what the device does; ends the
 * schedule if it does so in another place. */
bool device_may_end(const struct story *story, int code);

/* On the loop: waits for the batch, or has it released behind work of the
 * device, now and then; false: it did not take it. */
bool device_take(struct story *story, struct ArrowDeviceArray *batch);

/* On any thread: arrays that no stream brings, and questions. */
void device_use_outside(struct uva_runtime *runtime);

/* Ends the schedule if a wait was not answered. */
void device_stages_check(void);

#endif
