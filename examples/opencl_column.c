/* SPDX-License-Identifier: Apache-2.0 */
/* A column of OpenCL has a cl_mem where a column of the host has a pointer. */
#include <stdlib.h>

#include "opencl.h"

/* Called on a thread of the library, when the kernels that use it have run. */
static void column_release(struct ArrowArray *column)
{
    clReleaseMemObject((cl_mem)(uintptr_t)column->buffers[1]);
    free(column->private_data);
    column->release = NULL;
}

int opencl_column(struct opencl *cl, int64_t rows, struct ArrowArray *out)
{
    const size_t size = (size_t)rows * sizeof(int64_t);
    const void **buffers = calloc(2, sizeof(*buffers)); /* no nulls */
    cl_int code = CL_OUT_OF_HOST_MEMORY;

    if (buffers != NULL)
        buffers[1] =
            clCreateBuffer(cl->context, CL_MEM_READ_WRITE, size, NULL, &code);
    if (code != CL_SUCCESS) {
        free(buffers);
        return ENOMEM;
    }
    *out = (struct ArrowArray){.length = rows,
                               .n_buffers = 2,
                               .buffers = buffers,
                               .private_data = buffers,
                               .release = column_release};
    return 0;
}
