/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a query and prints its rows, without ever blocking the loop:
 *
 *     example_print_rows DRIVER URI SQL
 *
 * The database is opened and read on a worker of the library. The rows arrive
 * on the loop, a batch at a time, and no faster than they are printed. */
#include <stdio.h>
#include <uv.h>

#include "database.h"
#include "rows.h"

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    rows_write_names(stdout, info->schema);
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    return rows_write(stdout, batch->schema, &batch->data.array);
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    *(int *)ctx = outcome->error.code;
    if (outcome->end != UVA_END_COMPLETE)
        fprintf(stderr, "query: %s\n", outcome->error.message);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;
    int result = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: %s DRIVER URI SQL\n", argv[0]);
        return 2;
    }
    if (uva_runtime_open(loop, NULL, &rt, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }

    s = database_query(rt, argv[1], argv[2],
                       &(struct uva_adbc_query){.sql = argv[3]});
    result = uva_stream_for_each(s,
                                 &(struct uva_consumer){.on_schema = on_schema,
                                                        .on_batch = on_batch,
                                                        .on_done = on_done,
                                                        .ctx = &result},
                                 &error);
    if (result != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s); /* it runs to its end */

    uv_run(loop, UV_RUN_DEFAULT); /* until the stream has ended */
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT); /* until the runtime is closed */
    return uv_loop_close(loop) != 0 || result != 0;
}
