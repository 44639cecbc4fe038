/* SPDX-License-Identifier: Apache-2.0 */
/* The reference peers as subjects of the test suite, each breaking the one
 * clause that the environment names: UVA_SUBJECT_MUTANT="AP-06" or
 * "AP-04.inside". If it is unset, they keep the rules, and the suite must find
 * no breach. Memory is never freed: a process runs one case. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/reference_mutant.h"
#include "support/reference_stream.h"
#include "tck/mutant_extras.h"
#include "tck/tagging.h"
#include "uvarrow/tck.h"

_Static_assert(REFERENCE_ROWS == UVA_SUBJECT_ROWS, "the same data");

enum { MOST = 1024 };

/* Counts of everything that was made. */
static struct reference_counts *ledgers[MOST];
static atomic_int live_structs_count;

/* The last producer: its batches are counted. */
static struct reference_producer *watched;

static void live_structs_remember(struct reference_counts *live_structs)
{
    const int n = atomic_fetch_add(&live_structs_count, 1);

    if (n >= MOST)
        abort();
    ledgers[n] = live_structs;
}

/* Returns whether the environment names this mutant. */
static bool is_chosen(const char *clause, const char *variant)
{
    const char *chosen = getenv("UVA_SUBJECT_MUTANT");
    char name[64];

    (void)snprintf(name, sizeof(name), variant[0] != '\0' ? "%s.%s" : "%s",
                   clause, variant);
    return chosen != NULL && strcmp(chosen, name) == 0;
}

static const struct reference_mutant *
chosen_of(const struct reference_mutant *mutants, int count)
{
    for (int i = 0; i < count; i++)
        if (is_chosen(mutants[i].clause, mutants[i].variant))
            return &mutants[i];
    return NULL;
}

static const struct reference_mutant *producer_chosen(void)
{
    int count;
    const struct reference_mutant *mutants = producer_mutants(&count);
    const struct reference_mutant *chosen = chosen_of(mutants, count);

    if (chosen != NULL)
        return chosen;
    mutants = mutant_producer_extras(&count);
    return chosen_of(mutants, count);
}

static const struct reference_mutant *consumer_chosen(void)
{
    int count;
    const struct reference_mutant *mutants = consumer_mutants(&count);
    const struct reference_mutant *chosen = chosen_of(mutants, count);

    if (chosen != NULL)
        return chosen;
    mutants = mutant_consumer_extras(&count);
    return chosen_of(mutants, count);
}

static const struct stream_mutant *stream_chosen(void)
{
    int count;
    const struct stream_mutant *mutants = stream_mutants(&count);

    for (int i = 0; i < count; i++)
        if (!mutants[i].of_reader &&
            is_chosen(mutants[i].clause, mutants[i].variant))
            return &mutants[i];
    mutants = mutant_stream_extras(&count);
    for (int i = 0; i < count; i++)
        if (is_chosen(mutants[i].clause, mutants[i].variant))
            return &mutants[i];
    return NULL;
}

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

int32_t uva_subject_knows(int32_t what)
{
    return what == UVA_SUBJECT_PLANS     ? UVA_SUBJECT_STUCK
           : what == UVA_SUBJECT_MANNERS ? UVA_SUBJECT_TAKES_BARE
                                         : UVA_SUBJECT_CANNOT;
}

int64_t uva_subject_count(int32_t what)
{
    const int count = atomic_load(&live_structs_count);
    int64_t live = 0;

    if (what != UVA_SUBJECT_LIVE)
        return watched != NULL ? watched->next : 0;
    for (int i = 0; i < count; i++)
        live += atomic_load(&ledgers[i]->live);
    return live;
}

/* ---- producer ----------------------------------------------------------- */

struct produced {
    struct reference_producer producer;
    bool stuck; /* its source gets stuck after the last batch */
};

/* The steps of the plan STUCK: reads all batches ahead, and frees the queue
 * when it is cancelled, although the source never comes back. */
