/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a query that a database gives in partitions, as CSV: all of them,
 * read on several connections at once, or those of one partition, which is the
 * share of one machine if many work together.
 *
 *     example_partitions DRIVER URI SQL [NUMBER]
 */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "database.h"
#include "print.h"
#include "tell.h"

static struct uva_adbc_pool *pool;
static const struct uva_adbc_partitions again = {
    .retries = 5, /* goes on behind the rows that came, also elsewhere */
    .timeout = {.open_ms = 5000, .between_ms = 30000}};
static int number = -1;         /* of the partition; -1: all */
static struct uva_stream *rows; /* counts; NULL: there is no result */

/* The partitions are one batch with one column of bytes, which a program may
 * send to others. */
static void on_partitions(void *ctx, const struct uva_stream_info *info,
                          struct ArrowDeviceArray *batches, size_t count,
                          const struct uva_outcome *outcome)
{
    const struct ArrowArray *list =
        count > 0 ? batches->array.children[0] : NULL;

    (void)info;
    tell_end(ctx, outcome);
    if (list != NULL && number < 0) {
        rows = uva_stream_from_partitions(pool, &batches->array, &again);
    } else if (list != NULL && number < list->length) {
        const int32_t *ends = list->buffers[1];
        const int32_t from = ends[list->offset + number],
                      to = ends[list->offset + number + 1];

        rows = uva_stream_from_partition(pool,
                                         (const char *)list->buffers[2] + from,
                                         (size_t)(to - from), NULL);
    }
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    int code = 0;

    if (argc < 4 || uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL [NUMBER]\n", argv[0]),
               2;
    number = argc > 4 ? atoi(argv[4]) : -1;
    pool = database_open(rt, argv[1], argv[2]);
    if (pool == NULL)
        return 1;
    s = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = argv[3],
                                       .result = UVA_ADBC_PARTITIONS});
    if (uva_stream_collect(s, 0, on_partitions, &code, &error) != 0)
        code = tell(&error);
    uva_stream_release(s);
    uv_run(loop, UV_RUN_DEFAULT);
    uva_adbc_pool_release(pool); /* `rows` keeps it */
    if (rows == NULL && code == 0)
        fprintf(stderr, "there is no such partition\n");
    if (rows == NULL)
        return 1;
    return print_to_end(rt, rows, UVA_FORMAT_CSV);
}
