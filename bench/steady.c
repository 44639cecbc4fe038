/* SPDX-License-Identifier: Apache-2.0 */
/* Measures whether memory grows with the number of batches: the memory of the
 * process after the first tenth of a long stream, and after all of it. */
#include <stdio.h>
#include <unistd.h>

#include "host.h"

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
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
