/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as a map, on a CUDA device. Numbers on the host are copied to the
 * device, squared there, and copied back. The whole work is queued on the
 * device at once, batch after batch, and the loop never waits. The functions of
 * the driver are looked up at run time, so that no toolkit is needed; a program
 * that links the CUDA runtime launches its kernel on the same stream. Without a
 * device it prints an error and exits with 77.
 *
 *     8 batches, 65536 rows, the sum of the squares is 93822844764160
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

enum { BATCHES = 8, BATCH_ROWS = 8192, BLOCK = 256, NON_BLOCKING = 1 };

/* y[i] = x[i] * x[i], for i < n */
static const char ptx[] =
    ".version 6.4\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry square(.param .u64 x, .param .u64 y, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %i, %n, %block, %size;\n"
    "    .reg .b64 %x, %y, %at, %v;\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mov.u32 %size, %ntid.x;\n"
    "    mov.u32 %i, %tid.x;\n"
    "    mad.lo.u32 %i, %block, %size, %i;\n"
    "    ld.param.u32 %n, [n];\n"
    "    setp.ge.u32 %p, %i, %n;\n"
    "    @%p ret;\n"
    "    ld.param.u64 %x, [x];\n"
    "    ld.param.u64 %y, [y];\n"
    "    cvta.to.global.u64 %x, %x;\n"
    "    cvta.to.global.u64 %y, %y;\n"
    "    mul.wide.u32 %at, %i, 8;\n"
    "    add.u64 %x, %x, %at;\n"
    "    add.u64 %y, %y, %at;\n"
    "    ld.global.u64 %v, [%x];\n"
    "    mul.lo.u64 %v, %v, %v;\n"
    "    st.global.u64 [%y], %v;\n"
    "    ret;\n"
    "}\n";

/* ---- the driver --------------------------------------------------------- */

typedef uintptr_t device_memory; /* a CUdeviceptr */

static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuCtxPushCurrent)(void *context);
    int (*cuCtxPopCurrent)(void **context);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuModuleLoadData)(void **module, const void *image);
    int (*cuModuleGetFunction)(void **function, void *module, const char *name);
    int (*cuMemAlloc)(device_memory *memory, size_t size);
    int (*cuMemFree)(device_memory memory);
    int (*cuLaunchKernel)(void *function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared, void *stream,
                          void **arguments, void **extra);
} cu;

static struct {
    void *context; /* the primary context, which the library uses, too */
    void *stream;  /* of the kernels */
    void *square;  /* the kernel */
} gpu;

static int driver_resolve(void *library)
{
    static const char *const names[] = {
        "cuInit",          "cuDeviceGet",         "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
        "cuStreamCreate",  "cuModuleLoadData",    "cuModuleGetFunction",
        "cuMemAlloc_v2",   "cuMemFree_v2",        "cuLaunchKernel",
    };
    void *found[sizeof(names) / sizeof(names[0])];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        found[i] = dlsym(library, names[i]);
        if (found[i] == NULL)
            return ENOSYS;
    }
    memcpy(&cu, found, sizeof(cu));
    return 0;
}

/* Opens the library that uvarrow opens. */
static int gpu_open(void)
{
    const char *path = getenv("UVA_CUDA_LIBRARY");
    void *library =
        dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *module;
    int device;

    if (library == NULL || driver_resolve(library) != 0 || cu.cuInit(0) != 0 ||
        cu.cuDeviceGet(&device, 0) != 0)
        return ENODEV;
    if (cu.cuDevicePrimaryCtxRetain(&gpu.context, device) != 0 ||
        cu.cuCtxSetCurrent(gpu.context) != 0 ||
        cu.cuStreamCreate(&gpu.stream, NON_BLOCKING) != 0 ||
        cu.cuModuleLoadData(&module, ptx) != 0 ||
        cu.cuModuleGetFunction(&gpu.square, module, "square") != 0)
        return EIO;
    return 0;
}

/* ---- arrays of int64 ----------------------------------------------------- */

struct numbers {
    const void *buffers[2]; /* no nulls; the values, on the host or device */
};

static void host_release(struct ArrowArray *array)
{
    struct numbers *numbers = array->private_data;

    free((void *)(uintptr_t)numbers->buffers[1]);
    free(numbers);
    array->release = NULL;
}

/* Called on a thread of the library, when the kernel that fills it has run. */
static void device_release(struct ArrowArray *array)
{
    struct numbers *numbers = array->private_data;
    void *context;

    if (cu.cuCtxPushCurrent(gpu.context) == 0) {
        (void)cu.cuMemFree((device_memory)numbers->buffers[1]);
        (void)cu.cuCtxPopCurrent(&context);
    }
    free(numbers);
    array->release = NULL;
}

