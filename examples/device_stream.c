/* SPDX-License-Identifier: Apache-2.0 */
/* Two libraries in one process, each with a runtime of its own, pass a stream
 * on by the C ABI of Arrow: one gives an ArrowDeviceArrayStream, the other
 * takes it. The data may be on any device, and none is copied.
 *
 *     $ cc device_stream.c run.c $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow
 *     336776 rows
 */
#include <inttypes.h>
#include <stdio.h>

#include "run.h"
#include "uvarrow/io.h"

/* ---- the library that reads --------------------------------------------- */

/* Gives the batches of a file, to be read by one thread at a time. They wait
 * in a window of four. Releasing `out` cancels the stream. */
static int library_read(struct uva_runtime *rt, const char *path,
                        struct ArrowDeviceArrayStream *out,
                        struct uva_error *error)
{
    struct uva_stream *s = uva_stream_from_file(rt, path, NULL);
    const struct uva_window ahead = {.batches = 4};
    const int code = uva_stream_to_device_stream(s, &ahead, out, error);

    uva_stream_release(s);
    return code;
}

/* ---- the library that works --------------------------------------------- */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    *(int64_t *)ctx += batch->data.array.length;
    return 0;
}

/* Takes `rows`. Its get_next blocks, so it is called on a worker. */
static int library_count(struct ArrowDeviceArrayStream *rows)
{
    const struct uva_arrow_source about = {.name = "rows",
                                           .device_type = rows->device_type};
    int64_t count = 0;
    const struct uva_consumer to = {.on_batch = on_batch, .ctx = &count};
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code;

    if (uva_runtime_open(NULL, NULL, &rt, NULL) != 0) {
        rows->release(rows);
        return 1;
    }
    s = uva_stream_from_device_stream(rt, rows, &about);
    uva_stream_ready(s, NULL); /* waits for events, if there are any */
    code = run_to_end(rt, s, &to);
    printf("%" PRId64 " rows\n", count);
    return code;
}

int main(int argc, char **argv)
{
    struct ArrowDeviceArrayStream rows;
    struct uva_runtime *rt;
    struct uva_error error;
    int code;

    if (argc != 2 || uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 2;
    code = library_read(rt, argv[1], &rows, &error);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    else
        code = library_count(&rows);
    uva_runtime_join(rt, UVA_FOREVER);
    return code != 0;
}
