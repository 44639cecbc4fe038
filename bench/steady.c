/* SPDX-License-Identifier: Apache-2.0 */
/* Measures whether memory grows with the number of batches: how much more
 * memory the process has after a further tenth of a long stream, and at its
 * end, than after the first tenth. `more` is 1 for a stream with a chain of
 * stages. */
#include <stdio.h>
#include <unistd.h>

#include "host.h"
#include "uvarrow/arrow.h"

enum { WINDOW = 64 };

static double resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all, resident;

    bench_check(file != NULL, "/proc/self/statm");
    bench_check(fscanf(file, "%ld %ld", &all, &resident) == 2, "statm");
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

struct watch {
    struct host host;          /* first: host_on_done() casts to it */
    struct tally tally, other; /* of the stream, and of its second branch */
    int64_t step;              /* batches between two measurements */
    double first_kib, most_kib;
};

static void watch_measure(struct watch *watch)
{
    const double now_kib = resident_kib();

    if (watch->first_kib == 0)
        watch->first_kib = now_kib;
    if (now_kib > watch->most_kib)
        watch->most_kib = now_kib;
}

static int watch_on_batch(void *ctx, struct uva_batch *batch)
{
    struct watch *watch = ctx;

    tally_take(&watch->tally, &batch->data.array);
    if (watch->tally.seen % watch->step == 0)
        watch_measure(watch);
    return 0;
}

static int keep_all(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                    struct uva_error *error)
{
    (void)ctx;
    (void)error;
    memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    return uva_array_is_live(&in->data) ? emit(emitter, in) : 0;
}

/* Answers at once. */
static int begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    (void)ctx;
    uva_reply_give(reply, &in->data, NULL);
    return 0;
}

static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    (void)ctx;
    (void)attempt;
    (void)passed;
    (void)rows;
    bench_check(false, failed->error.message);
    return NULL;
}

static void look_on(void *ctx, const struct uva_trace_event *event)
{
    int64_t *batches = ctx;

    *batches += event->kind == UVA_TRACE_BATCH;
}

static struct uva_stream *empty_stream(struct host *host)
{
    struct ArrowSchema schema;

    batch_schema(&schema);
    return uva_stream_from_arrays(host->runtime, &schema, NULL, 0);
}

/* Each stage once; the streams that are merged and follow are empty, and no
 * limit is reached. Ends with a tee, of which it starts the second branch. */
static void add_stages(struct watch *watch, struct uva_stream *stream,
                       int64_t *inspected)
{
    struct uva_stream *merged = empty_stream(&watch->host),
                      *next = empty_stream(&watch->host);

    (void)uva_stream_retry(stream, &(struct uva_retry){.again = again});
    (void)uva_stream_timeout(
        stream,
        &(struct uva_timeout){.between_ms = 60000, .total_ms = 3600000});
    (void)uva_stream_throttle(
        stream, &(struct uva_throttle){.batches_per_s = 1000000000});
    (void)uva_stream_map_async(
        stream, &(struct uva_async_map){.begin = begin, .at_once = 8});
    (void)uva_stream_transform(
        stream, &(struct uva_transform){.batch = pass_on, .on_loop = true});
    (void)uva_stream_filter(
        stream, &(struct uva_filter){.keep = keep_all, .on_loop = true});
    (void)uva_stream_merge(stream, &merged, 1, NULL);
    (void)uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = BATCH_ROWS});
    (void)uva_stream_limit_rows(stream, INT64_MAX);
    (void)uva_stream_inspect(
        stream, &(struct uva_trace){.event = look_on, .ctx = inspected});
    bench_check(uva_stream_concat(stream, &next, 1, NULL) == 0, "stages");
    host_for_each(&watch->host, uva_stream_tee(stream, NULL), &watch->other);
}

static double run_steady(const struct bench_case *self,
                         const struct bench_how *how)
{
    const struct uva_arrow_source source = {.window = {.batches = WINDOW}};
    static struct watch watch;
    struct uva_stream *stream;
    struct input input;
    int64_t inspected = 0;

    watch = (struct watch){.step = (how->batches + 9) / 10};
    host_open(&watch.host, how, 0);
    input_init(&input, how->batches);
    stream =
        uva_stream_from_device_stream(watch.host.runtime, &input.abi, &source);
    if (self->more != 0)
        add_stages(&watch, stream, &inspected);
    bench_check(
        uva_stream_for_each(stream,
                            &(struct uva_consumer){.on_batch = watch_on_batch,
                                                   .on_done = host_on_done,
                                                   .ctx = &watch},
                            NULL) == 0,
        "for_each");
    watch.host.open++;
    uva_stream_release(stream);
    (void)host_run(&watch.host);
    watch_measure(&watch);
    bench_print(self->name, watch.most_kib - watch.first_kib, "KiB");
    host_close(&watch.host);
    tally_check(&watch.tally, how->batches);
    if (self->more != 0)
        tally_check(&watch.other, how->batches);
    bench_check(self->more == 0 || inspected == how->batches, "inspector");
    return 0;
}

static const struct bench_case cases[] = {
    {"steady/growth", 10000000, run_steady, 0, 0, BENCH_PRINTS},
    {"steady/stages", 10000000, run_steady, 0, 1, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
