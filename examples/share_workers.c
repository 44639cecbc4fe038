/* SPDX-License-Identifier: Apache-2.0 */
/* Two loops, each on its own thread, with one pool of workers, so that the
 * program has no more threads than cores. They run at a lower priority, as each
 * new thread sets it.
 *
 *     $ cc share_workers.c integers.c integers_sum.c tell.c \
 *          $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     999999000000 and 999999000000, by 2 threads at most
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "integers.h"
#include "tell.h"

enum { THREADS = 2, RUNTIMES = 2 };

static atomic_int threads;

static void thread_begin(void *ctx, enum uva_lane lane)
{
    (void)ctx;
    if (lane == UVA_LANE_COMPUTE)
        atomic_fetch_add(&threads, 1);
    if (nice(10) == -1)
        perror("nice"); /* on Linux it counts for this thread alone */
}

static int double_it(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    const int64_t rows = in->data.array.length;
    const int64_t *from = integers_of(&in->data);
    int64_t *to = integers_new(rows, out);

    (void)ctx;
    if (to == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a batch");
    for (int64_t i = 0; i < rows; i++)
        to[i] = 2 * from[i];
    return 0;
}

int main(void)
{
    const struct uva_workers_options options = {.compute_threads = THREADS,
                                                .thread_begin = thread_begin};
    struct uva_runtime *runtimes[RUNTIMES];
    struct integers_sum sums[RUNTIMES];
    struct uva_workers *workers;
    struct uva_error error;

    if (uva_workers_new(&options, &workers, &error) != 0)
        return tell(&error);
    for (int i = 0; i < RUNTIMES; i++) {
        struct uva_stream *s;

        if (uva_runtime_open(NULL,
                             &(struct uva_runtime_options){.workers = workers},
                             &runtimes[i], &error) != 0)
            return tell(&error);
        s = integers_stream(runtimes[i], 100, 10000);
        uva_stream_map(s, &(struct uva_map){.batch = double_it});
        integers_add_up(s, &sums[i]);
    }
    uva_workers_release(workers); /* the runtimes keep them */
    for (int i = 0; i < RUNTIMES; i++)
        uva_runtime_join(runtimes[i], UVA_FOREVER);
    printf("%" PRId64 " and %" PRId64 ", by %s\n", sums[0].sum, sums[1].sum,
           atomic_load(&threads) <= THREADS ? "2 threads at most"
                                            : "too many threads");
    return sums[0].code != 0 || sums[1].code != 0;
}
