/* SPDX-License-Identifier: Apache-2.0 */
/* How cost grows: with the columns and the rows of a batch, the length of a
 * table, the tasks that a handler holds, the batches that are collected, and
 * the stages and branches of a stream. `window` is the size; a figure is for a
 * batch or a task. Streams are in many.c, merged ones in merge.c. Sources are
 * read on the loop thread, but for a table. */
#include <errno.h>
#include <stdlib.h>

#include "host.h"
#include "uvarrow/arrow.h"

enum { TABLE_ROWS = 65536, TABLE_COLUMNS = 20, BRANCHES_MAX = 64 };

/* ---- batches ------------------------------------------------------------ */

enum origin { ON_LOOP, ON_WORKER };

static struct uva_stream *open_input(struct host *host, struct input *input,
                                     int64_t count, enum origin origin)
{
    input_init(input, count);
    return uva_stream_from_device_stream(
        host->runtime, &input->abi,
        &(struct uva_arrow_source){.on_loop = origin == ON_LOOP});
}

/* The time of all batches of the shape, from a source to a consumer. */
static double run_batches(const struct bench_how *how, enum origin origin)
{
    struct tally tally = {0};
    struct host host;
    struct input input;
    double begun;

    host_open(&host, how, 0);
    begun = bench_now_ns(how);
    host_for_each(&host, open_input(&host, &input, how->batches, origin),
                  &tally);
    begun = host_run(&host) - begun;
    host_close(&host);
    tally_check(&tally, how->batches);
    batch_use("number");
    return begun;
}

static double run_numbers(const struct bench_case *self,
                          const struct bench_how *how)
{
    batch_use_kinds("l", self->window, BATCH_ROWS);
    return run_batches(how, ON_LOOP);
}

static double run_texts(const struct bench_case *self,
                        const struct bench_how *how)
{
    batch_use_kinds("u", self->window, BATCH_ROWS);
    return run_batches(how, ON_LOOP);
}

static double run_mixed(const struct bench_case *self,
                        const struct bench_how *how)
{
    batch_use_kinds("nugmtbDd", self->window, BATCH_ROWS);
    return run_batches(how, ON_LOOP);
}

static double run_rows(const struct bench_case *self,
                       const struct bench_how *how)
{
    batch_use("flights");
    batch_use_rows(self->window);
    return run_batches(how, ON_LOOP);
}

/* A table of `window` million rows, once. */
static double run_table(const struct bench_case *self,
                        const struct bench_how *how)
{
    const int64_t count = self->window * INT64_C(1000000) / TABLE_ROWS + 1;
    struct bench_how once = *how;

    once.batches = count;
    batch_use_kinds("nnnnu", TABLE_COLUMNS, TABLE_ROWS);
    return run_batches(&once, ON_WORKER) * (double)how->batches / (double)count;
}

/* The size of a run that needs a batch for each of it: less in a short run. */
static int64_t size_of(const struct bench_case *self,
                       const struct bench_how *how)
{
    return self->window < how->batches ? self->window : how->batches;
}

/* ---- tasks that a handler holds ----------------------------------------- */

struct holder {
    struct ArrowAsyncDeviceStreamHandler abi; /* first */
    struct ArrowAsyncTask *tasks;             /* owns */
    int64_t held;
    bool ended;
};

static int holder_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                            struct ArrowSchema *schema)
{
    schema->release(schema);
    self->producer->request(self->producer, INT64_MAX);
    return 0;
}

static int holder_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                               struct ArrowAsyncTask *task,
                               const char *metadata)
{
    struct holder *holder = (struct holder *)self;

    (void)metadata;
    if (task == NULL)
        holder->ended = true;
    else
        holder->tasks[holder->held++] = *task;
    return 0;
}

static void holder_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                            int code, const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)metadata;
    bench_check(false, message);
}

static void holder_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL;
}

