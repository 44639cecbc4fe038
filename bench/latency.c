/* SPDX-License-Identifier: Apache-2.0 */
/* For each sample: an event is made, a wait for it begins, the other thread
 * completes it a while later, and the loop runs until the callback is called.
 */
#include "latency.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAUSE_NS = 300000, LONG_PAUSE_NS = 100000000, WARM = 20 };
enum { STAY_NS = 5000000 };

/* The ways through uvarrow; those by hand come before them. */
enum { THROUGH_ARRAY, THROUGH_READY, WAYS_OF_OURS };
static const char *const ours[] = {"array", "ready"};

static int ways_by_hand(const struct latency *latency)
{
    int count = 0;

    while (latency->device->by_hand[count] != NULL)
        count++;
    return count;
}

/* ---- the thread that completes events ----------------------------------- */

static double processor_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *ender_main(void *arg)
{
    struct latency *latency = arg;
    const struct timespec pause = {.tv_nsec = latency->pause_ns};
    double begun;

    bench_stay_on(latency->host.how, 1);
    for (;;) {
        (void)sem_wait(&latency->made);
        if (atomic_load(&latency->quit))
            return NULL;
        begun = processor_ns();
        (void)nanosleep(&pause, NULL);
        latency->idle_ns = processor_ns() - begun;
        latency->ended_ns = uv_hrtime();
        latency->device->end(latency->ctx);
    }
}

/* ---- callbacks ---------------------------------------------------------- */

static void seen(struct latency *latency)
{
    latency->seen_ns = uv_hrtime();
}

static void on_ring(void *ctx)
{
    seen(ctx);
}

void latency_hand_over(struct latency *latency)
{
    bell_ring(&latency->bell);
}

static void on_answer(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    seen(ctx);
    bench_check(error->code == 0, error->message);
    uva_array_release(array);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    seen(ctx);
    uva_array_release(&batch->data);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    host_on_done(&((struct latency *)ctx)->host, outcome);
}

/* ---- one sample --------------------------------------------------------- */

static void sample_wait(struct latency *latency, int way,
                        struct ArrowDeviceArray *array)
{
    const int by_hand = ways_by_hand(latency);

    if (way < by_hand)
        latency->device->wait(latency->ctx, way, latency);
    else if (way == by_hand + THROUGH_ARRAY)
        bench_check(uva_array_wait(latency->host.runtime, array, UVA_FOREVER,
                                   on_answer, latency) == 0,
                    "uva_array_wait");
    else
        bench_check(uva_pusher_push(latency->pusher, array, NULL, 0) == 0,
                    "uva_pusher_push");
}

/* Returns the delay in microseconds. */
static double sample_take(struct latency *latency, int way)
{
    struct ArrowDeviceArray array;

    batch_fill(&array, 0);
    array.device_type = latency->device->device_type;
    array.device_id = 0;
    array.sync_event = latency->device->make(latency->ctx);
    latency->seen_ns = 0;
    sample_wait(latency, way, &array);
    (void)sem_post(&latency->made);
    while (latency->seen_ns == 0)
        (void)uv_run(&latency->host.loop, UV_RUN_ONCE);
    latency->device->free(latency->ctx);
    return (double)(latency->seen_ns - latency->ended_ns) / 1e3;
}

/* ---- another thread in the driver --------------------------------------- */

/* Two threads: a waiting one, and another that lets it go on. */
struct visit {
    const struct latency_device *device; /* borrows */
    void *ctx;                           /* borrows: argument for the device */
    pthread_t visitor, porter;
    atomic_bool quit, gone; /* the visitor is to go; it has */
};

static void *visitor_main(void *arg)
{
    struct visit *visit = arg;

    while (!atomic_load(&visit->quit))
        visit->device->stay(visit->ctx);
    return NULL;
}

static void *porter_main(void *arg)
{
    const struct timespec pause = {.tv_nsec = STAY_NS};
    struct visit *visit = arg;

    while (!atomic_load(&visit->gone)) {
        (void)nanosleep(&pause, NULL);
        visit->device->let(visit->ctx);
    }
    return NULL;
}

static void visit_begin(struct visit *visit)
{
    bench_check(
        pthread_create(&visit->visitor, NULL, visitor_main, visit) == 0 &&
            pthread_create(&visit->porter, NULL, porter_main, visit) == 0,
        "thread");
}

static void visit_end(struct visit *visit)
{
    atomic_store(&visit->quit, true);
    (void)pthread_join(visit->visitor, NULL);
    atomic_store(&visit->gone, true);
    (void)pthread_join(visit->porter, NULL);
}

/* Returns the microseconds that one call takes. */
static double record_take(struct latency *latency)
{
    struct ArrowDeviceArray array;
    struct uva_error error;
    uint64_t begun;
    double taken;

    batch_fill(&array, 0);
    array.device_type = latency->device->device_type;
    array.device_id = 0;
    begun = uv_hrtime();
    bench_check(uva_array_record(latency->host.runtime, &array,
                                 latency->device->queue(latency->ctx),
                                 &error) == 0,
                error.message);
    taken = (double)(uv_hrtime() - begun) / 1e3;
    uva_array_release(&array);
    return taken;
}

