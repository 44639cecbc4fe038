/* SPDX-License-Identifier: Apache-2.0 */
/* Collects batches of an OpenCL device in memory of the program: each is read
 * by work that is only queued, and released when that work is complete. No
 * thread waits before the end.
 *
 *     $ cc opencl_collect.c opencl.c opencl_column.c integers.c tell.c \
 *         $(pkg-config --cflags --libs uvarrow libuv OpenCL)
 *     $ ./a.out
 *     65536 numbers, the last is 65535
 */
#include "opencl.h"

#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "integers.h"
#include "tell.h"

struct app {
    struct uva_runtime *rt;
    struct opencl cl;
    int64_t rows, numbers[65536];
    int code;
};

/* The queue waits for the event of the batch; this does not. */
static int on_batch(void *ctx, struct uva_batch *batch)
{
    const size_t size = (size_t)batch->data.array.length * sizeof(int64_t);
    struct app *app = ctx;
    cl_mem memory = (cl_mem)batch->data.array.buffers[1];

    if (clEnqueueReadBuffer(app->cl.queue, memory, CL_FALSE, 0, size,
                            &app->numbers[app->rows], 0, NULL,
                            NULL) != CL_SUCCESS)
        return EIO;
    app->rows += batch->data.array.length;
    uva_array_release_after(app->rt, &batch->data, app->cl.queue);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    tell_end(&((struct app *)ctx)->code, outcome);
}

int main(void)
{
    static struct app app;
    struct uva_consumer to = {
        .on_batch = on_batch, .on_done = on_done, .ctx = &app};
    struct uva_opencl_device native = {0};
    uv_loop_t *loop = uv_default_loop();
    struct uva_error error;
    struct uva_stream *s;

    if (opencl_open(&app.cl, "kernel void none() {}", "none") != 0)
        return 77; /* no OpenCL device can be used here */
    native.context = app.cl.context;
    if (uva_runtime_open(loop, NULL, &app.rt, &error) != 0 ||
        uva_device_attach(app.rt, ARROW_DEVICE_OPENCL, 0, &native, &error) != 0)
        return tell(&error);
    s = integers_stream(app.rt, 8, 8192);
    uva_stream_transfer(
        s, &(struct uva_transfer){.device_type = ARROW_DEVICE_OPENCL});
    uva_stream_ready(s, &(struct uva_ready){.wait = UVA_WAIT_STREAM,
                                            .device_stream = app.cl.queue});
    if (uva_stream_for_each(s, &to, &error) != 0)
        return tell(&error);
    uva_stream_release(s);
    (void)uv_run(loop, UV_RUN_DEFAULT); /* until the stream has ended */
    clFinish(app.cl.queue);
    printf("%" PRId64 " numbers, the last is %" PRId64 "\n", app.rows,
           app.numbers[app.rows - 1]);
    uva_device_detach(app.rt, ARROW_DEVICE_OPENCL, 0);
    opencl_close(&app.cl);
    uva_runtime_close(app.rt, 0, NULL, NULL);
    return uv_run(loop, UV_RUN_DEFAULT) != 0 || app.code != 0;
}
