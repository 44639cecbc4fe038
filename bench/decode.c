/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that each take 20 microseconds to decode: by hand on as many threads
 * as there are workers, which do not share data and keep no order, and by
 * uva_stream_from_tasks() with uva_stream_parallel(), which keeps the order.
 * `window` is the number of workers. */
#include <uv.h>

#include "host.h"

enum { DECODE_NS = 20000, PROBES = 5, PROBE_STEPS = 1000000, MOST = 2 };

/* Does work that the compiler cannot remove and that needs no memory. */
static uint64_t decode(int64_t steps)
{
    uint64_t x = 88172645463325252u;

    for (int64_t i = 0; i < steps; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

/* Returns how many steps take DECODE_NS on this machine. */
static int64_t decode_steps(void)
{
    const struct bench_how how = {.cpu = true};
    double least = 1e18;

    for (int i = 0; i < PROBES; i++) {
        const double begun = bench_now_ns(&how);
        double took;

        bench_check(decode(PROBE_STEPS) != 0, "decode");
        took = bench_now_ns(&how) - begun;
        least = took < least ? took : least;
    }
    return (int64_t)(PROBE_STEPS * (DECODE_NS / least));
}

/* ---- by hand ------------------------------------------------------------ */

struct hand {
    int64_t batches;
    int64_t steps;
    const struct bench_how *how; /* borrows */
    int core;
};

static void hand_thread(void *ctx)
{
    const struct hand *hand = ctx;

    bench_stay_on(hand->how, hand->core);
    for (int64_t i = 0; i < hand->batches; i++)
        bench_check(decode(hand->steps) != 0, "decode");
}

static double run_hand(const struct bench_case *self,
                       const struct bench_how *how)
{
    const int64_t steps = decode_steps();
    struct hand hands[MOST];
    uv_thread_t threads[MOST];
    double begun;

    begun = bench_now_ns(how);
    for (int i = 0; i < self->window; i++) {
        hands[i] = (struct hand){.batches = how->batches / self->window,
                                 .steps = steps,
                                 .how = how,
                                 .core = i};
        bench_check(uv_thread_create(&threads[i], hand_thread, &hands[i]) == 0,
                    "thread");
    }
    for (int i = 0; i < self->window; i++)
        (void)uv_thread_join(&threads[i]);
    return bench_now_ns(how) - begun;
}

/* ---- uvarrow ------------------------------------------------------------ */

struct tasks {
    int64_t next;
    int64_t count;
    int64_t steps;
};

static int tasks_schema(void *ctx, struct ArrowSchema *out,
                        struct uva_error *error)
{
    (void)ctx;
    (void)error;
    batch_schema(out);
    return 0;
}

/* An item is the number of its batch plus one, because 0 is the end. */
static int tasks_next(void *ctx, void **item, const char **metadata,
                      struct uva_error *error)
{
    struct tasks *tasks = ctx;

    (void)metadata;
    (void)error;
    if (tasks->next < tasks->count)
        *item = (void *)(intptr_t)(++tasks->next);
    return 0;
}

static int tasks_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    const struct tasks *tasks = ctx;

    (void)error;
    if (out == NULL)
        return 0;
    bench_check(decode(tasks->steps) != 0, "decode");
    batch_fill(out, (int64_t)(intptr_t)item - 1);
    return 0;
}

static double run_tasks(const struct bench_case *self,
                        const struct bench_how *how)
{
    struct tasks tasks = {.count = how->batches, .steps = decode_steps()};
    const struct uva_task_source source = {.schema = tasks_schema,
                                           .next = tasks_next,
                                           .extract = tasks_extract,
                                           .ctx = &tasks};
    const struct bench_how anywhere = {.cpu = how->cpu};
    struct uva_stream *stream;
    struct tally tally = {0};
    struct host host;
    double begun;

    host_open(&host, &anywhere, self->window);
    stream = uva_stream_from_tasks(host.runtime, &source);
    (void)uva_stream_parallel(stream,
                              &(struct uva_parallel){.workers = self->window});
    begun = bench_now_ns(how);
    host_for_each(&host, stream, &tally);
    begun = host_run(&host) - begun;
    host_close(&host);
    tally_check(&tally, how->batches);
    return begun;
}

static const struct bench_case cases[] = {
    {"decode/1/hand", 10000, run_hand, 1, 0, 0},
    {"decode/1/uvarrow", 10000, run_tasks, 1, 0, 0},
    {"decode/2/hand", 20000, run_hand, 2, 0, 0},
    {"decode/2/uvarrow", 20000, run_tasks, 2, 0, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
