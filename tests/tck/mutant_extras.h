/* SPDX-License-Identifier: Apache-2.0 */
/* More ways to break a clause, for what the suite sees and a check between two
 * peers does not: data that is not what was to come, ends that are not true,
 * what is left behind. */
#ifndef UVA_TCK_MUTANT_EXTRAS_H
#define UVA_TCK_MUTANT_EXTRAS_H

#include "support/reference_mutant.h"
#include "support/reference_stream.h"
#include "uvarrow/tck.h"

const struct reference_mutant *mutant_producer_extras(int *count);
const struct reference_mutant *mutant_consumer_extras(int *count);
const struct stream_mutant *mutant_stream_extras(int *count);

/* A producer was made: its batches are counted. */
void mutant_watch(struct reference_producer *producer);

/* Batches made by the last producer that is watched, with those that a mutant
 * only says it made. Thread: any. */
int64_t mutant_made(void);

/* What a mutant says instead. `mutant` may be NULL. */
void mutant_outcome(const struct reference_mutant *mutant,
                    struct uva_subject_outcome *out);

#endif
