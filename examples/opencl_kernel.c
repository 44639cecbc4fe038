/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as a map, on any OpenCL device. Numbers on the host are copied to
 * the device, squared there, and copied back. The whole work is queued on the
 * device at once, batch after batch, and the loop never waits. The library
 * releases the input of a kernel when it has run.
 *
 *     $ cc opencl_kernel.c opencl.c opencl_column.c \
 *          integers.c integers_sum.c \
 *          $(pkg-config --cflags --libs uvarrow OpenCL)
 *     $ ./a.out
 *     8 batches, 65536 rows, the sum of the squares is 93822844764160
 */
#include "opencl.h"

#include <inttypes.h>
#include <stdio.h>

#include "integers.h"

static const char source[] =
    "kernel void square(global const long *x, global long *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    y[i] = x[i] * x[i];\n"
    "}\n";

/* Called on a worker, for one batch after the other. The queue waits for `in`;
 * `out` gets an event after the work that is queued here. */
static int square(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                  const struct uva_device_queue *queue, struct uva_error *error)
{
    const int64_t rows = in->data.array.length;
    const struct ArrowArray *columns[] = {&in->data.array, &out->array};

    if (opencl_column(ctx, rows, &out->array) != 0)
        return uva_error_set(error, ENOMEM, "no memory on the device");
    if (opencl_run(ctx, queue->device_stream, 0, rows, columns, 2) == 0)
        return 0;
    uva_array_release(out);
    return uva_error_set(error, EIO, "the kernel could not be queued");
}

int main(void)
{
    struct uva_opencl_device native = {0};
    struct integers_sum sum;
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    struct opencl cl;

    if (opencl_open(&cl, source, "square") != 0) {
        fprintf(stderr, "no OpenCL device can be used here\n");
        return 77; /* the exit code of a skipped test */
    }
    native.context = cl.context; /* for the buffers of the copies */
    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0 ||
        uva_device_attach(rt, ARROW_DEVICE_OPENCL, 0, &native, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    s = integers_stream(rt, 8, 8192);
    uva_stream_transfer(
        s, &(struct uva_transfer){.device_type = ARROW_DEVICE_OPENCL});
    uva_stream_map_device(
        s, &(struct uva_device_map){
               .batch = square, .ctx = &cl, .device_stream = cl.queue});
    uva_stream_transfer(s, NULL); /* to the host */
    integers_add_up(s, &sum);
    uva_runtime_join(rt, UVA_FOREVER); /* the stream has ended */
    opencl_close(&cl);
    if (sum.code == 0)
        printf("%" PRId64 " batches, %" PRId64
               " rows, the sum of the squares is "
               "%" PRId64 "\n",
               sum.batches, sum.rows, sum.sum);
    return sum.code != 0;
}
