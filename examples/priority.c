/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams share one worker: a total in the background, and a preview that a
 * user waits for, whose work goes before that of the total.
 *
 *     $ cc priority.c column.c tell.c \
 *         $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow
 *     the preview has 20 rows
 *     the total is 350217607 miles
 */
#include <inttypes.h>
#include <stdio.h>

#include "column.h"
#include "tell.h"
#include "uvarrow/io.h"

struct job {
    int64_t rows, miles;
    int code;
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int column = column_find(batch->schema, "distance");
    struct job *job = ctx;

    if (column < 0)
        return ENOENT;
    job->rows += batch->data.array.length;
    job->miles += column_sum(&batch->data.array, column);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    tell_end(&((struct job *)ctx)->code, outcome);
}

static void start(struct uva_stream *s, struct job *job)
{
    const struct uva_consumer to = {
        .on_batch = on_batch, .on_done = on_done, .ctx = job};
    struct uva_error error;

    uva_stream_parallel(s, NULL);
    if (uva_stream_for_each(s, &to, &error) != 0)
        job->code = tell(&error);
    uva_stream_release(s);
}

int main(int argc, char **argv)
{
    struct job total = {0}, preview = {0};
    struct uva_workers *workers;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (argc != 2 ||
        uva_workers_new(&(struct uva_workers_options){.compute_threads = 1},
                        &workers, NULL) != 0 ||
        uva_runtime_open(NULL,
                         &(struct uva_runtime_options){.workers = workers}, &rt,
                         NULL) != 0)
        return 2;
    uva_workers_release(workers); /* the runtime counts them */

    s = uva_stream_from_file(rt, argv[1], NULL);
    uva_stream_set_priority(s, -1); /* after other work */
    start(s, &total);
    s = uva_stream_from_file(rt, argv[1], NULL);
    uva_stream_limit_rows(s, 20);
    start(s, &preview);
    uva_runtime_join(rt, UVA_FOREVER);
    printf("the preview has %" PRId64 " rows\n", preview.rows);
    printf("the total is %" PRId64 " miles\n", total.miles);
    return total.code != 0 || preview.code != 0;
}
