/* SPDX-License-Identifier: Apache-2.0 */
/* Batches by take, and batches by a callback, on each hosting: a libuv loop, a
 * thread of the runtime, and turns of the host's own loop, where the host takes
 * between two turns; elsewhere the ready function takes. `window` is the window
 * of the taker and of the source; `more` is made of enum place, enum way and
 * enum origin. */
#include <errno.h>
#include <poll.h>

#include "host.h"

enum place { ON_LOOP, ON_THREAD, BY_TURNS };
enum way { FOR_EACH = 0, TAKE = 4 };
enum origin { ARRAYS = 0, BLOCKING = 8 };

enum { AT_ONCE = 4096 }; /* batches of one stream of arrays */

struct site {
    uv_loop_t loop;
    struct uva_workers *workers;
    struct uva_runtime *runtime;
    enum place place;
};

struct run {
    struct site *site;         /* borrows */
    struct uva_stream *stream; /* owns */
    struct tally tally;
    bool takes;
    uv_sem_t over; /* ON_THREAD: posted at the end */
    bool done;
};

/* ---- a runtime on each hosting ------------------------------------------ */

static void site_open(struct site *site, enum place place)
{
    struct uva_runtime_options options = {0};
    uv_loop_t *loop = place == ON_LOOP ? &site->loop : NULL;

    *site = (struct site){.place = place};
    bench_check(uv_loop_init(&site->loop) == 0, "loop");
    bench_check(uva_workers_new(NULL, &site->workers, NULL) == 0, "workers");
    options.workers = site->workers;
    bench_check(
        (place == BY_TURNS
             ? uva_runtime_open_turned(NULL, NULL, &options, &site->runtime,
                                       NULL)
             : uva_runtime_open(loop, &options, &site->runtime, NULL)) == 0,
        "runtime");
}

/* Waits for work, and does it. */
static void site_turn(struct site *site)
{
    struct pollfd fd = {.fd = uva_runtime_fd(site->runtime), .events = POLLIN};

    bench_check(poll(&fd, 1, -1) == 1, "poll");
    (void)uva_runtime_turn(site->runtime);
}

static void site_close(struct site *site)
{
    if (site->place == ON_LOOP) {
        (void)uva_runtime_close(site->runtime, 0, NULL, NULL);
        (void)uv_run(&site->loop, UV_RUN_DEFAULT);
    } else {
        bench_check(uva_runtime_join(site->runtime, UVA_FOREVER) == 0, "join");
    }
    bench_check(uv_loop_close(&site->loop) == 0, "loop not empty");
    uva_workers_release(site->workers);
}

/* ---- one stream --------------------------------------------------------- */

static void run_over(struct run *run, const struct uva_outcome *outcome)
{
    bench_check(outcome->end == UVA_END_COMPLETE, outcome->error.message);
    run->done = true;
    if (run->site->place == ON_THREAD)
        uv_sem_post(&run->over);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    tally_take(&((struct run *)ctx)->tally, &batch->data.array);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    run_over(ctx, outcome);
}

/* Takes all batches that wait. */
static void run_take(void *ctx)
{
    struct run *run = ctx;
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    while ((code = uva_stream_take(run->stream, &batch, &outcome)) == 0) {
        tally_take(&run->tally, &batch.data.array);
        uva_array_release(&batch.data);
    }
    if (code == ENOENT)
        run_over(run, &outcome);
    else
        bench_check(code == EAGAIN, "take");
}

static void run_start(struct run *run, int32_t window)
{
    const struct uva_window size = {.batches = window};
    int code;

    if (!run->takes) {
        code = uva_stream_for_each(run->stream,
                                   &(struct uva_consumer){.on_batch = on_batch,
                                                          .on_done = on_done,
                                                          .ctx = run},
                                   NULL);
    } else if (run->site->place == BY_TURNS) {
        code = uva_stream_start_take(run->stream, &size, NULL, NULL, NULL);
    } else {
        code = uva_stream_start_take(run->stream, &size, run_take, run, NULL);
        if (code == 0)
            code = uva_runtime_post(run->site->runtime, run_take, run);
    }
    bench_check(code == 0, "start");
}

static void run_await(struct run *run)
{
    switch (run->site->place) {
    case ON_LOOP:
        (void)uv_run(&run->site->loop, UV_RUN_DEFAULT);
        break;
    case ON_THREAD:
        uv_sem_wait(&run->over);
        break;
    case BY_TURNS:
        while (!run->done) {
            if (run->takes)
                run_take(run);
            if (!run->done)
                site_turn(run->site);
        }
    }
    bench_check(run->done, "the end");
}

static double run_stream(struct site *site, const struct bench_case *self,
                         const struct bench_how *how, int64_t count)
{
    static struct ArrowDeviceArray arrays[AT_ONCE];
    const struct uva_arrow_source source = {
        .window = {.batches = self->window}};
    struct run run = {.site = site, .takes = (self->more & TAKE) != 0};
    struct ArrowSchema schema;
    struct input input;
    double begun;

    bench_check(uv_sem_init(&run.over, 0) == 0, "semaphore");
    input_init(&input, count);
    if (self->more & BLOCKING) {
        run.stream =
            uva_stream_from_device_stream(site->runtime, &input.abi, &source);
    } else {
        for (int64_t i = 0; i < count; i++)
            batch_fill(&arrays[i], i);
        batch_schema(&schema);
        run.stream = uva_stream_from_arrays(site->runtime, &schema, arrays,
                                            (size_t)count);
    }
    begun = bench_now_ns(how);
    run_start(&run, self->window);
    run_await(&run);
    begun = bench_now_ns(how) - begun;
    uva_stream_release(run.stream);
    tally_check(&run.tally, count);
    uv_sem_destroy(&run.over);
    return begun;
}

static double run_site(const struct bench_case *self,
                       const struct bench_how *how)
{
    const int64_t most = self->more & BLOCKING ? how->batches : AT_ONCE;
    struct site site;
    double took = 0;

    site_open(&site, (enum place)(self->more % 4));
    for (int64_t left = how->batches; left > 0; left -= most)
        took += run_stream(&site, self, how, left < most ? left : most);
    site_close(&site);
    return took;
}

#define PAIR(name, place, window, batches, origin)                             \
    {name "/for_each",                                                         \
     batches,                                                                  \
     run_site,                                                                 \
     window,                                                                   \
     (place) | (origin) | FOR_EACH,                                            \
     0},                                                                       \
    {                                                                          \
        name "/take", batches, run_site, window, (place) | (origin) | TAKE, 0  \
    }

static const struct bench_case cases[] = {
    PAIR("take/loop/64", ON_LOOP, 64, 500000, BLOCKING),
    PAIR("take/thread/64", ON_THREAD, 64, 500000, BLOCKING),
    PAIR("take/turns/64", BY_TURNS, 64, 500000, BLOCKING),
    PAIR("take/loop/256", ON_LOOP, 256, 1000000, BLOCKING),
    PAIR("take/thread/256", ON_THREAD, 256, 1000000, BLOCKING),
    PAIR("take/turns/256", BY_TURNS, 256, 1000000, BLOCKING),
    PAIR("take/loop/arrays", ON_LOOP, 64, 1000000, ARRAYS),
    PAIR("take/thread/arrays", ON_THREAD, 64, 1000000, ARRAYS),
    PAIR("take/turns/arrays", BY_TURNS, 64, 1000000, ARRAYS),
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
