/* SPDX-License-Identifier: Apache-2.0 */
/* How long a small query takes (open, one batch, end, close) beside no other
 * stream, and beside 200 sources in which each get_next computes for 20 ms.
 * Those either read ahead, as their consumers have paused, or have consumers
 * that take every batch at once. There are as many batches as the queries have.
 * The 200 sources were opened and had their first turns before that. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "host.h"

enum { SOURCES = 200, WARM_READS = 16, SLOTS = 4096 };

/* How long a get_next computes. A run with few queries is a test of the program
 * and must not take long on a busy machine. */
enum { COMPUTES_NS = 20000000, COMPUTES_SHORT_NS = 1000000, FEW = 40 };

enum { PAUSED, TAKING }; /* the behaviour of the sources' consumers */

/* Sources of one case. */
struct crowd {
    struct host host;
    double computes_ns;  /* a call of get_next */
    atomic_long warm;    /* sources that compute in their next get_next */
    atomic_long calls;   /* of get_next that computed */
    atomic_long took_ns; /* these calls, by the clock */
    int consumers;       /* PAUSED or TAKING */
    bool done;           /* the query has ended */
};

/* ---- the 200 ------------------------------------------------------------ */

static double thread_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void crowd_compute(struct crowd *crowd)
{
    const double begun = thread_ns();
    const uint64_t clock = uv_hrtime();

    while (thread_ns() - begun < crowd->computes_ns)
        ;
    atomic_fetch_add(&crowd->took_ns, (long)(uv_hrtime() - clock));
    atomic_fetch_add(&crowd->calls, 1);
}

struct member {
    struct input input; /* first */
    struct crowd *crowd;
};

static int member_get_next(struct ArrowDeviceArrayStream *self,
                           struct ArrowDeviceArray *out)
{
    struct member *member = self->private_data;

    if (member->input.next >= WARM_READS)
        crowd_compute(member->crowd);
    batch_fill(out, member->input.next++);
    if (member->input.next == WARM_READS)
        atomic_fetch_add(&member->crowd->warm, 1);
    return 0;
}

static void member_free(void *ctx)
{
    free(ctx);
}

static int member_on_batch(void *ctx, struct uva_batch *batch)
{
    struct member *member = ctx;

    (void)batch;
    return member->crowd->consumers == PAUSED ? EAGAIN : 0;
}

static void member_start(struct crowd *crowd)
{
    struct member *member = calloc(1, sizeof(*member));
    const struct uva_arrow_source options = {.free_ctx = member_free,
                                             .ctx = member};
    const struct uva_consumer consumer = {.on_batch = member_on_batch,
                                          .ctx = member};
    struct ArrowDeviceArrayStream source;
    struct uva_stream *stream;

    bench_check(member != NULL, "memory");
    member->crowd = crowd;
    input_init(&member->input, INT64_MAX);
    source = member->input.abi;
    source.private_data = member;
    source.get_next = member_get_next;
    stream =
        uva_stream_from_device_stream(crowd->host.runtime, &source, &options);
    bench_check(uva_stream_for_each(stream, &consumer, NULL) == 0, "start");
    uva_stream_release(stream);
}

static void crowd_start(struct crowd *crowd, int sources)
{
    for (int i = 0; i < sources; i++)
        member_start(crowd);
    while (atomic_load(&crowd->warm) < sources)
        (void)uv_run(&crowd->host.loop, UV_RUN_NOWAIT);
}

/* ---- the query ---------------------------------------------------------- */

static int query_open(void *ctx, struct ArrowDeviceArrayStream *out,
                      struct uva_error *error)
{
    struct input *input = ctx;

    (void)error;
    input_init(input, 1);
    *out = input->abi;
    return 0;
}

static int query_on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return 0;
}

static void query_on_done(void *ctx, const struct uva_outcome *outcome)
{
    bench_check(outcome->end == UVA_END_COMPLETE, outcome->error.message);
    ((struct crowd *)ctx)->done = true;
}

/* Returns the time in milliseconds. */
static double query_run(struct crowd *crowd)
{
    struct input input;
    const struct uva_arrow_source options = {.open_device = query_open,
                                             .ctx = &input};
    const struct uva_consumer consumer = {
        .on_batch = query_on_batch, .on_done = query_on_done, .ctx = crowd};
    const uint64_t begun = uv_hrtime();
    struct uva_stream *stream =
        uva_stream_from_device_stream(crowd->host.runtime, NULL, &options);

    crowd->done = false;
    bench_check(uva_stream_for_each(stream, &consumer, NULL) == 0, "start");
    uva_stream_release(stream);
    while (!crowd->done)
        (void)uv_run(&crowd->host.loop, UV_RUN_ONCE);
    return (double)(uv_hrtime() - begun) / 1e6;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_at(const char *name, const char *what, double value)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/%s", name, what);
    bench_print(path, value, "ms");
}

/* On Linux the priority of "process 0" is the calling thread's. */
static void thread_be_nice(void *ctx, enum uva_lane lane)
{
    const int *nice = ctx;

    if (lane == UVA_LANE_BLOCKING && *nice != 0)
        (void)setpriority(PRIO_PROCESS, 0, *nice);
}

static double run_queries(const struct bench_case *self,
                          const struct bench_how *how, int sources,
                          int consumers, int nice)
{
    static double taken[SLOTS];
    const struct timespec pause = {.tv_nsec = 3000000};
    struct crowd crowd = {.consumers = consumers,
                          .computes_ns = how->batches < FEW ? COMPUTES_SHORT_NS
                                                            : COMPUTES_NS};
    const int count = how->batches < SLOTS ? (int)how->batches : SLOTS;
    struct bench_how anywhere = *how;

    anywhere.apart = false;
    host_open_for(
        &crowd.host, &anywhere,
        &(struct uva_workers_options){.blocking_threads = self->window,
                                      .thread_begin = thread_be_nice,
                                      .ctx = &nice});
    crowd_start(&crowd, sources);
    for (int i = 0; i < count; i++) {
        taken[i] = query_run(&crowd);
        (void)nanosleep(&pause, NULL);
    }
    host_close(&crowd.host);
    qsort(taken, (size_t)count, sizeof(taken[0]), ascending);
    print_at(self->name, "p50", taken[count / 2]);
    print_at(self->name, "p99", taken[count * 99 / 100]);
    if (sources > 0)
        print_at(self->name, "get_next",
                 (double)atomic_load(&crowd.took_ns) / 1e6 /
                     (double)atomic_load(&crowd.calls));
    return 0;
}

static double run_alone(const struct bench_case *self,
                        const struct bench_how *how)
{
    return run_queries(self, how, 0, PAUSED, 0);
}

static double run_ahead(const struct bench_case *self,
                        const struct bench_how *how)
{
    return run_queries(self, how, SOURCES, PAUSED, self->more);
}

static double run_taking(const struct bench_case *self,
                         const struct bench_how *how)
{
    return run_queries(self, how, SOURCES, TAKING, self->more);
}

/* With the number of blocking threads; 0: the default. */
static const struct bench_case cases[] = {
    {"beside/2/none", 200, run_alone, 2, 0, BENCH_PRINTS},
    {"beside/2/ahead", 200, run_ahead, 2, 0, BENCH_PRINTS},
    {"beside/2/taking", 200, run_taking, 2, 0, BENCH_PRINTS},
    {"beside/64/none", 200, run_alone, 0, 0, BENCH_PRINTS},
    {"beside/64/ahead", 200, run_ahead, 0, 0, BENCH_PRINTS},
    {"beside/64/ahead-nice-10", 200, run_ahead, 0, 10, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
