/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a reference producer and a reference consumer to their end: in a fixed
 * order, in a random order, or on threads. */
#ifndef UVA_SUPPORT_REFERENCE_RUN_H
#define UVA_SUPPORT_REFERENCE_RUN_H

#include "support/reference_mutant.h"

/* Random numbers, determined by the seed. */
struct reference_chance {
    uint64_t state;
};

/* Returns the next number; a number below `n`; true once in `n` calls. */
uint64_t reference_chance_next(struct reference_chance *chance);
int64_t reference_chance_below(struct reference_chance *chance, int64_t n);
bool reference_chance_hits(struct reference_chance *chance, int64_t n);

/* Draws the options of two conforming peers. Any such pair ends in
 * reference_run_random(). If `alone`, it ends without a cancel, and on threads,
 * too. */
void reference_pair_draw(struct reference_chance *chance, bool alone,
                         struct reference_pair *out);

/* Makes all steps of the consumer, then a step of the producer, until both have
 * no step left. */
void reference_run(struct reference_producer *producer,
                   struct reference_consumer *consumer);

/* Makes steps at random. Cancels a stream that makes no progress. */
void reference_run_random(struct reference_producer *producer,
                          struct reference_consumer *consumer,
                          struct reference_chance *chance);

/* One thread steps the producer, and `threads` threads step the consumer, until
 * the stream is over. For pairs that end by themselves. */
void reference_run_threads(struct reference_producer *producer,
                           struct reference_consumer *consumer, int threads);

#endif
