/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as a map, on any OpenCL device. Numbers on the host are copied to
 * the device, squared there, and copied back. The whole work is queued on the
 * device at once, batch after batch, and the loop never waits. The library
 * releases the input of a kernel when it has run.
 *
 *     $ cc opencl_kernel.c $(pkg-config --cflags --libs uvarrow libuv OpenCL)
 *     $ ./a.out
 *     8 batches, 65536 rows, the sum of the squares is 93822844764160
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

#define BATCHES    8
#define BATCH_ROWS 8192

static const char *source =
    "kernel void square(global const long *x, global long *y)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "\n"
    "    y[i] = x[i] * x[i];\n"
    "}\n";

/* ---- the device --------------------------------------------------------- */

struct device {
    cl_context context;
    cl_command_queue queue; /* in order: of the kernels */
    cl_program program;
    cl_kernel square;
};

/* Finds the first device of any platform. */
static int device_find(cl_device_id *out)
{
    cl_platform_id platforms[8];
    cl_uint count = 0;

    if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS)
        return ENODEV;
    for (cl_uint i = 0; i < count && i < 8; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, out, NULL) ==
            CL_SUCCESS)
            return 0;
    return ENODEV;
}

static int device_open(struct device *device)
{
    cl_device_id id;
    cl_int code;

    if (device_find(&id) != 0)
        return ENODEV;
    device->context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return EIO;
    device->queue = clCreateCommandQueue(device->context, id, 0, &code);
    if (code != CL_SUCCESS)
        return EIO;
    device->program =
        clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS ||
        clBuildProgram(device->program, 1, &id, "", NULL, NULL) != CL_SUCCESS)
        return EIO;
    device->square = clCreateKernel(device->program, "square", &code);
    return code == CL_SUCCESS ? 0 : EIO;
}

static void device_close(struct device *device)
{
    clReleaseKernel(device->square);
    clReleaseProgram(device->program);
    clReleaseCommandQueue(device->queue);
    clReleaseContext(device->context);
}

/* ---- arrays of int64 ----------------------------------------------------- */

struct numbers {
    const void *buffers[2]; /* no nulls; the values, or a cl_mem */
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

    clReleaseMemObject((cl_mem)numbers->buffers[1]);
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

/* Queues the kernel that fills `to`. */
static int square_queue(struct device *device, const struct ArrowArray *from,
                        cl_mem to, cl_command_queue queue)
{
    const size_t rows = (size_t)from->length;
    cl_mem memory = (cl_mem)(uintptr_t)from->buffers[1];
    cl_int code = clSetKernelArg(device->square, 0, sizeof(memory), &memory);

    code |= clSetKernelArg(device->square, 1, sizeof(to), &to);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(queue, device->square, 1, NULL, &rows,
                                      NULL, 0, NULL, NULL);
    return code == CL_SUCCESS ? 0 : EIO;
}

/* Called on a worker, for one batch after the other. The queue waits for `in`;
 * `out` gets an event after the work that is queued here. */
static int square(void *ctx, struct uva_batch *in, struct ArrowDeviceArray *out,
                  const struct uva_device_queue *queue, struct uva_error *error)
{
    const struct ArrowArray *from = &in->data.array;
    struct device *device = ctx;
    cl_int code;
    cl_mem to =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                       (size_t)from->length * sizeof(int64_t), NULL, &code);

    if (code != CL_SUCCESS)
        return uva_error_set(error, ENOMEM, "no memory on the device");
    if (square_queue(device, from, to, queue->device_stream) == 0 &&
        numbers_make(to, from->length, device_release, &out->array) == 0)
        return 0;
    clReleaseMemObject(to);
    return uva_error_set(error, EIO, "the kernel could not be queued");
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
static int start(struct uva_runtime *rt, struct device *device,
                 struct ArrowDeviceArray *batches, struct total *total)
{
    struct ArrowSchema schema = {
        .format = "l", /* int64 */ .name = "", .release = schema_release};
    const struct uva_device_map map = {
        .batch = square, .ctx = device, .device_stream = device->queue};
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL};
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
    struct uva_opencl_device native = {0};
    struct total total = {.code = -1};
    struct device device;
    struct uva_runtime *rt;

    if (device_open(&device) != 0) {
        fprintf(stderr, "no OpenCL device can be used here\n");
        return 77; /* the exit code of a skipped test */
    }
    native.context = device.context; /* for buffers on the device */
    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        uva_device_attach(rt, ARROW_DEVICE_OPENCL, 0, &native, NULL) != 0 ||
        batches_make(batches) != 0 || start(rt, &device, batches, &total) != 0)
        return 1;
    uv_run(loop, UV_RUN_DEFAULT); /* until the stream has ended */

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    device_close(&device);
    return uv_loop_close(loop) != 0 || total.code != 0;
}
