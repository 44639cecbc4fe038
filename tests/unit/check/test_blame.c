/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants against partners drawn at random, in any order of steps: no breach is
 * ever reported against the partner, and memory stays sound. A failure names
 * the mutant and the seed. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "check/handler_check.h"
#include "support/breach_list.h"
#include "support/case_list.h"
#include "support/reference_run.h"

enum { ROUNDS = 100, STEPS = 400 };

/* The options of the mutant's own pair, with random ones for the partner. */
static void draw_pair(const struct reference_mutant *mutant, bool of_producer,
                      struct reference_chance *chance,
                      struct reference_pair *out)
{
    reference_pair_draw(chance, true, out);
    if (of_producer) {
        out->producer = mutant->pair->producer;
        out->producer.mutant = mutant;
        out->consumer.second = mutant->pair->consumer.second;
    } else {
        out->consumer = mutant->pair->consumer;
        out->consumer.mutant = mutant;
        out->producer.lazy = out->producer.lazy && !out->consumer.hold;
    }
    out->consumer.hold = out->consumer.hold && !of_producer;
    out->consumer.keep = false;
}

/* Runs as far as the pair gets: a mutant may never end. */
static void run_some(struct reference_producer *producer,
                     struct reference_consumer *consumer,
                     struct reference_chance *chance)
{
    for (int i = 0; i < STEPS; i++)
        if (reference_chance_hits(chance, 3))
            reference_producer_step(producer);
        else
            reference_consumer_step(consumer);
    reference_consumer_cancel(consumer);
    for (int i = 0; i < STEPS; i++) {
        reference_producer_step(producer);
        reference_consumer_step(consumer);
    }
}

static void blame_only(struct breach_list *reports, enum uva_party party,
                       const struct reference_mutant *mutant, uint64_t seed)
{
    for (int i = 0; i < atomic_load(&reports->count); i++)
        if (reports->entries[i].party == party ||
            reports->entries[i].party == UVA_PARTY_EITHER ||
            (mutant->also != NULL &&
             strcmp(reports->entries[i].clause, mutant->also) == 0))
            atomic_store(&reports->entries[i].taken, true);
        else
            fprintf(stderr, "%s %s, seed %d\n", mutant->clause, mutant->variant,
                    (int)seed);
    breach_list_is_empty(reports);
}

/* However slow this machine is. */
static const struct uva__check_times unlimited = {.slow_call_ms = INT64_MAX,
                                                  .slow_extract_ms = INT64_MAX};

static void blame_once(const struct reference_mutant *mutant, bool of_producer,
                       uint64_t seed)
{
    struct reference_chance chance = {seed};
    struct breach_list reports = {0};
    struct uva_check options = breach_list_check(&reports);
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct reference_producer producer;
    struct reference_consumer consumer;
    struct reference_pair pair;

    options.keep = true;
    options.deep = reference_chance_hits(&chance, 2);
    draw_pair(mutant, of_producer, &chance, &pair);
    reference_producer_init(&producer, &pair.producer);
    reference_consumer_init(&consumer, &pair.consumer);
    if (uva__handler_check_within(&unlimited, &consumer.handler, &options,
                                  &checked, NULL) == 0) {
        reference_producer_start(&producer, checked);
        run_some(&producer, &consumer, &chance);
        reference_consumer_release(&consumer);
        uva_check_conclude(checked);
    }
    reference_consumer_fini(&consumer);
    reference_producer_fini(&producer);
    blame_only(&reports, of_producer ? UVA_PARTY_PRODUCER : UVA_PARTY_CONSUMER,
               mutant, seed);
}

static const struct reference_mutant *mutant_at(int i, bool *of_producer)
{
    int count;
    const struct reference_mutant *all = producer_mutants(&count);

    *of_producer = i < count;
    if (*of_producer)
        return &all[i];
    i -= count;
    all = consumer_mutants(&count);
    return i < count ? &all[i] : NULL;
}

static void case_run(int i)
{
    bool of_producer;
    const struct reference_mutant *mutant = mutant_at(i, &of_producer);

    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        blame_once(mutant, of_producer, seed);
}

int main(void)
{
    TCase *tcase = tcase_create("blame");
    const struct reference_mutant *mutant;
    bool of_producer;

    for (int i = 0; (mutant = mutant_at(i, &of_producer)) != NULL; i++)
        if ((mutant->shows & REFERENCE_SHOWS_SLOW) == 0 &&
            !mutant->pair->producer.steps_in_request)
            case_list_add(tcase, mutant->clause, mutant->variant, case_run, i);
    return case_list_run("blame", tcase);
}
