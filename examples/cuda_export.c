/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a column from a CUDA device, with an event after the work that fills
 * it: copied to the host and delivered on the loop, which never waits.
 *
 *     values: 1048576, in all: 549755289600
 */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "integers.h"

enum { ROWS = 1 << 20 };
static int64_t host[ROWS]; /* the values */

struct exported {
    cudaEvent_t event;      /* recorded after the work */
    const void *buffers[2]; /* no nulls; values on the device */
};

static void export_release(struct ArrowArray *array)
{
    struct exported *exported = array->private_data; /* on any thread */

    (void)cudaEventDestroy(exported->event);
    (void)cudaFree((void *)(uintptr_t)exported->buffers[1]);
    free(exported);
    array->release = NULL;
}

/* Queues a copy; a program has a kernel here. After a failure it ends. */
static int export_column(cudaStream_t stream, struct ArrowDeviceArray *out)
{
    struct exported *exported = calloc(1, sizeof(*exported));
    void *values;

    if (exported == NULL || cudaMalloc(&values, sizeof(host)) ||
        cudaMemcpyAsync(values, host, sizeof(host), cudaMemcpyDefault,
                        stream) ||
        cudaEventCreateWithFlags(&exported->event, cudaEventDisableTiming) ||
        cudaEventRecord(exported->event, stream))
        return EIO;
    exported->buffers[1] = values;
    *out = (struct ArrowDeviceArray){0};
    out->array = (struct ArrowArray){.length = ROWS,
                                     .n_buffers = 2,
                                     .buffers = exported->buffers,
                                     .private_data = exported,
                                     .release = export_release};
    out->device_type = ARROW_DEVICE_CUDA;
    out->sync_event = &exported->event; /* a pointer to the event */
    return 0;
}

int main(void)
{
    struct ArrowDeviceArray column;
    struct ArrowSchema schema;
    struct integers_sum sum;
    struct uva_runtime *rt;
    struct uva_stream *s;
    cudaStream_t stream;

    if (cudaStreamCreate(&stream) != cudaSuccess) /* of device 0 */
        return fprintf(stderr, "no CUDA device can be used here\n"), 77;
    for (int64_t i = 0; i < ROWS; i++)
        host[i] = i;
    if (export_column(stream, &column) != 0 ||
        uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return fprintf(stderr, "the column cannot be exported\n"), 1;
    (void)integers_schema(NULL, &schema, NULL);
    s = uva_stream_from_arrays(rt, &schema, &column, 1);
    uva_stream_transfer(s, NULL); /* to the host */
    integers_add_up(s, &sum);
    uva_runtime_join(rt, UVA_FOREVER); /* the stream has ended */
    if (sum.code == 0)
        printf("values: %" PRId64 ", in all: %" PRId64 "\n", sum.rows, sum.sum);
    return sum.code != 0;
}
