/* SPDX-License-Identifier: Apache-2.0 */
/* A stage with results that fibers give later. */
#ifndef SIM_ASYNC_STAGE_H
#define SIM_ASYNC_STAGE_H

#include "sim/expectation.h"

/* Adds the stage, and starts the fibers. */
void async_add_stage(struct uva_stream *stream,
                     struct expectation *expectation);

#endif
