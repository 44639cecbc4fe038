/* SPDX-License-Identifier: Apache-2.0 */
/* Merges 2 to 1,000 streams: the time for a batch, and how equal the shares of
 * the streams are. `window` is the number of streams. The time of the first
 * tenth, in which the streams open, does not count. */
#include <errno.h>
#include <stdlib.h>

#include "host.h"

/* One stream, which gives batches for as long as they are wanted. The number of
 * rows of a batch names it. */
struct feed {
    struct input input; /* first */
    int64_t rows;
};

struct merged {
    struct host host;
    struct feed *feeds; /* owns: one for each stream */
    int64_t *taken;     /* owns: batches of each */
    int64_t seen, last; /* batches, so far and in all */
    int64_t warm;       /* batches before the time is taken */
    double begun_ns;
};

static int feed_get_next(struct ArrowDeviceArrayStream *self,
                         struct ArrowDeviceArray *out)
{
    struct feed *feed = self->private_data;

    batch_fill(out, feed->input.next++);
    out->array.length = feed->rows;
    return 0;
}

static struct uva_stream *feed_open(struct feed *feed, int64_t rows,
                                    struct uva_runtime *runtime)
{
    input_init(&feed->input, 0);
    feed->input.abi.get_next = feed_get_next;
    feed->input.abi.private_data = feed;
    feed->rows = rows;
    return uva_stream_from_device_stream(
        runtime, &feed->input.abi,
        &(struct uva_arrow_source){.window = {.batches = 8}, .on_loop = true});
}

static int merged_on_batch(void *ctx, struct uva_batch *batch)
{
    struct merged *merged = ctx;

    merged->taken[batch->data.array.length - 1]++;
    if (++merged->seen == merged->warm)
        merged->begun_ns = bench_now_ns(merged->host.how);
    return merged->seen == merged->last ? ECANCELED : 0;
}

static void merged_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct merged *merged = ctx;

    bench_check(outcome->end == UVA_END_CANCELLED, outcome->error.message);
    merged->host.open--;
    merged->host.ended_ns = bench_now_ns(merged->host.how);
}

static void merged_start(struct merged *merged, int64_t count)
{
    const struct uva_consumer consumer = {
        .on_batch = merged_on_batch, .on_done = merged_on_done, .ctx = merged};
    struct uva_stream **streams = calloc((size_t)count, sizeof(*streams));

    bench_check(streams != NULL, "memory");
    for (int64_t i = 0; i < count; i++)
        streams[i] = feed_open(&merged->feeds[i], i + 1, merged->host.runtime);
    bench_check(
        uva_stream_merge(streams[0], streams + 1, (size_t)count - 1, NULL) == 0,
        "merge");
    merged->host.open = 1;
    bench_check(uva_stream_for_each(streams[0], &consumer, NULL) == 0,
                "for_each");
    uva_stream_release(streams[0]);
    free(streams);
}

static double run_merge(const struct bench_case *self,
                        const struct bench_how *how)
{
    const int64_t count = self->window;
    const int64_t batches =
        how->batches > 10 * count ? how->batches : 10 * count;
    struct merged merged = {
        .feeds = calloc((size_t)count, sizeof(*merged.feeds)),
        .taken = calloc((size_t)count, sizeof(*merged.taken)),
        .last = batches,
        .warm = batches / 10};
    double took;

    bench_check(merged.feeds != NULL && merged.taken != NULL, "memory");
    host_open(&merged.host, how, 0);
    merged_start(&merged, count);
    took = host_run(&merged.host) - merged.begun_ns;
    host_close(&merged.host);
    bench_check(merged.seen == batches, "number of batches");
    if ((self->flags & BENCH_PRINTS) != 0)
        bench_print_shares(self->name, merged.taken, count);
    free(merged.feeds);
    free(merged.taken);
    return took * (double)how->batches / (double)(batches - merged.warm);
}

static const struct bench_case cases[] = {
    {"merge/2", 1000000, run_merge, 2, 0, 0},
    {"merge/10", 1000000, run_merge, 10, 0, 0},
    {"merge/100", 1000000, run_merge, 100, 0, 0},
    {"merge/1000", 1000000, run_merge, 1000, 0, 0},
    {"merge/1000/shares", 1000000, run_merge, 1000, 0, BENCH_PRINTS},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
