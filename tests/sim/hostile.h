/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that break one clause each: the mutants of the reference producer and
 * of the reference consumer. */
#ifndef SIM_HOSTILE_H
#define SIM_HOSTILE_H

#include "sim/story.h"
#include "support/reference_mutant.h"
#include "uvarrow/stream.h"

/* Begins anew. */
void hostile_producers_begin(void);
void hostile_handlers_begin(void);

/* Says, when all else is over, that no more will come of them. */
void hostile_producers_conclude(void);
void hostile_handlers_conclude(void);

/* One of the mutants of a kind. */
const struct reference_mutant *
hostile_draw(const struct reference_mutant *(*all)(int *count));

/* As a source of peers.h; as a consumer. */
struct uva_stream *hostile_producer_stream(struct uva_runtime *runtime,
                                           struct story *story);
int hostile_handler_start(struct uva_stream *stream, struct story *story);

#endif
