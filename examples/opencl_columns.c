/* SPDX-License-Identifier: Apache-2.0 */
/* Columns filled by a kernel, on any OpenCL device. Each batch is passed on
 * with an event before its kernel has started. One stream waits for the events,
 * and its batches are delivered complete, still on the device. The other stream
 * copies them after the events, and they are delivered on the host. The loop
 * never waits.
 *
 *     $ cc opencl_columns.c $(pkg-config --cflags --libs uvarrow libuv OpenCL)
 *     $ ./a.out
 *     ready: 4 batches, 262144 rows, complete on the device
 *     transfer: 4 batches, 262144 rows, on the host
 *     the sums of the columns are 34359607296 and 103078821888
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

#define BATCHES      4
#define BATCH_ROWS   65536
#define COLUMN_BYTES (BATCH_ROWS * sizeof(int64_t))

static const char *source =
    "kernel void fill(global long *row,\n"
    "                 global long *triple, long first)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "\n"
    "    row[i] = first + (long)i;\n"
    "    triple[i] = 3 * row[i];\n"
    "}\n";

/* ---- the device --------------------------------------------------------- */

struct device {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel fill;
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
    device->fill = clCreateKernel(device->program, "fill", &code);
    return code == CL_SUCCESS ? 0 : EIO;
}

static void device_close(struct device *device)
{
    clReleaseKernel(device->fill);
    clReleaseProgram(device->program);
    clReleaseCommandQueue(device->queue);
    clReleaseContext(device->context);
}

/* ---- batches: two columns, each in a buffer of the device --------------- */

struct column {
    const void *buffers[2]; /* no nulls; a cl_mem */
};

struct batch {
    const void *buffers[1]; /* no nulls */
    struct ArrowArray columns[2];
    struct ArrowArray *children[2]; /* points to the columns */
};

static void column_release(struct ArrowArray *array)
{
    struct column *column = array->private_data;

    clReleaseMemObject((cl_mem)column->buffers[1]);
    free(column);
    array->release = NULL;
}

static int column_make(struct device *device, struct ArrowArray *out)
{
    struct column *column = calloc(1, sizeof(*column));
    cl_int code;

    if (column == NULL)
        return ENOMEM;
    column->buffers[1] = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                        COLUMN_BYTES, NULL, &code);
    if (code != CL_SUCCESS) {
        free(column);
        return ENOMEM;
    }
    *out = (struct ArrowArray){.length = BATCH_ROWS,
                               .n_buffers = 2,
                               .buffers = column->buffers,
                               .release = column_release,
                               .private_data = column};
    return 0;
}

static void batch_release(struct ArrowArray *array)
{
    struct batch *batch = array->private_data;

    for (int i = 0; i < 2; i++)
        if (batch->columns[i].release != NULL)
            batch->columns[i].release(&batch->columns[i]);
    free(batch);
    array->release = NULL;
}

static int batch_make(struct device *device, struct ArrowDeviceArray *out)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    int code = 0;

    if (batch == NULL)
        return ENOMEM;
    *out = (struct ArrowDeviceArray){
        .array = {.length = BATCH_ROWS,
                  .n_buffers = 1,
                  .buffers = batch->buffers,
                  .n_children = 2,
                  .children = batch->children,
                  .release = batch_release,
                  .private_data = batch},
        .device_type = ARROW_DEVICE_OPENCL,
    };
    for (int i = 0; i < 2 && code == 0; i++) {
        batch->children[i] = &batch->columns[i];
        code = column_make(device, &batch->columns[i]);
    }
    if (code != 0)
        uva_array_release(out);
    return code;
}

/* Queues the kernel that fills the batch. */
static int batch_fill(struct device *device, struct ArrowDeviceArray *batch,
                      cl_long first)
{
    const size_t rows = BATCH_ROWS;
    cl_int code = CL_SUCCESS;
    cl_mem memory;

    for (cl_uint i = 0; i < 2; i++) {
        memory = (cl_mem)batch->array.children[i]->buffers[1];
        code |= clSetKernelArg(device->fill, i, sizeof(memory), &memory);
    }
    code |= clSetKernelArg(device->fill, 2, sizeof(first), &first);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(device->queue, device->fill, 1, NULL,
                                      &rows, NULL, 0, NULL, NULL);
    return code == CL_SUCCESS ? 0 : EIO;
}