/* ---- all ---------------------------------------------------------------- */

static void stream_open(struct latency *latency)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = latency};
    const struct uva_push_source source = {.device_type =
                                               latency->device->device_type};
    struct uva_stream *stream = uva_stream_from_pusher(
        latency->host.runtime, &source, &latency->pusher);
    struct ArrowSchema schema;
    struct uva_error error;

    batch_schema(&schema);
    bench_check(uva_pusher_set_schema(latency->pusher, &schema) == 0, "schema");
    bench_check(uva_stream_ready(stream, NULL) == 0, "ready");
    bench_check(uva_stream_for_each(stream, &consumer, &error) == 0,
                error.message);
    uva_stream_release(stream);
    latency->host.open++;
}

/* Starts the device thread before the loop thread is bound to its core. */
static void latency_open(struct latency *latency, const struct bench_how *how)
{
    struct bench_how anywhere = *how;
    struct uva_device_info info;

    anywhere.apart = false;
    host_open(&latency->host, &anywhere, 0);
    bench_check(uva_device_get_info(latency->host.runtime,
                                    latency->device->device_type, &info) == 0 &&
                    info.available,
                "the device");
    latency->host.how = how;
    bench_stay_on(how, 0);
    bell_init(&latency->bell, &latency->host.loop, on_ring, latency);
    bench_check(sem_init(&latency->made, 0, 0) == 0, "semaphore");
    bench_check(pthread_create(&latency->thread, NULL, ender_main, latency) ==
                    0,
                "thread");
    stream_open(latency);
}

static void latency_close(struct latency *latency)
{
    atomic_store(&latency->quit, true);
    (void)sem_post(&latency->made);
    (void)pthread_join(latency->thread, NULL);
    (void)sem_destroy(&latency->made);
    bell_close(&latency->bell);
    uva_pusher_close(latency->pusher, NULL, NULL);
    (void)host_run(&latency->host);
    host_close(&latency->host);
    bell_fini(&latency->bell);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void latency_print(const char *name, const char *way, double *taken,
                          int64_t samples)
{
    static const int percents[] = {50, 99};
    char path[96];

    qsort(taken, (size_t)samples, sizeof(*taken), ascending);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s/p%d", name, way, percents[i]);
        bench_print(path, taken[samples * percents[i] / 100], "us");
    }
}

static void samples_take(struct latency *latency, int ways)
{
    struct visit visit = {.device = latency->device, .ctx = latency->ctx};
    const bool visited = visit.device->stay != NULL;

    if (visited)
        visit_begin(&visit);
    for (int64_t i = -WARM; i < latency->samples; i++) {
        for (int way = 0; way < ways; way++)
            latency->taken[way][i < 0 ? 0 : i] = sample_take(latency, way);
        if (visited)
            latency->taken[ways][i < 0 ? 0 : i] = record_take(latency);
    }
    if (visited)
        visit_end(&visit);
}

void latency_run(const char *name, const struct bench_how *how,
                 const struct latency_device *device, void *ctx)
{
    struct latency latency = {.device = device,
                              .ctx = ctx,
                              .pause_ns = PAUSE_NS,
                              .samples = how->batches};
    const int by_hand = ways_by_hand(&latency), ways = by_hand + WAYS_OF_OURS;

    latency_open(&latency, how);
    for (int way = 0; way <= ways; way++) {
        latency.taken[way] =
            calloc((size_t)latency.samples, sizeof(*latency.taken[way]));
        bench_check(latency.taken[way] != NULL, "memory");
    }
    if (device->block != NULL)
        device->block(ctx, &latency.host);
    samples_take(&latency, ways);
    if (device->block != NULL)
        device->unblock(ctx);
    latency_close(&latency);
    for (int way = 0; way < ways; way++)
        latency_print(
            name, way < by_hand ? device->by_hand[way] : ours[way - by_hand],
            latency.taken[way], latency.samples);
    if (device->stay != NULL)
        latency_print(name, "record", latency.taken[ways], latency.samples);
    for (int way = 0; way <= ways; way++)
        free(latency.taken[way]);
}

/* The first sample only warms up. */
void latency_idle(const char *name, const struct bench_how *how,
                  const struct latency_device *device, void *ctx)
{
    struct latency latency = {
        .device = device, .ctx = ctx, .pause_ns = LONG_PAUSE_NS};
    const int way = ways_by_hand(&latency) + THROUGH_READY;

    latency_open(&latency, how);
    for (int i = 0; i < 2; i++)
        (void)sample_take(&latency, way);
    latency_close(&latency);
    bench_print(name, latency.idle_ns / LONG_PAUSE_NS * 100, "%");
}
