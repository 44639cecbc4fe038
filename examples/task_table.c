/* SPDX-License-Identifier: Apache-2.0 */
/* Produces a stream from a table of tasks. Finding the next task happens in
 * order, and costs little; running it is expensive, and happens on several
 * workers at once. The results still arrive in order. Here each task is a range
 * of numbers, and its batch holds the primes in that range.
 *
 *     $ cc task_table.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     9592 primes in 10 batches, in order, the last is 99991
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

/* ---- the table ---------------------------------------------------------- */

static const struct range {
    int64_t from, below;
} table[] = {{0, 10000},     {10000, 20000}, {20000, 30000}, {30000, 40000},
             {40000, 50000}, {50000, 60000}, {60000, 70000}, {70000, 80000},
             {80000, 90000}, {90000, 100000}};

/* ---- the source --------------------------------------------------------- */

struct primes {
    const void *buffers[2]; /* no nulls; `values` */
    int64_t values[];
};

static void primes_release(struct ArrowArray *array)
{
    free(array->private_data);
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

static int table_schema(void *ctx, struct ArrowSchema *out,
                        struct uva_error *error)
{
    (void)ctx;
    (void)error;
    *out = (struct ArrowSchema){
        .format = "l", /* int64 */ .name = "prime", .release = schema_release};
    return 0;
}

/* Gives one task per call, and ENOENT at the end. */
static int table_next(void *ctx, void **item, const char **metadata,
                      struct uva_error *error)
{
    size_t *at = ctx;

    (void)metadata;
    (void)error;
    if (*at < sizeof(table) / sizeof(table[0]))
        *item = (void *)&table[(*at)++];
    return 0;
}

static bool is_prime(int64_t number)
{
    for (int64_t i = 2; i * i <= number; i++) {
        if (number % i == 0)
            return false;
    }
    return number > 1;
}

/* Runs one task, on any worker, while other tasks run. */
static int table_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    const struct range *range = item;
    struct ArrowArray array = {.n_buffers = 2, .release = primes_release};
    struct primes *primes;

    (void)ctx;
    if (out == NULL) /* the data is not wanted */
        return 0;
    primes =
        calloc(1, sizeof(*primes) +
                      sizeof(int64_t) * (size_t)(range->below - range->from));
    if (primes == NULL)
        return uva_error_set(error, ENOMEM, "no memory for the primes");
    for (int64_t i = range->from; i < range->below; i++) {
        if (is_prime(i))
            primes->values[array.length++] = i;
    }
    primes->buffers[1] = primes->values;
    array.buffers = primes->buffers;
    array.private_data = primes;
    uva_array_from_cpu(&array, out);
    return 0;
}

/* ---- the program -------------------------------------------------------- */

struct seen {
    int64_t rows, last;
    int code; /* code of the outcome */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    const int64_t *values = (const int64_t *)array->buffers[1] + array->offset;
    struct seen *seen = ctx;

    for (int64_t i = 0; i < array->length; i++) {
        if (values[i] <= seen->last)
            return EPROTO; /* impossible, because the order is kept */
        seen->last = values[i];
    }
    seen->rows += array->length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct seen *seen = ctx;

    seen->code = outcome->error.code;
    if (seen->code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    else
        printf("%" PRId64 " primes in %" PRId64
               " batches, in order, the last is %" PRId64 "\n",
               seen->rows, outcome->batches, seen->last);
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct seen seen = {0};
    size_t at = 0; /* index in the table */
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code;

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    s = uva_stream_from_tasks(
        rt, &(struct uva_task_source){.schema = table_schema,
                                      .next = table_next,
                                      .extract = table_extract,
                                      .ctx = &at});
    uva_stream_parallel(s, &(struct uva_parallel){.workers = 4});
    code = uva_stream_for_each(s,
                               &(struct uva_consumer){.on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &seen},
                               NULL);
    uva_stream_release(s);
    uv_run(loop, UV_RUN_DEFAULT);

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || code != 0 || seen.code != 0;
}
