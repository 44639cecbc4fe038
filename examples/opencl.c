/* SPDX-License-Identifier: Apache-2.0 */
/* The device and its kernel; opencl_column.c makes the columns. */
#include "opencl.h"

#include <stdlib.h>

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

int opencl_open(struct opencl *cl, const char *source, const char *kernel)
{
    cl_device_id id;
    cl_int code;

    *cl = (struct opencl){0};
    if (device_find(&id) != 0)
        return ENODEV;
    cl->context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    if (code == CL_SUCCESS)
        cl->queue = clCreateCommandQueue(cl->context, id, 0, &code);
    if (code == CL_SUCCESS)
        cl->program =
            clCreateProgramWithSource(cl->context, 1, &source, NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(cl->program, 1, &id, "", NULL, NULL);
    if (code == CL_SUCCESS)
        cl->kernel = clCreateKernel(cl->program, kernel, &code);
    if (code != CL_SUCCESS)
        opencl_close(cl);
    return code == CL_SUCCESS ? 0 : EIO;
}

void opencl_close(struct opencl *cl)
{
    if (cl->kernel != NULL)
        clReleaseKernel(cl->kernel);
    if (cl->program != NULL)
        clReleaseProgram(cl->program);
    if (cl->queue != NULL)
        clReleaseCommandQueue(cl->queue);
    if (cl->context != NULL)
        clReleaseContext(cl->context);
}

int opencl_run(struct opencl *cl, cl_command_queue queue, int64_t first,
               int64_t rows, const struct ArrowArray *const *columns,
               cl_uint count)
{
    const size_t from = (size_t)first, size = (size_t)rows;
    cl_int code = CL_SUCCESS;

    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++) {
        const cl_mem memory = (cl_mem)(uintptr_t)columns[i]->buffers[1];
        code = clSetKernelArg(cl->kernel, i, sizeof(memory), &memory);
    }
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(queue, cl->kernel, 1, &from, &size, NULL,
                                      0, NULL, NULL);
    return code == CL_SUCCESS ? 0 : EIO;
}
