/* SPDX-License-Identifier: Apache-2.0 */
/* Columns filled by a CUDA program: exported with an event, copied to the host
 * after it, and delivered on the loop once they have arrived. */
#include <assert.h>
#include <stdio.h>
#include <uv.h>

#include "support/gpu_program.h"
#include "support/world.h"
#include "uvarrow/uvarrow.h"

static int64_t rows; /* each is checked to be the next number */
static int answers;

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t *values = column_values(&batch->data.array);

    (void)ctx;
    for (int64_t i = 0; i < batch->data.array.length; i++)
        assert(values[i] == rows++); /* host memory, complete */
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    const struct uva_error *e = &outcome->error;

    (void)ctx;
    if (e->vendor != NULL)
        fprintf(stderr, "%s (%s error %d)\n", e->message, e->vendor,
                e->vendor_code);
    else if (e->code != 0)
        fprintf(stderr, "%s\n", e->message);
    assert(outcome->end == UVA_END_COMPLETE);
}

/* One array without a stream: a callback when its data is complete. */
static void one_ready(void *ctx, struct ArrowDeviceArray *array,
                      const struct uva_error *error)
{
    (void)ctx;
    assert(error->code == 0);
    answers++;
    uva_array_release(array);
}

int main(void)
{
    static struct ArrowDeviceArray one;
    uv_loop_t *loop = uv_default_loop();
    struct ArrowDeviceArrayStream scan;
    struct uva_device_info cuda;
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;

    if (gpu_stream() == NULL) {
        fprintf(stderr, "no GPU\n");
        return 77;
    }
    assert(uva_runtime_open(loop, NULL, &rt, NULL) == 0);
    assert(uva_device_get_info(rt, ARROW_DEVICE_CUDA, &cuda) == 0);
    assert(cuda.available && cuda.can_copy);
    assert(gpu_scan(&scan) == 0 && scan.get_next(&scan, &one) == 0);
    rows = GPU_ROWS; /* the first batch is waited for alone */
    assert(uva_array_wait(rt, &one, UVA_FOREVER, one_ready, NULL) == 0);

    s = uva_stream_from_device_stream(rt, &scan, NULL);
    assert(uva_stream_transfer(s, NULL) == 0); /* copies to the host */
    assert(uva_stream_for_each(
               s,
               &(struct uva_consumer){.on_batch = on_batch, .on_done = on_done},
               &error) == 0);
    uva_stream_release(s);
    uv_run(loop, UV_RUN_DEFAULT);
    assert(answers == 1 && rows == (int64_t)GPU_BATCHES * GPU_ROWS);

    assert(uva_runtime_close(rt, 0, NULL, NULL) == 0);
    uv_run(loop, UV_RUN_DEFAULT);
    world_await_release();
    gpu_close();
    return uv_loop_close(loop);
}
