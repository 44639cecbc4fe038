/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a column of a CSV file, decodes it on four workers, converts it from
 * miles to kilometres there too, and still receives it in order:
 *
 *     example_csv_decode flights.csv distance */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "csv_scan.h"
#include "numbers.h"

#define KM_PER_MILE 1.609344

/* The results so far. */
struct total {
    int64_t rows;
    double sum;
    double longest;
    int64_t longest_row; /* the first such row; wrong if the order is lost */
    int code;            /* code of the outcome */
};

/* Runs on a worker, right after decoding. */
static int to_kilometres(void *ctx, struct uva_batch *in,
                         struct ArrowDeviceArray *out, struct uva_error *error)
{
    const double *miles = numbers_of(&in->data);
    double *kilometres = numbers_new(in->data.array.length, out);

    (void)ctx;
    if (kilometres == NULL)
        return uva_error_set(error, ENOMEM, "batch %" PRId64 ": no memory",
                             in->ordinal);
    for (int64_t i = 0; i < in->data.array.length; i++)
        kilometres[i] = miles[i] * KM_PER_MILE;
    return 0;
}

/* Runs on the loop, as do all functions below. */
static int on_batch(void *ctx, struct uva_batch *batch)
{
    const double *kilometres = numbers_of(&batch->data);
    struct total *total = ctx;

    for (int64_t i = 0; i < batch->data.array.length; i++) {
        total->rows++;
        total->sum += kilometres[i];
        if (kilometres[i] > total->longest) {
            total->longest = kilometres[i];
            total->longest_row = total->rows;
        }
    }
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct total *total = ctx;

    total->code = outcome->error.code;
    if (outcome->end != UVA_END_COMPLETE)
        fprintf(stderr, "%s\n", outcome->error.message);
}

static int scan(struct uva_runtime *rt, const char *path, const char *column,
                struct total *total)
{
    struct uva_error error;
    struct uva_stream *s = uva_stream_from_tasks(
        rt, &(struct uva_task_source){.name = "csv",
                                      .schema = csv_scan_schema,
                                      .next = csv_scan_next,
                                      .extract = csv_scan_extract,
                                      .free_ctx = csv_scan_free,
                                      .ctx = csv_scan_new(path, column)});
    int code;

    uva_stream_map(s, &(struct uva_map){.batch = to_kilometres});
    uva_stream_parallel(s, &(struct uva_parallel){.workers = 4});
    code = uva_stream_for_each(s,
                               &(struct uva_consumer){.on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = total},
                               &error); /* the first error of all four calls */
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    return code;
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct total total = {0};
    struct uva_runtime *rt;
    int code;

    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE.csv COLUMN\n", argv[0]);
        return 2;
    }
    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    code = scan(rt, argv[1], argv[2], &total);
    uv_run(loop, UV_RUN_DEFAULT);
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    if (uv_loop_close(loop) != 0 || code != 0 || total.code != 0)
        return 1;
    printf("%" PRId64 " rows, %.0f km, the longest in row %" PRId64 "\n",
           total.rows, total.sum, total.longest_row);
    return 0;
}
