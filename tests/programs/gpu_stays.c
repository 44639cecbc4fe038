/* SPDX-License-Identifier: Apache-2.0 */
/* Data stays on the GPU: our CUDA stream waits for each event, our work is
 * queued after it, and the array is released when that work is done. */
#include <assert.h>
#include <stdio.h>
#include <uv.h>

#include "support/gpu_program.h"
#include "support/world.h"
#include "uvarrow/uvarrow.h"

struct job {
    struct uva_runtime *rt;
    cuda_stream stream;
    double total;
    bool complete;
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct job *job = ctx;
    int code = gpu_sum_async(job->stream, &batch->data, &job->total);

    if (code == 0) /* takes the array: it stays until the work is done */
        uva_array_release_after(job->rt, &batch->data, job->stream);
    return code;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    ((struct job *)ctx)->complete = outcome->end == UVA_END_COMPLETE;
}

int main(void)
{
    const double rows = (double)GPU_BATCHES * GPU_ROWS;
    static struct job job;
    uv_loop_t *loop = uv_default_loop();
    struct ArrowDeviceArrayStream scan;
    struct uva_stream *s;
    struct uva_error error;

    job.stream = gpu_stream();
    if (job.stream == NULL) {
        fprintf(stderr, "no GPU\n");
        return 77;
    }
    assert(uva_runtime_open(loop, NULL, &job.rt, NULL) == 0);
    assert(gpu_scan(&scan) == 0);
    s = uva_stream_from_device_stream(job.rt, &scan, NULL);
    assert(uva_stream_ready(
               s, &(struct uva_ready){.wait = UVA_WAIT_STREAM,
                                      .device_stream = job.stream}) == 0);
    assert(uva_stream_for_each(s,
                               &(struct uva_consumer){.on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &job},
                               &error) == 0);
    uva_stream_release(s);
    uv_run(loop, UV_RUN_DEFAULT);
    assert(job.complete);

    assert(uva_runtime_close(job.rt, 0, NULL, NULL) == 0);
    uv_run(loop, UV_RUN_DEFAULT);
    world_await_release();
    gpu_close(); /* all arrays have been released, all work is done */
    assert(job.total == rows * (rows - 1) / 2);
    return uv_loop_close(loop);
}
