/* SPDX-License-Identifier: Apache-2.0 */
/* What flows in a simulated stream: batches that know their place, and how many
 * maps they went through, and schemas. Each is in the books of the arena until
 * it is released, which it must be once. */
#ifndef SIM_CRATE_H
#define SIM_CRATE_H

#include "uvarrow/arrow_abi.h"

/* The schema of all batches: one column of numbers. */
void crate_schema(struct ArrowSchema *out);

/* Batch number `ordinal`, through `hops` maps. */
void crate_batch(int64_t ordinal, int64_t hops, struct ArrowArray *out);
void crate_device_batch(int64_t ordinal, int64_t hops,
                        struct ArrowDeviceArray *out);

/* Puts a fresh one on the simulated device, with an event, which is let go of
 * when it is released; `let_go` NULL: not so. */
void crate_keep(struct ArrowDeviceArray *batch, void *event,
                void (*let_go)(void *event));

/* That event; of no copy. */
void *crate_event(const struct ArrowArray *batch);

/* What a batch says of itself. One that is none ends the schedule. */
int64_t crate_ordinal(const struct ArrowArray *batch);
int64_t crate_hops(const struct ArrowArray *batch);

/* Notes in a batch, which is the caller's alone, that it went through a map. */
void crate_add_hop(struct ArrowArray *batch);

/* Ends the schedule unless it is the schema of all batches. */
void crate_check_schema(const struct ArrowSchema *schema);

#endif
