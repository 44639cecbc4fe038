/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions are looked up by name. A column consists of memory on
 * the device, the host memory it is copied from, and an event. */
#include "support/gpu_program.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/world.h"

enum { STREAMS = 8 };

typedef uintptr_t device_memory; /* a CUdeviceptr */

static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease_v2)(int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuStreamCreate)(cuda_stream *stream, unsigned flags);
    int (*cuStreamDestroy_v2)(cuda_stream stream);
    int (*cuStreamSynchronize)(cuda_stream stream);
    int (*cuEventCreate)(void **event, unsigned flags);
    int (*cuEventRecord)(void *event, cuda_stream stream);
    int (*cuEventDestroy_v2)(void *event);
    int (*cuMemAlloc_v2)(device_memory *memory, size_t size);
    int (*cuMemFree_v2)(device_memory memory);
    int (*cuMemcpyHtoDAsync_v2)(device_memory target, const void *source,
                                size_t size, cuda_stream stream);
    int (*cuMemcpyDtoHAsync_v2)(void *target, device_memory source, size_t size,
                                cuda_stream stream);
    int (*cuLaunchHostFunc)(cuda_stream stream, void (*fn)(void *data),
                            void *data);
} cu;

static struct {
    void *context; /* NULL: no GPU */
    cuda_stream streams[STREAMS];
    int count; /* number of streams */
    struct sum *sums;
    atomic_int live; /* live batches and scans */
} gpu;

/* ---- the driver --------------------------------------------------------- */

static void driver_resolve(void *library)
{
    static const char *const names[] = {"cuInit",
                                        "cuDeviceGet",
                                        "cuDevicePrimaryCtxRetain",
                                        "cuDevicePrimaryCtxRelease_v2",
                                        "cuCtxSetCurrent",
                                        "cuStreamCreate",
                                        "cuStreamDestroy_v2",
                                        "cuStreamSynchronize",
                                        "cuEventCreate",
                                        "cuEventRecord",
                                        "cuEventDestroy_v2",
                                        "cuMemAlloc_v2",
                                        "cuMemFree_v2",
                                        "cuMemcpyHtoDAsync_v2",
                                        "cuMemcpyDtoHAsync_v2",
                                        "cuLaunchHostFunc"};
    void *found[sizeof(names) / sizeof(names[0])];

    static_assert(sizeof(found) == sizeof(cu), "one name each");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        found[i] = dlsym(library, names[i]);
        assert(found[i] != NULL);
    }
    memcpy(&cu, found, sizeof(cu));
}

static bool driver_open(void)
{
    const char *path = getenv("UVA_CUDA_LIBRARY");
    const bool usual = path == NULL || path[0] == '\0';
    void *library =
        dlopen(usual ? "libcuda.so.1" : path, RTLD_NOW | RTLD_LOCAL);
    int device;

    if (library == NULL)
        return false;
    driver_resolve(library);
    return cu.cuInit(0) == 0 && cu.cuDeviceGet(&device, 0) == 0 &&
           cu.cuDevicePrimaryCtxRetain(&gpu.context, device) == 0;
}

static void must(int code)
{
    assert(code == 0);
    (void)code;
}

cuda_stream gpu_stream(void)
{
    cuda_stream stream;

    if (gpu.context == NULL && !driver_open())
        return NULL;
    assert(gpu.count < STREAMS);
    must(cu.cuCtxSetCurrent(gpu.context));
    must(cu.cuStreamCreate(&stream, 1));
    return gpu.streams[gpu.count++] = stream;
}

/* ---- batches ------------------------------------------------------------ */

struct gpu_column {
    struct ArrowArray child;
    struct ArrowArray *children[1];
    const void *struct_buffers[1];
    const void *buffers[2]; /* no validity, then the memory on the device */
    device_memory memory;   /* the second buffer */
    void *event;
    int64_t values[GPU_ROWS]; /* the host memory it is copied from */
};

static void child_release(struct ArrowArray *array)
{
    array->release = NULL;
}

/* Thread: any. */
static void column_release(struct ArrowArray *array)
{
    struct gpu_column *column = array->private_data;

    must(cu.cuCtxSetCurrent(gpu.context));
    must(cu.cuEventDestroy_v2(column->event));
    must(cu.cuMemFree_v2(column->memory));
    free(column);
    array->release = NULL;
    atomic_fetch_sub(&gpu.live, 1);
}

