/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: host_open(), streams, host_run(), host_close().
 * Failures: every failure aborts with a message. On close: the loop runs once
 * more, until the runtime has detached from it. */
#include "host.h"

#include <stdlib.h>

void host_open(struct host *host, const struct bench_how *how,
               int compute_threads)
{
    host_open_on(host, how, compute_threads, &(struct uva_allocator){0});
}

struct counter {
    struct host *host;   /* borrows */
    struct tally *tally; /* borrows */
};

static void host_thread_begin(void *ctx, enum uva_lane lane)
{
    struct host *host = ctx;

    (void)lane;
    bench_stay_on(host->how, 1);
}

void host_open_on(struct host *host, const struct bench_how *how,
                  int compute_threads, const struct uva_allocator *allocator)
{
    host_open_for(
        host, how,
        &(struct uva_workers_options){.compute_threads = compute_threads,
                                      .allocator = *allocator});
}

void host_open_for(struct host *host, const struct bench_how *how,
                   const struct uva_workers_options *given)
{
    struct uva_workers_options workers = *given;
    struct uva_runtime_options options = {.allocator = given->allocator};

    workers.thread_begin = host_thread_begin;
    workers.ctx = host;
    *host = (struct host){.how = how};
    bench_stay_on(how, 0);
    bench_check(uv_loop_init(&host->loop) == 0, "loop");
    bench_check(uva_workers_new(&workers, &host->workers, NULL) == 0,
                "workers");
    options.workers = host->workers;
    bench_check(uva_runtime_open(&host->loop, &options, &host->runtime, NULL) ==
                    0,
                "runtime");
}

static int counter_on_batch(void *ctx, struct uva_batch *batch)
{
    struct counter *counter = ctx;

    tally_take(counter->tally, &batch->data.array);
    return 0;
}

static void counter_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct counter *counter = ctx;

    host_on_done(counter->host, outcome);
    free(counter);
}

void host_for_each(struct host *host, struct uva_stream *stream,
                   struct tally *tally)
{
    struct counter *counter = malloc(sizeof(*counter));
    struct uva_error error;
    int code;

    bench_check(counter != NULL, "memory");
    *counter = (struct counter){.host = host, .tally = tally};
    code =
        uva_stream_for_each(stream,
                            &(struct uva_consumer){.on_batch = counter_on_batch,
                                                   .on_done = counter_on_done,
                                                   .ctx = counter},
                            &error);
    bench_check(code == 0, error.message);
    host->open++;
    uva_stream_release(stream);
}

void host_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct host *host = ctx;

    bench_check(outcome->end == UVA_END_COMPLETE, outcome->error.message);
    host->open--;
    host->ended_ns = bench_now_ns(host->how);
}

double host_run(struct host *host)
{
    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    bench_check(host->open == 0, "the loop ended before the streams");
    return host->ended_ns;
}

void host_close(struct host *host)
{
    (void)uva_runtime_close(host->runtime, 0, NULL, NULL);
    (void)uv_run(&host->loop, UV_RUN_DEFAULT);
    bench_check(uv_loop_close(&host->loop) == 0, "loop not empty");
    uva_workers_release(host->workers);
}