static void holder_extract(struct holder *holder, int64_t i)
{
    struct ArrowDeviceArray array;

    bench_check(uva_task_extract(&holder->tasks[i], &array) == 0, "extract");
    array.array.release(&array.array);
}

/* Holds all tasks of a stream, and extracts them, the latest first: each in a
 * turn of its own if `turns`. */
static void hold(struct host *host, struct holder *holder, int64_t count,
                 bool turns)
{
    const struct uva_drive drive = {.on_done = host_on_done, .ctx = host};
    struct uva_stream *stream;
    struct input input;

    holder->abi = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = holder_on_schema,
        .on_next_task = holder_on_next_task,
        .on_error = holder_on_error,
        .release = holder_release};
    holder->held = 0;
    holder->ended = false;
    stream = open_input(host, &input, count, ON_LOOP);
    host->open++;
    bench_check(uva_stream_drive(stream, &holder->abi, &drive, NULL) == 0,
                "drive");
    uva_stream_release(stream);
    while (!holder->ended)
        (void)uv_run(&host->loop, UV_RUN_ONCE);
    bench_check(holder->held == count, "number of tasks");
    while (holder->held > 0) {
        holder_extract(holder, --holder->held);
        if (turns)
            (void)uv_run(&host->loop, UV_RUN_NOWAIT);
    }
    (void)host_run(host);
}

static double run_held(const struct bench_case *self,
                       const struct bench_how *how)
{
    const int64_t count = size_of(self, how);
    const int64_t runs = how->batches / count;
    struct holder holder = {.tasks =
                                calloc((size_t)count, sizeof(*holder.tasks))};
    struct host host;
    double begun;

    bench_check(holder.tasks != NULL, "memory");
    host_open(&host, how, 0);
    begun = bench_now_ns(how);
    for (int64_t i = 0; i < runs; i++)
        hold(&host, &holder, count, self->more != 0);
    begun = bench_now_ns(how) - begun;
    host_close(&host);
    free(holder.tasks);
    return begun * (double)how->batches / (double)(runs * count);
}

/* ---- batches that are collected ----------------------------------------- */

struct collector {
    struct host *host; /* borrows */
    int64_t batches;
};

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    struct collector *collector = ctx;

    (void)info;
    host_on_done(collector->host, outcome);
    collector->batches += (int64_t)count;
    for (size_t i = 0; i < count; i++)
        uva_array_release(&batches[i]);
}

static double run_collected(const struct bench_case *self,
                            const struct bench_how *how)
{
    const int64_t count = size_of(self, how);
    const int64_t runs = how->batches / count;
    struct host host;
    struct collector collector = {.host = &host};
    struct uva_stream *stream;
    struct input input;
    double begun;

    host_open(&host, how, 0);
    begun = bench_now_ns(how);
    for (int64_t i = 0; i < runs; i++) {
        stream = open_input(&host, &input, count, ON_LOOP);
        host.open++;
        bench_check(uva_stream_collect(stream, INT64_MAX, on_collected,
                                       &collector, NULL) == 0,
                    "collect");
        uva_stream_release(stream);
        (void)host_run(&host);
    }
    begun = host.ended_ns - begun;
    host_close(&host);
    bench_check(collector.batches == runs * count, "number of batches");
    return begun * (double)how->batches / (double)(runs * count);
}

/* ---- stages and branches ------------------------------------------------ */

static double run_stages(const struct bench_case *self,
                         const struct bench_how *how)
{
    struct tally tally = {0};
    struct uva_stream *stream;
    struct host host;
    struct input input;
    double begun;

    host_open(&host, how, 0);
    stream = open_input(&host, &input, how->batches, ON_LOOP);
    for (int32_t i = 0; i < self->window; i++)
        bench_check(uva_stream_limit_rows(stream, INT64_MAX) == 0, "stage");
    begun = bench_now_ns(how);
    host_for_each(&host, stream, &tally);
    begun = host_run(&host) - begun;
    host_close(&host);
    tally_check(&tally, how->batches);
    return begun;
}

