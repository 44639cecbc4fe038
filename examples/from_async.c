/* SPDX-License-Identifier: Apache-2.0 */
/* A stream from a driver that implements Arrow's asynchronous interface. The
 * driver of this example is async_driver.c; any other one is used in this way.
 *
 *     $ cc from_async.c async_driver.c run.c \
 *         $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow
 *     rows of flights.arrow
 *     336776 in all
 */
#include <inttypes.h>
#include <stdio.h>

#include "async_driver.h"
#include "run.h"

struct query {
    struct async_driver *driver;
    const char *path;
    int64_t rows;
};

/* Passes our handler to the driver: on a worker, so it may block. */
static int start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error)
{
    const struct query *query = ctx;
    const int code = async_driver_read(query->driver, query->path, handler);

    return code == 0 ? 0 : uva_error_set(error, code, "the driver refuses");
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct uva_pair path;

    (void)ctx;
    if (uva_metadata_get(info->metadata, "path", &path) == 0)
        printf("rows of %.*s\n", (int)path.value_size, path.value);
    return 0; /* a driver may send no metadata */
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    ((struct query *)ctx)->rows += batch->data.array.length;
    return 0;
}

int main(int argc, char **argv)
{
    struct query query = {.path = argc > 1 ? argv[1] : ""};
    const struct uva_consumer to = {
        .on_schema = on_schema, .on_batch = on_batch, .ctx = &query};
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code;

    query.driver = async_driver_open();
    if (query.driver == NULL || uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 1;
    s = uva_stream_from_async(
        rt, &(struct uva_async_source){.start = start, .ctx = &query});
    code = run_to_end(rt, s, &to);
    async_driver_close(query.driver);
    printf("%" PRId64 " in all\n", query.rows);
    return code;
}
