/* SPDX-License-Identifier: Apache-2.0 */
/* A peer waits only for a step of the other one, so a thread without a step to
 * make yields and tries again. */
#include "support/reference_run.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MOST_THREADS = 4 };

/* ---- random numbers ----------------------------------------------------- */

uint64_t reference_chance_next(struct reference_chance *chance)
{
    uint64_t z = chance->state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int64_t reference_chance_below(struct reference_chance *chance, int64_t n)
{
    return (int64_t)(reference_chance_next(chance) % (uint64_t)n);
}

bool reference_chance_hits(struct reference_chance *chance, int64_t n)
{
    return reference_chance_below(chance, n) == 0;
}

/* ---- pairs -------------------------------------------------------------- */

static void draw_producer(struct reference_chance *chance,
                          struct reference_producer_options *out)
{
    *out = (struct reference_producer_options){
        .batches = reference_chance_below(chance, 8),
        .fails_first = reference_chance_hits(chance, 40),
        .fails = reference_chance_hits(chance, 6),
        .lazy = reference_chance_hits(chance, 4),
        .spoilt_at = reference_chance_below(chance, 12),
        .leaves_out = reference_chance_hits(chance, 2),
        .hurries = reference_chance_hits(chance, 3),
        .hasty = reference_chance_hits(chance, 3),
        .cancel_code = reference_chance_hits(chance, 5) ? EIO : 0,
        .late = reference_chance_below(chance, 3),
        .late_end = reference_chance_hits(chance, 3),
        .end_is_asked = reference_chance_hits(chance, 4),
        .metadata = reference_chance_hits(chance, 2),
        .device_type = reference_chance_hits(chance, 5) ? ARROW_DEVICE_CUDA_HOST
                                                        : ARROW_DEVICE_CPU,
    };
}

static void draw_consumer(struct reference_chance *chance, bool alone,
                          struct reference_consumer_options *out)
{
    *out = (struct reference_consumer_options){
        .first = reference_chance_below(chance, 4),
        .second = reference_chance_hits(chance, 4) ? 2 : 0,
        .more = reference_chance_below(chance, 4) + alone,
        .more_at_once = reference_chance_hits(chance, 2),
        .cancel_at = reference_chance_hits(chance, 3)
                         ? 1 + reference_chance_below(chance, 6)
                         : 0,
        .cancel_inside = reference_chance_hits(chance, 2),
        .refuse_at = reference_chance_hits(chance, 8)
                         ? 1 + reference_chance_below(chance, 6)
                         : 0,
        .refuse_schema = reference_chance_hits(chance, 30),
        .extract = reference_chance_hits(chance, 3) ? REFERENCE_AT_ONCE
                                                    : REFERENCE_LATER,
        .discard = reference_chance_hits(chance, 6),
        .keep = reference_chance_hits(chance, 4),
        .splits = reference_chance_hits(chance, 4),
        .hold = reference_chance_hits(chance, 4),
        .asks_on = reference_chance_hits(chance, 3),
        .cancels_on_fail = reference_chance_hits(chance, 2),
    };
    if (reference_chance_hits(chance, 10))
        out->first = INT64_MAX;
    if (out->first == INT64_MAX)
        out->second = 0;
}

void reference_pair_draw(struct reference_chance *chance, bool alone,
                         struct reference_pair *out)
{
    draw_producer(chance, &out->producer);
    draw_consumer(chance, alone, &out->consumer);
    out->producer.reports_at_once = !alone && reference_chance_hits(chance, 2);
    out->producer.reports_early = !alone && reference_chance_hits(chance, 4);
    if (out->producer.lazy && !out->producer.hurries)
        out->consumer.hold = false; /* release waits for the tasks */
    if (reference_chance_hits(chance, 8) &&
        (out->consumer.cancel_at > 0 || !alone))
        out->producer.batches = -1;
    if (out->producer.batches < 0 && out->consumer.cancel_at == 0)
        out->consumer.cancel_at = 5;
}

/* ---- runs --------------------------------------------------------------- */

void reference_run(struct reference_producer *producer,
                   struct reference_consumer *consumer)
{
    bool moved = true;

    while (moved) {
        moved = false;
        while (reference_consumer_step(consumer))
            moved = true;
        moved = reference_producer_step(producer) || moved;
    }
}

void reference_run_random(struct reference_producer *producer,
                          struct reference_consumer *consumer,
                          struct reference_chance *chance)
{
    const int64_t bias = 2 + reference_chance_below(chance, 4);
    int idle = 0;

    while (!reference_producer_over(producer) ||
           !reference_consumer_over(consumer)) {
        const bool moved = reference_chance_hits(chance, bias)
                               ? reference_producer_step(producer)
                               : reference_consumer_step(consumer);
        idle = moved ? 0 : idle + 1;
        if (idle > 50 && !reference_producer_step(producer) &&
            !reference_consumer_step(consumer))
            reference_consumer_cancel(consumer);
    }
}

struct worker {
    struct reference_producer *producer;
    struct reference_consumer *consumer;
};

static void *produce(void *ctx)
{
    const struct worker *worker = ctx;

    while (!reference_producer_over(worker->producer))
        if (!reference_producer_step(worker->producer))
            sched_yield();
    return NULL;
}

static void *consume(void *ctx)
{
    const struct worker *worker = ctx;

    while (!reference_consumer_over(worker->consumer))
        if (!reference_consumer_step(worker->consumer))
            sched_yield();
    return NULL;
}

void reference_run_threads(struct reference_producer *producer,
                           struct reference_consumer *consumer, int threads)
{
    struct worker worker = {producer, consumer};
    pthread_t ids[MOST_THREADS + 1];
    int i;

    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    for (i = 0; i <= threads; i++)
        if (pthread_create(&ids[i], NULL, i == 0 ? produce : consume,
                           &worker) != 0)
            abort();
    for (i = 0; i <= threads; i++)
        pthread_join(ids[i], NULL);
}
