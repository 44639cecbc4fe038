/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that break one clause each: the mutants of the reference producer and
 * of the reference consumer. */
#ifndef SIM_HOSTILE_H
#define SIM_HOSTILE_H

#include "sim/expectation.h"
#include "support/reference_mutant.h"
#include "uvarrow/stream.h"

/* Start a new schedule. */
void hostile_producers_begin(void);
void hostile_handlers_begin(void);

/* Called when all else is over: the peers will make no more calls. */
void hostile_producers_conclude(void);
void hostile_handlers_conclude(void);

/* Draws a mutant of a kind. */
const struct reference_mutant *
hostile_draw(const struct reference_mutant *(*all)(int *count));

/* A mutant as a source of peers.h, and as a consumer. */
struct uva_stream *hostile_producer_stream(struct uva_runtime *runtime,
                                           struct expectation *expectation);
int hostile_handler_start(struct uva_stream *stream,
                          struct expectation *expectation);

#endif