/* Queues the copy that fills the column, and an event after it. */
static void column_fill(struct gpu_column *column, cuda_stream stream,
                        int64_t first)
{
    for (int64_t i = 0; i < GPU_ROWS; i++)
        column->values[i] = first + i;
    must(cu.cuMemAlloc_v2(&column->memory, sizeof(column->values)));
    must(cu.cuMemcpyHtoDAsync_v2(column->memory, column->values,
                                 sizeof(column->values), stream));
    must(cu.cuEventCreate(&column->event, 2)); /* without time stamps */
    must(cu.cuEventRecord(column->event, stream));
}

static void column_give(struct gpu_column *column, struct ArrowDeviceArray *out)
{
    column->children[0] = &column->child;
    column->buffers[1] = (const void *)column->memory;
    column->child = (struct ArrowArray){.length = GPU_ROWS,
                                        .n_buffers = 2,
                                        .buffers = column->buffers,
                                        .release = child_release};
    out->array = (struct ArrowArray){.length = GPU_ROWS,
                                     .n_buffers = 1,
                                     .n_children = 1,
                                     .buffers = column->struct_buffers,
                                     .children = column->children,
                                     .release = column_release,
                                     .private_data = column};
    out->device_type = ARROW_DEVICE_CUDA;
    out->sync_event = &column->event;
    atomic_fetch_add(&gpu.live, 1);
}

/* ---- scans -------------------------------------------------------------- */

struct scan {
    cuda_stream stream;
    int next; /* batch */
};

static int scan_get_schema(struct ArrowDeviceArrayStream *self,
                           struct ArrowSchema *out)
{
    (void)self;
    return column_schema(out);
}

/* Thread: any. */
static int scan_get_next(struct ArrowDeviceArrayStream *self,
                         struct ArrowDeviceArray *out)
{
    struct scan *scan = self->private_data;
    struct gpu_column *column;

    memset(out, 0, sizeof(*out));
    if (scan->next == GPU_BATCHES)
        return 0;
    column = calloc(1, sizeof(*column));
    if (column == NULL)
        return ENOMEM;
    must(cu.cuCtxSetCurrent(gpu.context));
    column_fill(column, scan->stream, (int64_t)GPU_ROWS * scan->next++);
    column_give(column, out);
    return 0;
}

static const char *scan_get_last_error(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return NULL;
}

static void scan_release(struct ArrowDeviceArrayStream *self)
{
    free(self->private_data);
    self->release = NULL;
    atomic_fetch_sub(&gpu.live, 1);
}

int gpu_scan(struct ArrowDeviceArrayStream *out)
{
    struct scan *scan = calloc(1, sizeof(*scan));

    if (scan == NULL)
        return ENOMEM;
    scan->stream = gpu_stream();
    *out =
        (struct ArrowDeviceArrayStream){.device_type = ARROW_DEVICE_CUDA,
                                        .get_schema = scan_get_schema,
                                        .get_next = scan_get_next,
                                        .get_last_error = scan_get_last_error,
                                        .release = scan_release,
                                        .private_data = scan};
    atomic_fetch_add(&gpu.live, 1);
    return 0;
}

/* ---- sums --------------------------------------------------------------- */

/* Freed when the program ends. */
struct sum {
    struct sum *before; /* owns */
    double *total;      /* borrows */
    int64_t values[GPU_ROWS];
};

/* Runs on the driver's thread, in the order of the stream. */
static void sum_add(void *data)
{
    struct sum *sum = data;

    for (int64_t i = 0; i < GPU_ROWS; i++)
        *sum->total += (double)sum->values[i];
}

int gpu_sum_async(cuda_stream stream, const struct ArrowDeviceArray *batch,
                  double *total)
{
    struct sum *sum = calloc(1, sizeof(*sum));

    if (sum == NULL)
        return ENOMEM;
    sum->total = total;
    sum->before = gpu.sums;
    gpu.sums = sum;
    must(cu.cuCtxSetCurrent(gpu.context));
    must(cu.cuMemcpyDtoHAsync_v2(
        sum->values, (device_memory)batch->array.children[0]->buffers[1],
        sizeof(sum->values), stream));
    must(cu.cuLaunchHostFunc(stream, sum_add, sum));
    return 0;
}

void gpu_close(void)
{
    struct sum *before;

    while (atomic_load(&gpu.live) != 0)
        (void)sched_yield();
    must(cu.cuCtxSetCurrent(gpu.context));
    while (gpu.count > 0) {
        must(cu.cuStreamSynchronize(gpu.streams[--gpu.count]));
        must(cu.cuStreamDestroy_v2(gpu.streams[gpu.count]));
    }
    for (; gpu.sums != NULL; gpu.sums = before) {
        before = gpu.sums->before;
        free(gpu.sums);
    }
    must(cu.cuDevicePrimaryCtxRelease_v2(0));
}