static void *produced_stick(void *ctx)
{
    struct reference_producer *p = &((struct produced *)ctx)->producer;
    struct ArrowDeviceArray queue[8];
    bool cancelled = false;
    int64_t count = 0;

    while (p->next == 0)
        (void)reference_producer_step(p);
    while (p->next < p->how.batches && count < 8)
        reference_array(&p->live_structs, p->next++, &queue[count++]);
    while (!cancelled) {
        (void)sched_yield();
        pthread_mutex_lock(&p->lock);
        cancelled = p->now.view.cancelled;
        pthread_mutex_unlock(&p->lock);
    }
    for (; count > 0 && !is_chosen("LC-22", "stuck"); count--)
        queue[count - 1].array.release(&queue[count - 1].array);
    return NULL;
}

static void *produced_run(void *ctx)
{
    struct produced *own = ctx;
    const struct timespec pause = {.tv_nsec = 3000000};

    if (own->stuck)
        return produced_stick(own);
    while (!reference_producer_over(&own->producer)) {
        if (own->producer.how.slow)
            (void)nanosleep(&pause, NULL);
        if (!reference_producer_step(&own->producer))
            (void)sched_yield();
    }
    return NULL;
}

/* Returns false if it cannot follow the plan. */
static bool options_of(int32_t plan, int64_t batches, int64_t at,
                       struct reference_producer_options *out)
{
    *out = (struct reference_producer_options){
        .batches = batches, .metadata = true, .mutant = producer_chosen()};
    switch (plan) {
    case UVA_SUBJECT_ENDLESS:
        out->batches = -1;
        return true;
    case UVA_SUBJECT_CANCEL_FAILS:
        out->batches = -1;
        out->cancel_code = EIO;
        return true;
    case UVA_SUBJECT_FAILS:
    case UVA_SUBJECT_TAGGED_FAILS:
        out->fails = true;
        return true;
    case UVA_SUBJECT_FAILS_FIRST:
        out->fails_first = true;
        return true;
    case UVA_SUBJECT_TASK_FAILS:
        out->lazy = true;
        out->spoilt_at = at;
        out->hurries =
            is_chosen("AH-22", "failed") || is_chosen("ER-05", "hurries");
        return true;
    default:
        out->slow = plan == UVA_SUBJECT_SLOW;
        return plan == UVA_SUBJECT_WHOLE || plan == UVA_SUBJECT_SLOW ||
               plan == UVA_SUBJECT_STUCK || plan == UVA_SUBJECT_TAGGED;
    }
}

int32_t uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                            struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct produced *own = calloc(1, sizeof(*own));
    struct reference_producer_options options;
    pthread_t thread;

    if (own == NULL || !options_of(plan, batches, at, &options))
        return UVA_SUBJECT_CANNOT;
    own->stuck = plan == UVA_SUBJECT_STUCK;
    reference_producer_init(&own->producer, &options);
    live_structs_remember(&own->producer.live_structs);
    watched = &own->producer;
    if (plan == UVA_SUBJECT_TAGGED || plan == UVA_SUBJECT_TAGGED_FAILS)
        handler = tagging_front(handler, is_chosen("MD-03", "other") ||
                                             is_chosen("MD-06", "cut"));
    reference_producer_start(&own->producer, handler);
    return pthread_create(&thread, NULL, produced_run, own);
}

/* ---- handler ------------------------------------------------------------ */

struct consumed {
    struct reference_consumer consumer;
    atomic_bool done;
};

static void *consumed_run(void *ctx)
{
    struct consumed *own = ctx;
    struct reference_consumer *consumer = &own->consumer;

    while (!reference_consumer_over(consumer))
        if (!reference_consumer_step(consumer))
            (void)sched_yield();
    if (consumer->schema.release != NULL)
        consumer->schema.release(&consumer->schema);
    while (reference_consumer_step(consumer)) /* a mutant does this too late */
        ;
    atomic_store(&own->done, true);
    return NULL;
}

