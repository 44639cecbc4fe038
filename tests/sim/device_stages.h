/* SPDX-License-Identifier: Apache-2.0 */
/* Chains with batches on the simulated device: how they are made, wait, and are
 * consumed. */
#ifndef SIM_DEVICE_STAGES_H
#define SIM_DEVICE_STAGES_H

#include "sim/expectation.h"
#include "uvarrow/uvarrow.h"

/* Starts a new schedule. */
void device_stages_begin(void);

/* Returns the device type of the output of the chain built so far. */
ArrowDeviceType device_type(const struct expectation *expectation);

/* Makes a batch, on the device or not; on the device with or without an
 * event. */
void device_batch(struct expectation *expectation, bool on_device,
                  int64_t ordinal, int64_t hops, struct ArrowDeviceArray *out);

/* As device_batch(), sometimes with an event that the library records. */
void device_recorded_batch(struct uva_runtime *runtime,
                           struct expectation *expectation, int64_t ordinal,
                           struct ArrowDeviceArray *out);

/* Adds a stage: ready in some mode, or transfer; the second one only ready. */
void device_add_stage(struct uva_stream *stream,
                      struct expectation *expectation);
void device_add_ready(struct uva_stream *stream,
                      struct expectation *expectation);

/* Notes that a map makes new batches at this place. */
void device_add_fresh(struct expectation *expectation);

/* Ends the schedule if a batch arrives in another place than the chain must
 * deliver it, or before its event. */
void device_see(const struct expectation *expectation,
                const struct ArrowDeviceArray *batch);

/* Returns whether a chain may fail with `code` because of the device; ends the
 * schedule if it may not fail at this place. */
bool device_may_end(const struct expectation *expectation, int code);

/* On the loop: sometimes waits for the batch, or has it released after work of
 * the device; false: the batch was not taken. */
bool device_take(struct expectation *expectation,
                 struct ArrowDeviceArray *batch);

/* On any thread: uses arrays without a stream, and queries the device. */
void device_use_outside(struct uva_runtime *runtime);

/* Ends the schedule as failed if a wait was not completed. */
void device_stages_check(void);

#endif
