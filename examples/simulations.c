/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation for each of three seeds, on four workers. The work has two
 * halves: finding the next seed costs little, and happens in order; simulating
 * is expensive, and happens for several seeds at once. The results come in
 * order.
 *
 *     $ cc simulations.c integers.c run.c $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     seed 1: ends at -644
 *     seed 2: ends at 1210
 *     seed 3: ends at -176
 */
#include <inttypes.h>
#include <stdio.h>

#include "integers.h"
#include "run.h"

enum { SEEDS = 3, STEPS = 1000000, WORKERS = 4 };

/* Gives the next seed, and none at the end. */
static int next_seed(void *ctx, void **item, const char **metadata,
                     struct uva_error *error)
{
    int *seed = ctx;

    (void)metadata, (void)error;
    if (*seed < SEEDS)
        *item = (void *)(intptr_t)++ * seed;
    return 0;
}

/* How far a random walk comes. Called on any worker. */
static int walk(void *ctx, void *item, struct ArrowDeviceArray *out,
                struct uva_error *error)
{
    uint64_t random = (uint64_t)(intptr_t)item;
    int64_t *place;

    (void)ctx;
    if (out == NULL) /* the data is not wanted */
        return 0;
    place = integers_new(1, out);
    if (place == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a result");
    for (int i = 0; i < STEPS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        *place += random >> 63 ? 1 : -1;
    }
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    printf("seed %" PRId64 ": ends at %" PRId64 "\n", batch->ordinal + 1,
           *integers_of(&batch->data));
    return 0;
}

int main(void)
{
    int seed = 0;
    const struct uva_task_source source = {.schema = integers_schema,
                                           .next = next_seed,
                                           .extract = walk,
                                           .ctx = &seed};
    struct uva_error error;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    s = uva_stream_from_tasks(rt, &source);
    uva_stream_parallel(s, &(struct uva_parallel){.workers = WORKERS});
    return run_to_end(rt, s, &(struct uva_consumer){.on_batch = on_batch});
}
