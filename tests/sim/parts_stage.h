/* SPDX-License-Identifier: Apache-2.0 */
/* The last stage of some chains: it encodes, and the consumer gets parts. Each
 * part is read, and must have the lines, or the buffers, of its batch. */
#ifndef SIM_PARTS_STAGE_H
#define SIM_PARTS_STAGE_H

#include "sim/expectation.h"
#include "uvarrow/stream.h"

/* Adds the stage, unless batches may be on a device. */
void parts_add_stage(struct uva_stream *stream,
                     struct expectation *expectation);

/* Reads the part that a batch carries. Gives the ordinal of the batch that was
 * encoded, and the maps that it passed. False: the part is of no batch. */
bool parts_read(struct expectation *expectation,
                const struct ArrowDeviceArray *batch, int64_t *ordinal,
                int64_t *hops);

/* Takes the part out of a batch, and releases it, now or later, on another
 * fiber. */
void parts_take(struct ArrowDeviceArray *batch);

#endif