static bool manner_of(int32_t manner, int64_t k,
                      struct reference_consumer_options *out)
{
    *out = (struct reference_consumer_options){
        .first = 2, .more = 2, .mutant = consumer_chosen()};
    switch (manner) {
    case UVA_SUBJECT_TAKES_SOME:
        out->first = k;
        out->more = 0;
        return true;
    case UVA_SUBJECT_CANCELS:
        out->first = 6;
        out->cancel_at = k + 1;
        out->cancel_inside = true;
        return true;
    case UVA_SUBJECT_REFUSES:
        out->refuse_at = k + 1;
        return true;
    case UVA_SUBJECT_REFUSES_SCHEMA:
        out->refuse_schema = true;
        return true;
    case UVA_SUBJECT_HOLDS_AND_CANCELS:
        out->cancel_at = k + 1;
        out->hold = true;
        out->first = 100;
        return true;
    case UVA_SUBJECT_HOLDS:
        out->hold = true;
        out->first = 100;
        return true;
    default:
        return manner == UVA_SUBJECT_TAKES_ALL ||
               manner == UVA_SUBJECT_TAKES_BARE;
    }
}

int32_t uva_subject_consume(int32_t manner, int64_t k, int64_t *id,
                            struct ArrowAsyncDeviceStreamHandler **handler)
{
    struct consumed *own = calloc(1, sizeof(*own));
    struct reference_consumer_options options;
    pthread_t thread;

    if (own == NULL || !manner_of(manner, k, &options))
        return UVA_SUBJECT_CANNOT;
    reference_consumer_init(&own->consumer, &options);
    *id = (int64_t)(intptr_t)own;
    *handler = &own->consumer.handler;
    mutant_handler(options.mutant, *handler);
    return pthread_create(&thread, NULL, consumed_run, own);
}

static void end_of(struct reference_consumer *c,
                   struct uva_subject_outcome *out)
{
    const bool unfit = c->now.failed || atomic_load(&c->faults) > 0;

    out->code = 0;
    if (c->now.cancelled)
        out->end = UVA_SUBJECT_CANCELLED;
    else if (c->now.refused || c->how.refuse_schema)
        out->end = UVA_SUBJECT_REFUSED;
    else if (c->now.ended && !unfit)
        out->end = UVA_SUBJECT_COMPLETE;
    else {
        out->end = UVA_SUBJECT_FAILED;
        out->code = c->now.erred ? c->now.code : unfit ? EIO : ECONNABORTED;
        if (out->code == 0)
            out->code = EIO;
    }
}

int32_t uva_subject_report(int64_t id, struct uva_subject_outcome *out)
{
    struct consumed *own = (struct consumed *)(intptr_t)id;

    if (!atomic_load(&own->done))
        return EAGAIN;
    memset(out, 0, sizeof(*out));
    out->tag_size = -1;
    end_of(&own->consumer, out);
    out->rows = atomic_load(&own->consumer.rows);
    out->batches = out->rows / UVA_SUBJECT_ROWS;
    /* The consumer counts rows but keeps no sum: this is the sum if it has them
     * all. */
    out->sum = out->rows * (out->rows - 1) / 2;
    mutant_outcome(consumer_chosen(), out);
    return 0;
}

/* ---- stream ------------------------------------------------------------- */

int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         struct ArrowDeviceArrayStream *out)
{
    struct reference_stream *stream = calloc(1, sizeof(*stream));
    const struct reference_stream_options options = {
        .batches = plan == UVA_SUBJECT_ENDLESS ? INT64_MAX : batches,
        .fails = plan == UVA_SUBJECT_FAILS,
        .fails_first = plan == UVA_SUBJECT_FAILS_FIRST,
        .metadata = true,
        .mutant = stream_chosen()};

    (void)at;
    if (stream == NULL || plan > UVA_SUBJECT_FAILS_FIRST)
        return UVA_SUBJECT_CANNOT;
    reference_stream_init(stream, &options);
    live_structs_remember(&stream->live_structs);
    reference_stream_give(stream, out);
    return 0;
}