/* Makes batches and queues their kernels, each followed by an event. */
static int batches_make(struct uva_runtime *rt, struct device *device,
                        struct ArrowDeviceArray *out)
{
    struct uva_error error;
    int code = 0;

    for (int k = 0; k < BATCHES && code == 0; k++) {
        code = batch_make(device, &out[k]);
        if (code == 0)
            code = batch_fill(device, &out[k], (cl_long)k * BATCH_ROWS);
        if (code == 0)
            code = uva_array_record(rt, &out[k], device->queue, &error);
    }
    for (int k = 0; k < BATCHES && code != 0; k++)
        uva_array_release(&out[k]);
    return code;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL; /* no memory to free */
}

static struct ArrowSchema schema_of_batches(void)
{
    static struct ArrowSchema columns[2];
    static struct ArrowSchema *children[2] = {&columns[0], &columns[1]};

    columns[0] = (struct ArrowSchema){
        .format = "l", .name = "row", .release = schema_release};
    columns[1] = (struct ArrowSchema){
        .format = "l", .name = "triple", .release = schema_release};
    return (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 2,
                                .children = children,
                                .release = schema_release};
}

/* ---- the consumer ------------------------------------------------------- */

struct total {
    const char *stage;
    int64_t rows, sums[2];
    int code; /* code of the outcome */
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowDeviceArray *data = &batch->data;
    struct total *total = ctx;
    const int64_t *values;

    total->rows += data->array.length;
    if (data->device_type != ARROW_DEVICE_CPU)
        return 0; /* complete, but not readable by the host */
    for (int c = 0; c < 2; c++) {
        values = data->array.children[c]->buffers[1];
        for (int64_t i = 0; i < data->array.length; i++)
            total->sums[c] += values[i];
    }
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct total *total = ctx;

    total->code = outcome->error.code;
    if (total->code != 0) {
        fprintf(stderr, "%s\n", outcome->error.message);
        return;
    }
    printf("%s: %" PRId64 " batches, %" PRId64 " rows, %s\n", total->stage,
           outcome->batches, total->rows,
           total->sums[0] != 0 ? "on the host" : "complete on the device");
    if (total->sums[0] != 0)
        printf("the sums of the columns are %" PRId64 " and %" PRId64 "\n",
               total->sums[0], total->sums[1]);
}

/* ---- the program -------------------------------------------------------- */

static int run(uv_loop_t *loop, struct uva_runtime *rt, struct device *device,
               bool to_host)
{
    struct total total = {.stage = to_host ? "transfer" : "ready"};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = &total};
    struct ArrowDeviceArray batches[BATCHES] = {0};
    struct ArrowSchema schema = schema_of_batches();
    struct uva_error error;
    struct uva_stream *s;
    int code = batches_make(rt, device, batches);

    if (code != 0)
        return code;
    s = uva_stream_from_arrays(rt, &schema, batches, BATCHES);
    (void)(to_host ? uva_stream_transfer(s, NULL) : uva_stream_ready(s, NULL));
    code = uva_stream_for_each(s, &consumer, &error); /* the one check */
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
    uv_run(loop, UV_RUN_DEFAULT); /* until the stream has ended */
    return code != 0 ? code : total.code;
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct device device;
    struct uva_runtime *rt;
    int code = device_open(&device);

    if (code != 0) {
        fprintf(stderr, "no OpenCL device can be used here\n");
        return 77; /* the exit code of a skipped test */
    }
    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    code = run(loop, rt, &device, false);
    if (code == 0)
        code = run(loop, rt, &device, true);
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    device_close(&device);
    return uv_loop_close(loop) != 0 || code != 0;
}