static double run_branches(const struct bench_case *self,
                           const struct bench_how *how)
{
    struct tally tallies[BRANCHES_MAX] = {{0}};
    struct uva_stream *stream;
    struct host host;
    struct input input;
    double begun;

    host_open(&host, how, 0);
    stream = open_input(&host, &input, how->batches, ON_LOOP);
    begun = bench_now_ns(how);
    for (int32_t i = 1; i < self->window; i++)
        host_for_each(&host, uva_stream_tee(stream, NULL), &tallies[i]);
    host_for_each(&host, stream, &tallies[0]);
    begun = host_run(&host) - begun;
    host_close(&host);
    for (int32_t i = 0; i < self->window; i++)
        tally_check(&tallies[i], how->batches);
    return begun;
}

static const struct bench_case cases[] = {
    {"scaling/numbers/1", 1000000, run_numbers, 1, 0, 0},
    {"scaling/numbers/16", 500000, run_numbers, 16, 0, 0},
    {"scaling/numbers/256", 100000, run_numbers, 256, 0, 0},
    {"scaling/numbers/4096", 5000, run_numbers, 4096, 0, 0},
    {"scaling/texts/1", 1000000, run_texts, 1, 0, 0},
    {"scaling/texts/16", 500000, run_texts, 16, 0, 0},
    {"scaling/texts/256", 50000, run_texts, 256, 0, 0},
    {"scaling/texts/4096", 3000, run_texts, 4096, 0, 0},
    {"scaling/mixed/1", 1000000, run_mixed, 1, 0, 0},
    {"scaling/mixed/16", 500000, run_mixed, 16, 0, 0},
    {"scaling/mixed/256", 50000, run_mixed, 256, 0, 0},
    {"scaling/mixed/4096", 3000, run_mixed, 4096, 0, 0},
    {"scaling/rows/1", 500000, run_rows, 1, 0, 0},
    {"scaling/rows/1024", 500000, run_rows, 1024, 0, 0},
    {"scaling/rows/32768", 500000, run_rows, 32768, 0, 0},
    {"scaling/rows/1048576", 500000, run_rows, 1 << 20, 0, 0},
    {"scaling/table/1", 20, run_table, 1, 0, 0},
    {"scaling/table/10", 20, run_table, 10, 0, 0},
    {"scaling/held/1000", 1000000, run_held, 1000, 0, 0},
    {"scaling/held/10000", 1000000, run_held, 10000, 0, 0},
    {"scaling/held/100000", 1000000, run_held, 100000, 0, 0},
    {"scaling/held/1000000", 5000000, run_held, 1000000, 0, 0},
    {"scaling/held-turns/1000", 100000, run_held, 1000, 1, 0},
    {"scaling/held-turns/10000", 100000, run_held, 10000, 1, 0},
    {"scaling/held-turns/100000", 500000, run_held, 100000, 1, 0},
    {"scaling/collected/1000", 1000000, run_collected, 1000, 0, 0},
    {"scaling/collected/10000", 1000000, run_collected, 10000, 0, 0},
    {"scaling/collected/100000", 1000000, run_collected, 100000, 0, 0},
    {"scaling/collected/1000000", 5000000, run_collected, 1000000, 0, 0},
    {"scaling/stages/1", 500000, run_stages, 1, 0, 0},
    {"scaling/stages/4", 500000, run_stages, 4, 0, 0},
    {"scaling/stages/16", 100000, run_stages, 16, 0, 0},
    {"scaling/stages/64", 20000, run_stages, 64, 0, 0},
    {"scaling/branches/1", 500000, run_branches, 1, 0, 0},
    {"scaling/branches/4", 200000, run_branches, 4, 0, 0},
    {"scaling/branches/16", 50000, run_branches, 16, 0, 0},
    {"scaling/branches/64", 10000, run_branches, BRANCHES_MAX, 0, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
