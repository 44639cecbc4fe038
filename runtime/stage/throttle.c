/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_throttle(): passes batches on at a limited rate.
 *
 * Happy path:  task -> extracted, and waits -> its time has come -> it is ready
 *              -> the producer below takes it. No more batches are requested
 *              than make up one burst.
 *
 * Failures:    there is no memory for a batch. An extraction: the producer
 *              above reports why. Either follows the batches before it.
 *
 * Each rate has the time at which all passed batches will have been paid for. A
 * batch goes on when its own price does not move that time further than a burst
 * away, or without a debt. */
#include <errno.h>

#include "base/clock.h"
#include "stage/output.h"
#include "stage/stage.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { BURSTS_PER_S = 10, SECOND_NS = 1000000000 };

/* The longest time that one batch takes: 73 years. */
#define PRICE_MAX_NS ((uint64_t)1 << 61)

/* A limit of something a second. */
struct rate {
    int64_t per_s;    /* 0: no limit */
    uint64_t paid_ns; /* when all passed batches will have been paid for */
};

struct throttle {
    struct uva__stage stage;    /* first */
    struct rate batches, bytes; /* the limits */
    struct uva__output output;  /* to measure with */
    struct uva__kept waiting;   /* batches that came too early */
};

static struct throttle *throttle_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct throttle, stage);
}

static struct throttle *throttle_at(struct uva__source *source)
{
    return throttle_of(uva__stage_of(source));
}

/* ---- rates -------------------------------------------------------------- */

/* How long `amount` takes at that rate, rounded up. */
static uint64_t rate_price(const struct rate *rate, int64_t amount)
{
    const double ns = (double)amount * SECOND_NS / (double)rate->per_s;

    return ns < (double)PRICE_MAX_NS ? (uint64_t)ns + 1 : PRICE_MAX_NS;
}

/* When `amount` may be passed on. */
static uint64_t rate_due(const struct rate *rate, int64_t amount)
{
    const uint64_t burst_ns = SECOND_NS / BURSTS_PER_S;
    uint64_t price_ns;

    if (rate->per_s == 0)
        return 0;
    price_ns = rate_price(rate, amount);
    if (price_ns >= burst_ns)
        return rate->paid_ns;
    price_ns = burst_ns - price_ns;
    return rate->paid_ns > price_ns ? rate->paid_ns - price_ns : 0;
}

static void rate_pay(struct rate *rate, int64_t amount, uint64_t now_ns)
{
    if (rate->per_s == 0)
        return;
    if (rate->paid_ns < now_ns)
        rate->paid_ns = now_ns;
    rate->paid_ns += rate_price(rate, amount);
}

/* How many of `size` are one burst, at least one. */
static int64_t rate_burst(const struct rate *rate, int64_t size)
{
    const int64_t burst = rate->per_s / BURSTS_PER_S / size;

    if (rate->per_s == 0)
        return INT64_MAX;
    return burst > 1 ? burst : 1;
}

/* ---- calls from the producer above -------------------------------------- */

static void throttle_task(struct uva__stage *stage, struct ArrowAsyncTask *task,
                          const char *metadata)
{
    struct throttle *t = throttle_of(stage);
    struct uva__task *batch = uva__stage_extract(stage, task, metadata);

    if (batch == NULL)
        return;
    if (t->bytes.per_s > 0 && !batch->measured)
        batch->measured = uva__measure(t->output.measure, &batch->array,
                                       &batch->info.bytes, NULL) == 0;
    uva__intake_put(&stage->in, batch->info.bytes);
    uva__kept_push(&t->waiting, batch);
}

/* ---- as a source -------------------------------------------------------- */

/* When the oldest batch that waits may be passed on. */
static uint64_t throttle_due(const struct throttle *t)
{
    const uint64_t batch = rate_due(&t->batches, 1);
    const uint64_t bytes =
        rate_due(&t->bytes, uva__kept_first(&t->waiting)->info.bytes);

    return batch > bytes ? batch : bytes;
}

