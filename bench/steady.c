/* SPDX-License-Identifier: Apache-2.0 */
/* Measures whether memory grows with the number of batches: the memory of the
 * process after the first tenth of a long stream, and after all of it. `more`
 * is 1 for a stream with a chain of stages. */
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
    struct host host; /* first: host_on_done() casts to it */
    struct tally tally;
    int64_t warm; /* batches before the first measurement */
    double warm_kib;
};

static int watch_on_batch(void *ctx, struct uva_batch *batch)
{
    struct watch *watch = ctx;

    tally_take(&watch->tally, &batch->data.array);
    if (watch->tally.seen == watch->warm)
        watch->warm_kib = resident_kib();
    return 0;
}

static int keep_all(void *ctx, const struct uva_batch *batch, bool *keep,
                    struct uva_error *error)
{
    (void)ctx;
    (void)batch;
    (void)error;
    *keep = true;
    return 0;
}

static int pass_on(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                   void *emitter, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    return uva_array_is_live(&in->data) ? emit(emitter, in) : 0;
}

static struct uva_stream *empty_stream(struct host *host)
{
    struct ArrowSchema schema;

    batch_schema(&schema);
    return uva_stream_from_arrays(host->runtime, &schema, NULL, 0);
}

/* One of each stage; the streams that are merged and follow are empty. */
static void add_stages(struct host *host, struct uva_stream *stream)
{
    struct uva_stream *merged = empty_stream(host), *next = empty_stream(host);

    (void)uva_stream_transform(
        stream, &(struct uva_transform){.batch = pass_on, .on_loop = true});
    (void)uva_stream_filter(
        stream, &(struct uva_filter){.keep = keep_all, .on_loop = true});
    (void)uva_stream_merge(stream, &merged, 1, NULL);
    (void)uva_stream_rebatch(stream, &(struct uva_rebatch){.rows = BATCH_ROWS});
    (void)uva_stream_limit_rows(stream, INT64_MAX);
    bench_check(uva_stream_concat(stream, &next, 1, 0) == 0, "stages");
}

static double run_steady(const struct bench_case *self,
                         const struct bench_how *how)
{
    const struct uva_blocking_source source = {.window = {.batches = WINDOW}};
    static struct watch watch;
    struct uva_stream *stream;
    struct input input;

    watch = (struct watch){.warm = how->batches / 10};
    host_open(&watch.host, how, 0);
    input_init(&input, how->batches);
    stream = uva_stream_from_blocking(watch.host.runtime, &input.abi, &source);
    if (self->more != 0)
        add_stages(&watch.host, stream);
    bench_check(
        uva_stream_for_each(stream,
                            &(struct uva_consumer){.on_batch = watch_on_batch,
                                                   .on_done = host_on_done,
                                                   .ctx = &watch},
                            NULL) == 0,
        "for_each");
    watch.host.open = 1;
    uva_stream_release(stream);
    (void)host_run(&watch.host);
    bench_print(self->name, resident_kib() - watch.warm_kib, "KiB");
    host_close(&watch.host);
    tally_check(&watch.tally, how->batches);
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
