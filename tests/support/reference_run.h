/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a reference producer and a reference consumer to their end: in a fixed
 * order, in one drawn by chance, or on threads. */
#ifndef UVA_SUPPORT_REFERENCE_RUN_H
#define UVA_SUPPORT_REFERENCE_RUN_H

#include "support/reference_mutant.h"

/* Numbers by chance, the same for the same seed. */
struct reference_chance {
    uint64_t state;
};

/* The next number; one below `n`; true once in `n` times. */
uint64_t reference_chance_next(struct reference_chance *chance);
int64_t reference_chance_below(struct reference_chance *chance, int64_t n);
bool reference_chance_hits(struct reference_chance *chance, int64_t n);

/* Draws what two conforming peers do. Any such pair comes to its end in
 * reference_run_random(); if `alone`, without help, on threads too. */
void reference_pair_draw(struct reference_chance *chance, bool alone,
                         struct reference_pair *out);

/* All steps of the consumer, then one of the producer, until neither has one
 * left. */
void reference_run(struct reference_producer *producer,
                   struct reference_consumer *consumer);

/* Steps by chance. Cancels a stream that stands still. */
void reference_run_random(struct reference_producer *producer,
                          struct reference_consumer *consumer,
                          struct reference_chance *chance);

/* A thread that steps the producer, and `threads` that step the consumer, until
 * all is over. For pairs that get there alone. */
void reference_run_threads(struct reference_producer *producer,
                           struct reference_consumer *consumer, int threads);

#endif
