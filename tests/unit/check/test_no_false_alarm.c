/* SPDX-License-Identifier: Apache-2.0 */
/* Conforming pairs, drawn at random, with a check in between: no breach is
 * reported, and everything is released. A failure names the seed; UVA_SEED runs
 * that one alone, and UVA_STREAMS sets how many are run otherwise. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "check/handler_check.h"
#include "support/breach_list.h"
#include "support/check_suite.h"
#include "support/reference_run.h"
#include "support/reference_stream.h"

enum { STREAMS = 100000, ROUNDS = 10 };

/* One in so many streams is a blocking one. */
enum { BLOCKING = 5 };

/* One draw in so many runs on threads. */
enum { THREADED = 50 };

/* One draw in so many is perturbed, with separate threads and without. A
 * perturbation yields, and a busy machine then takes a whole turn: most of them
 * are where threads meet. */
enum { PERTURBED = 4, PERTURBED_ALONE = 400 };

static struct uva_check draw_check(struct reference_chance *chance,
                                   int64_t perturbed,
                                   struct breach_list *reports)
{
    struct uva_check options = breach_list_check(reports);

    options.keep = reference_chance_hits(chance, 2);
    options.deep = reference_chance_hits(chance, 2);
    if (reference_chance_hits(chance, perturbed))
        options.perturb_seed = reference_chance_next(chance);
    return options;
}

static void be_silent(struct breach_list *reports, uint64_t seed)
{
    if (atomic_load(&reports->count) > 0)
        fprintf(stderr, "UVA_SEED=%llu\n", (unsigned long long)seed);
    breach_list_is_empty(reports);
}

static void balance(const struct reference_producer *p,
                    const struct reference_consumer *c)
{
    ck_assert(reference_producer_over(p));
    ck_assert_int_eq(atomic_load(&p->offered), atomic_load(&p->settled));
    ck_assert_int_eq(atomic_load(&p->released), 1);
    ck_assert_int_eq(atomic_load(&p->faults), 0);
    ck_assert_int_eq(atomic_load(&p->live_structs.live), 0);
    ck_assert_int_eq(atomic_load(&c->faults), 0);
}

/* However slow this machine is. */
static const struct uva__check_times unlimited = {.slow_call_ms = INT64_MAX,
                                                  .slow_extract_ms = INT64_MAX};

static void one_stream(uint64_t seed)
{
    struct reference_chance chance = {seed * 7919};
    const bool threaded = reference_chance_hits(&chance, THREADED);
    struct breach_list reports = {0};
    const struct uva_check options =
        draw_check(&chance, threaded ? PERTURBED : PERTURBED_ALONE, &reports);
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct reference_producer producer;
    struct reference_consumer consumer;
    struct reference_pair pair;

    reference_pair_draw(&chance, threaded, &pair);
    reference_producer_init(&producer, &pair.producer);
    reference_consumer_init(&consumer, &pair.consumer);
    ck_assert_int_eq(uva__handler_check_within(&unlimited, &consumer.handler,
                                               &options, &checked, NULL),
                     0);
    reference_producer_start(&producer, checked);
    if (threaded)
        reference_run_threads(&producer, &consumer,
                              1 + (int)reference_chance_below(&chance, 3));
    else
        reference_run_random(&producer, &consumer, &chance);
    reference_consumer_release(&consumer);
    if (options.keep)
        ck_assert_int_eq(uva_check_conclude(checked), 0);
    be_silent(&reports, seed);
    reference_consumer_fini(&consumer);
    balance(&producer, &consumer);
    reference_producer_fini(&producer);
}

/* The number in an environment variable, or `otherwise`. */
static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

START_TEST(conforming_pairs_are_not_reported)
{
    const uint64_t each = number_of("UVA_STREAMS", STREAMS) / ROUNDS;
    const uint64_t only = number_of("UVA_SEED", 0);

    if (only != 0)
        one_stream(only);
    else
        for (uint64_t i = 1; i <= each; i++)
            one_stream((uint64_t)_i * each + i);
}
END_TEST

/* ---- blocking streams --------------------------------------------------- */

static void draw_blocking(struct reference_chance *chance,
                          struct stream_pair *out)
{
    *out = (struct stream_pair){
        .stream = {.batches = reference_chance_below(chance, 6),
                   .fails = reference_chance_hits(chance, 3),
                   .fails_first = reference_chance_hits(chance, 20),
                   .mute = reference_chance_hits(chance, 3),
                   .metadata = reference_chance_hits(chance, 2),
                   .device_type =
                       (ArrowDeviceType)(reference_chance_hits(chance, 4)
                                             ? ARROW_DEVICE_CUDA_MANAGED
                                             : ARROW_DEVICE_CPU)},
        .reader = {.stop_at = reference_chance_below(chance, 4),
                   .again = reference_chance_below(chance, 3),
                   .keep = reference_chance_hits(chance, 3),
                   .text = reference_chance_hits(chance, 2)},
    };
}

static void one_blocking(uint64_t seed)
{
    struct reference_chance chance = {seed * 104729};
    struct breach_list reports = {0};
    struct uva_check options = draw_check(&chance, PERTURBED_ALONE, &reports);
    struct ArrowDeviceArrayStream checked;
    struct reference_stream stream;
    struct reference_reader reader;
    struct stream_pair pair;

    options.keep = false;
    draw_blocking(&chance, &pair);
    reference_stream_init(&stream, &pair.stream);
    reference_stream_give(&stream, &checked);
    ck_assert_int_eq(uva_check_device_stream(&checked, &options, NULL), 0);
    reference_reader_init(&reader, &pair.reader, &checked);
    while (reference_reader_step(&reader))
        ;
    reference_reader_fini(&reader);
    be_silent(&reports, seed);
    ck_assert_int_eq(reader.faults, 0);
    ck_assert_int_eq(atomic_load(&stream.faults), 0);
    ck_assert_int_eq(atomic_load(&stream.released), 1);
    ck_assert_int_eq(atomic_load(&stream.live_structs.live), 0);
    reference_stream_fini(&stream);
}

START_TEST(conforming_streams_and_readers_are_not_reported)
{
    const uint64_t all = number_of("UVA_STREAMS", STREAMS) / BLOCKING;

    for (uint64_t seed = 1; seed <= all; seed++)
        one_blocking(seed);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("pairs");

    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, conforming_pairs_are_not_reported, 0, ROUNDS);
    tcase_add_test(tcase, conforming_streams_and_readers_are_not_reported);
    return suite_main("no false alarm", NULL, NULL, tcase, NULL);
}