/* Takes the memory if it succeeds. */
static int numbers_make(const void *memory, int64_t length,
                        void (*release)(struct ArrowArray *array),
                        struct ArrowArray *out)
{
    struct numbers *numbers = calloc(1, sizeof(*numbers));

    if (numbers == NULL)
        return ENOMEM;
    numbers->buffers[1] = memory;
    *out = (struct ArrowArray){.length = length,
                               .n_buffers = 2,
                               .buffers = numbers->buffers,
                               .release = release,
                               .private_data = numbers};
    return 0;
}

/* ---- the kernel --------------------------------------------------------- */

/* Called on a worker, for one batch after the other. The stream waits for `in`,
 * and its context is current; `out` gets an event after the work that is queued
 * here. */
static int square(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                  const struct uva_device_queue *queue, struct uva_error *error)
{
    const struct ArrowArray *from = &in->data.array;
    device_memory x = (device_memory)from->buffers[1], y;
    unsigned rows = (unsigned)from->length;
    void *arguments[] = {&x, &y, &rows};

    (void)ctx;
    if (cu.cuMemAlloc(&y, rows * sizeof(int64_t)) != 0)
        return uva_error_set(error, ENOMEM, "no memory on the device");
    if (numbers_make((const void *)y, rows, device_release, &out->array) != 0) {
        (void)cu.cuMemFree(y);
        return uva_error_set(error, ENOMEM, "no memory for an array");
    }
    if (cu.cuLaunchKernel(gpu.square, (rows + BLOCK - 1) / BLOCK, 1, 1, BLOCK,
                          1, 1, 0, queue->device_stream, arguments, NULL) == 0)
        return 0;
    uva_array_release(out);
    return uva_error_set(error, EIO, "the kernel could not be launched");
}

/* ---- the consumer ------------------------------------------------------- */

struct total {
    int64_t rows, sum;
    int code; /* code of the outcome */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t *values = batch->data.array.buffers[1]; /* on the host */
    struct total *total = ctx;

    for (int64_t i = 0; i < batch->data.array.length; i++)
        total->sum += values[i];
    total->rows += batch->data.array.length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct total *total = ctx;

    total->code = outcome->error.code;
    if (total->code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    else
        printf("%" PRId64 " batches, %" PRId64 " rows, the sum of the squares "
               "is %" PRId64 "\n",
               outcome->batches, total->rows, total->sum);
}

/* ---- the program -------------------------------------------------------- */

/* Makes the numbers from 0 on, in batches on the host. */
static int batches_make(struct ArrowDeviceArray *out)
{
    int64_t *values;

    for (int64_t k = 0; k < BATCHES; k++) {
        values = malloc(BATCH_ROWS * sizeof(*values));
        if (values == NULL ||
            numbers_make(values, BATCH_ROWS, host_release, &out[k].array) != 0)
            return ENOMEM;
        for (int64_t i = 0; i < BATCH_ROWS; i++)
            values[i] = k * BATCH_ROWS + i;
        out[k].device_type = ARROW_DEVICE_CPU;
        out[k].device_id = -1;
    }
    return 0;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

/* Takes the batches. */
static int start(struct uva_runtime *rt, struct ArrowDeviceArray *batches,
                 struct total *total)
{
    struct ArrowSchema schema = {
        .format = "l", /* int64 */ .name = "", .release = schema_release};
    const struct uva_device_map map = {.batch = square,
                                       .device_stream = gpu.stream};
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_CUDA};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = total};
    struct uva_stream *s =
        uva_stream_from_arrays(rt, &schema, batches, BATCHES);
    struct uva_error error;
    int code;

    uva_stream_transfer(s, &there);
    uva_stream_map_device(s, &map);
    uva_stream_transfer(s, NULL);                     /* to the host */
    code = uva_stream_for_each(s, &consumer, &error); /* the one check */
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    return code;
}

int main(void)
{
    struct ArrowDeviceArray batches[BATCHES] = {0};
    uv_loop_t *loop = uv_default_loop();
    struct total total = {.code = -1};
    struct uva_runtime *rt;
    const int code = gpu_open();

    if (code != 0) {
        fprintf(stderr, "no CUDA device can be used here\n");
        return code == ENODEV ? 77 : 1; /* 77: a skipped test */
    }
    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        batches_make(batches) != 0 || start(rt, batches, &total) != 0)
        return 1;
    uv_run(loop, UV_RUN_DEFAULT); /* until the stream has ended */

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || total.code != 0;
}
