/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as a map, on a CUDA device. Numbers on the host are copied to the
 * device, squared there, and copied back. The whole work is queued on the
 * device at once, batch after batch, and the loop never waits. A program that
 * links the CUDA runtime launches its kernel on a cudaStream_t in this way.
 * Without a device it prints an error and exits with 77.
 *
 *     8 batches, 65536 rows, the sum of the squares is 93822844764160
 */
#include <inttypes.h>
#include <stdio.h>

#include "cuda_driver.h"
#include "cuda_square.h"
#include "integers.h"

/* Called on a worker, for one batch after the other. The stream waits for `in`,
 * and its context is current; `out` gets an event after the work that is queued
 * here. */
static int square(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                  const struct uva_device_queue *queue, struct uva_error *error)
{
    (void)ctx;
    if (cuda_column(in->data.array.length, &out->array) != 0)
        return uva_error_set(error, ENOMEM, "no memory on the device");
    if (cuda_run(queue->device_stream, &in->data.array, &out->array) == 0)
        return 0;
    uva_array_release(out);
    return uva_error_set(error, EIO, "the kernel could not be launched");
}

int main(void)
{
    struct integers_sum sum;
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    const int code = cuda_open(cuda_square, "square");

    if (code != 0) {
        fprintf(stderr, "no CUDA device can be used here\n");
        return code == ENODEV ? 77 : 1; /* 77: a skipped test */
    }
    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    s = integers_stream(rt, 8, 8192);
    uva_stream_transfer(
        s, &(struct uva_transfer){.device_type = ARROW_DEVICE_CUDA});
    uva_stream_map_device(
        s, &(struct uva_device_map){.batch = square,
                                    .device_stream = cuda.stream});
    uva_stream_transfer(s, NULL); /* to the host */
    integers_add_up(s, &sum);
    uva_runtime_join(rt, UVA_FOREVER); /* the stream has ended */
    if (sum.code == 0)
        printf("%" PRId64 " batches, %" PRId64
               " rows, the sum of the squares is "
               "%" PRId64 "\n",
               sum.batches, sum.rows, sum.sum);
    return sum.code != 0;
}
