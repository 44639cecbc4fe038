/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of a chain that cast: to other types of columns and back, and streams
 * of other types that are merged with the chain, or go after it, with batches
 * of their own. */
#ifndef SIM_CAST_STAGE_H
#define SIM_CAST_STAGE_H

#include "sim/expectation.h"
#include "uvarrow/stream.h"

/* Adds casts, unless batches of the chain may be on a device. */
void cast_add_stage(struct uva_stream *stream, struct expectation *expectation);

/* Adds streams whose batches have other types, if the chain can take more
 * batches: not after a stage that counts. */
void cast_add_others(struct uva_runtime *runtime, struct uva_stream *stream,
                     struct expectation *expectation);

#endif
