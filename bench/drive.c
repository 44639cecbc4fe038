/* SPDX-License-Identifier: Apache-2.0 */
/* One thread, from producer to handler through the C interface: request, task,
 * extract, release. The same handler runs on a producer written by hand, which
 * is the baseline, and on uva_stream_drive(), bare and with fused maps. Either
 * both build their batches while the time is taken, or both have them before
 * that. `window` is the number of requests that are open at first; they are
 * renewed when half are used. `more` is the number of maps; of the baseline, 1
 * if it has its batches before. */
#include "host.h"
#include "taker.h"

/* ---- baselines ---------------------------------------------------------- */

static double run_get_next(const struct bench_case *self,
                           const struct bench_how *how)
{
    struct tally tally = {0};
    struct ArrowDeviceArray array;
    struct input input;
    double begun, took;

    (void)self;
    input_init(&input, how->batches);
    begun = bench_now_ns(how);
    for (;;) {
        bench_check(input.abi.get_next(&input.abi, &array) == 0, "get_next");
        if (array.array.release == NULL)
            break;
        tally_take(&tally, &array.array);
        array.array.release(&array.array);
    }
    took = bench_now_ns(how) - begun;
    tally_check(&tally, how->batches);
    return took;
}

static struct ArrowDeviceArray arrays[TAKER_AT_ONCE]; /* built */

static void arrays_build(int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        batch_fill(&arrays[i], i);
}

struct plain {
    struct ArrowAsyncProducer abi; /* first */
    int64_t demand;
};

static void plain_request(struct ArrowAsyncProducer *self, int64_t n)
{
    ((struct plain *)self)->demand += n;
}

static void plain_cancel(struct ArrowAsyncProducer *self)
{
    ((struct plain *)self)->demand = 0;
}

static int plain_extract(struct ArrowAsyncTask *task,
                         struct ArrowDeviceArray *out)
{
    if (out != NULL)
        batch_fill(out, (int64_t)(intptr_t)task->private_data);
    return 0;
}

static int plain_extract_built(struct ArrowAsyncTask *task,
                               struct ArrowDeviceArray *out)
{
    const int64_t i = (int64_t)(intptr_t)task->private_data;

    if (out != NULL)
        *out = arrays[i % TAKER_AT_ONCE];
    return 0;
}

static double run_plain(const struct bench_case *self,
                        const struct bench_how *how)
{
    struct plain plain = {.abi = {.device_type = ARROW_DEVICE_CPU,
                                  .request = plain_request,
                                  .cancel = plain_cancel}};
    int (*const extract)(struct ArrowAsyncTask *, struct ArrowDeviceArray *) =
        self->more == 0 ? plain_extract : plain_extract_built;
    struct ArrowSchema schema;
    struct taker taker;
    double begun;

    arrays_build(self->more == 0 ? 0 : TAKER_AT_ONCE);
    taker_init(&taker, self->window);
    taker.abi.producer = &plain.abi;
    batch_schema(&schema);
    begun = bench_now_ns(how);
    bench_check(taker.abi.on_schema(&taker.abi, &schema) == 0, "on_schema");
    for (int64_t i = 0; i < how->batches; i++) {
        struct ArrowAsyncTask task = {extract, (void *)(intptr_t)i};

        bench_check(plain.demand-- > 0, "demand");
        (void)taker.abi.on_next_task(&taker.abi, &task, NULL);
    }
    (void)taker.abi.on_next_task(&taker.abi, NULL, NULL);
    taker.abi.release(&taker.abi);
    begun = bench_now_ns(how) - begun;
    tally_check(&taker.tally, how->batches);
    return begun;
}

/* ---- uvarrow ------------------------------------------------------------ */

static int pass_on(void *ctx, struct uva_batch *in,
                   struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static struct uva_stream *
mapped_stream(struct host *host, const struct bench_case *self, int64_t count)
{
    struct uva_stream *stream;
    struct ArrowSchema schema;

    arrays_build(count);
    batch_schema(&schema);
    stream =
        uva_stream_from_arrays(host->runtime, &schema, arrays, (size_t)count);
    for (int32_t i = 0; i < self->more; i++)
        (void)uva_stream_map(
            stream, &(struct uva_map){.batch = pass_on, .on_loop = true});
    return stream;
}

static double run_drive(const struct bench_case *self,
                        const struct bench_how *how)
{
    return taker_run(self, how, mapped_stream);
}

static double run_building(const struct bench_case *self,
                           const struct bench_how *how)
{
    return taker_run_made(self, how, mapped_stream);
}

/* A blocking stream that is read on the loop thread. */
static struct uva_stream *
on_loop_stream(struct host *host, const struct bench_case *self, int64_t count)
{
    static struct input input;

    (void)self;
    input_init(&input, count);
    return uva_stream_from_device_stream(
        host->runtime, &input.abi, &(struct uva_arrow_source){.on_loop = true});
}

static double run_on_loop(const struct bench_case *self,
                          const struct bench_how *how)
{
    return taker_run_made(self, how, on_loop_stream);
}

static const struct bench_case cases[] = {
    {"drive/get_next", 2000000, run_get_next, 0, 0, 0},
    {"drive/64/hand", 2000000, run_plain, 64, 0, 0},
    {"drive/64/hand-built", 2000000, run_plain, 64, 1, 0},
    {"drive/64/uvarrow", 1000000, run_drive, 64, 0, 0},
    {"drive/64/uvarrow-building", 1000000, run_building, 64, 0, 0},
    {"drive/64/uvarrow-on-loop", 1000000, run_on_loop, 64, 0, 0},
    {"drive/64/uvarrow-1-map", 1000000, run_drive, 64, 1, 0},
    {"drive/64/uvarrow-4-maps", 1000000, run_drive, 64, 4, 0},
    {"drive/1/hand", 2000000, run_plain, 1, 0, 0},
    {"drive/1/hand-built", 2000000, run_plain, 1, 1, 0},
    {"drive/1/uvarrow", 1000000, run_drive, 1, 0, 0},
    {"drive/1/uvarrow-1-map", 1000000, run_drive, 1, 1, 0},
    {"drive/1/uvarrow-4-maps", 1000000, run_drive, 1, 4, 0},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
