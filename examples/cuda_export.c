/* SPDX-License-Identifier: Apache-2.0 */
/* Exports int32 values from a CUDA device, in the way the Arrow document shows:
 * the array carries an event, recorded after the work that fills it, and frees
 * both when it is released. A stream of such arrays is then copied to the host
 * and delivered on the loop, which never waits for the device. Without a device
 * the program prints an error and exits with 77.
 *
 *     batches: 4, values: 4194304, in all: 8796090925056
 */
#include <assert.h>
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

enum { BATCHES = 4, ROWS = 1 << 20 };

static void must(cudaError_t status)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
    exit(1);
}

/* ---- the producer ------------------------------------------------------- */

/* Memory owned by one array. */
struct exported {
    cudaEvent_t event;      /* recorded after the work */
    const void *buffers[2]; /* no nulls; values on the device */
};

/* Called on any thread, including threads of the library. */
static void export_release(struct ArrowArray *array)
{
    struct exported *exported = array->private_data;

    must(cudaEventDestroy(exported->event));
    must(cudaFree((void *)(uintptr_t)exported->buffers[1]));
    free(exported);
    array->release = NULL;
}

/* Takes `values`, which the work queued on `stream` fills. */
static void export_array(void *values, int64_t length, cudaStream_t stream,
                         struct ArrowDeviceArray *out)
{
    struct exported *exported = calloc(1, sizeof(*exported));
    int device;

    assert(exported != NULL);
    must(cudaGetDevice(&device));
    must(cudaEventCreateWithFlags(&exported->event, cudaEventDisableTiming));
    must(cudaEventRecord(exported->event, stream));
    exported->buffers[1] = values;
    *out = (struct ArrowDeviceArray){
        .array = {.length = length,
                  .n_buffers = 2,
                  .buffers = exported->buffers,
                  .release = export_release,
                  .private_data = exported},
        .device_id = device,
        .device_type = ARROW_DEVICE_CUDA,
        .sync_event = &exported->event, /* a pointer to the event */
    };
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

/* ---- the work ----------------------------------------------------------- */

/* Queues a copy to the device instead of a kernel. */
static void fill(int32_t first, int32_t *host, cudaStream_t stream,
                 struct ArrowDeviceArray *out)
{
    void *values;

    for (int32_t i = 0; i < ROWS; i++)
        host[i] = first + i;
    must(cudaMalloc(&values, ROWS * sizeof(*host)));
    must(cudaMemcpyAsync(values, host, ROWS * sizeof(*host),
                         cudaMemcpyHostToDevice, stream));
    export_array(values, ROWS, stream, out);
}

/* ---- the consumer ------------------------------------------------------- */

struct total {
    int64_t rows, sum;
    int code;
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    const int32_t *values = array->buffers[1]; /* already on the host */
    struct total *total = ctx;

    for (int64_t i = 0; i < array->length; i++)
        total->sum += values[i];
    total->rows += array->length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct total *total = ctx;

    total->code = outcome->error.code;
    if (total->code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    else
        printf("batches: %" PRId64 ", values: %" PRId64 ", in all: %" PRId64
               "\n",
               outcome->batches, total->rows, total->sum);
}

/* Takes the arrays. */
static int start(struct uva_runtime *rt, struct ArrowDeviceArray *arrays,
                 struct total *total)
{
    struct ArrowSchema schema = {
        .format = "i", /* int32 */ .name = "", .release = schema_release};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = total};
    struct uva_stream *s = uva_stream_from_arrays(rt, &schema, arrays, BATCHES);
    struct uva_error error;
    int code = uva_stream_transfer(s, NULL); /* to the host */

    if (code == 0)
        code = uva_stream_for_each(s, &consumer, &error);
    uva_stream_release(s);
    return code;
}

int main(void)
{
    struct ArrowDeviceArray arrays[BATCHES];
    uv_loop_t *loop = uv_default_loop();
    struct total total = {0};
    struct uva_runtime *rt;
    int32_t *host[BATCHES];
    cudaStream_t stream;
    int devices = 0;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "there is no CUDA device\n");
        return 77;
    }
    must(cudaStreamCreate(&stream));
    for (int k = 0; k < BATCHES; k++) {
        must(cudaMallocHost((void **)&host[k], ROWS * sizeof(**host)));
        fill(k * ROWS, host[k], stream, &arrays[k]);
    }
    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        start(rt, arrays, &total) != 0)
        return 1;
    uv_run(loop, UV_RUN_DEFAULT);

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    for (int k = 0; k < BATCHES; k++)
        must(cudaFreeHost(host[k]));
    must(cudaStreamDestroy(stream));
    return uv_loop_close(loop) != 0 || total.code != 0;
}
