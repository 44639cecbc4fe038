/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel on any OpenCL device, and columns in its memory. */
#ifndef EXAMPLES_OPENCL_H
#define EXAMPLES_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "uvarrow/uvarrow.h"

/* A device, and its kernel. */
struct opencl {
    cl_context context;
    cl_command_queue queue; /* in order: of the kernels */
    cl_program program;
    cl_kernel kernel;
};

/* Opens the first device of any platform, and builds `kernel` of `source`.
 * Returns 0; ENODEV without a device; EIO. */
int opencl_open(struct opencl *cl, const char *source, const char *kernel);

void opencl_close(struct opencl *cl);

/* Gives a column of `rows` int64 in the memory of the device. Returns 0 or
 * ENOMEM. */
int opencl_column(struct opencl *cl, int64_t rows, struct ArrowArray *out);

/* Queues the kernel for `rows` work items from number `first` on; its arguments
 * are the memory of `columns`. Returns 0 or EIO. */
int opencl_run(struct opencl *cl, cl_command_queue queue, int64_t first,
               int64_t rows, const struct ArrowArray *const *columns,
               cl_uint count);

#endif