/* Moves the batches that may be passed on now; sets the timer for the next one.
 */
static void throttle_admit(struct throttle *t)
{
    struct uva__rt *rt = t->stage.source.rt;
    struct uva__task *batch;
    uint64_t now_ns, due_ns = 0;

    if (t->waiting.count == 0)
        return;
    now_ns = uva__clock_ns();
    while (t->waiting.count > 0 && (due_ns = throttle_due(t)) <= now_ns) {
        batch = uva__kept_pop(&t->waiting);
        rate_pay(&t->batches, 1, now_ns);
        rate_pay(&t->bytes, batch->info.bytes, now_ns);
        uva__kept_push(&t->stage.ready, batch);
    }
    t->stage.source.ready = t->stage.ready.count;
    if (t->waiting.count > 0)
        uva__timer_start_sooner(rt, &t->stage.timer,
                                (int64_t)((due_ns - now_ns) / 1000000) + 1);
}

/* How many batches are one burst, as far as sizes are known. */
static int64_t throttle_burst(const struct throttle *t)
{
    const int64_t largest = t->stage.in.largest;
    const int64_t by_batches = rate_burst(&t->batches, 1);
    const int64_t by_bytes =
        rate_burst(&t->bytes, largest > 0 ? largest : INT64_MAX);

    return by_batches < by_bytes ? by_batches : by_bytes;
}

/* Beside the batches that are ready no more than one burst is requested. */
static void throttle_pull(struct uva__source *source, int64_t demand)
{
    struct throttle *t = throttle_at(source);
    int64_t burst;

    (void)uva__output_prepare(&t->output, source, NULL, NULL);
    throttle_admit(t);
    uva__meter_block(source->meter, t->waiting.count > 0 ? UVA_WAITING_TIME
                                                         : UVA_WAITING_NONE);
    burst = throttle_burst(t);
    uva__stage_pull(source, demand - source->ready > burst
                                ? burst + source->ready
                                : demand);
}

static void throttle_stop(struct uva__source *source)
{
    uva__kept_drop(&throttle_at(source)->waiting, source);
    uva__stage_stop(source);
}

/* ---- life --------------------------------------------------------------- */

static void throttle_init(struct uva__stage *stage,
                          const struct uva__stage_setup *setup)
{
    const struct uva_throttle *options = setup->options;
    struct throttle *t = throttle_of(stage);

    t->batches.per_s = options->batches_per_s;
    t->bytes.per_s = options->bytes_per_s;
}

static void throttle_free(struct uva__stage *stage,
                          const struct uva_allocator *allocator)
{
    (void)allocator;
    uva__output_fini(&throttle_of(stage)->output);
}

static int throttle_check(const struct uva__stage_setup *setup,
                          struct uva_error *error)
{
    const struct uva_throttle *options = setup->options;

    return options->batches_per_s > 0 || options->bytes_per_s > 0
               ? 0
               : uva_error_set(error, EINVAL,
                               "uva_throttle: batches_per_s or bytes_per_s is "
                               "needed");
}

int uva_stream_throttle(struct uva_stream *stream,
                        const struct uva_throttle *options)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(uva_throttle, batches_per_s, 0, INT64_MAX),
        UVA__LIMIT(uva_throttle, bytes_per_s, 0, INT64_MAX),
        {0}};
    static const struct uva__stage_kind kind = {
        .options = {UVA__OPTIONS(uva_throttle), .mandatory = true,
                    .limits = limits},
        .size = sizeof(struct throttle),
        .needs = UVA__STAGE_CHEAP,
        .check = throttle_check,
        .init = throttle_init,
        .source = {UVA__STAGE_RELAYS(throttle_stop), .name = "throttle",
                   .pull = throttle_pull, .take = uva__stage_take},
        .task = throttle_task,
        .free = throttle_free,
    };

    return uva__stage_add(stream, &kind, options);
}
