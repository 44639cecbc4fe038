/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of CUDA by the driver alone, libcuda.so.1, which is looked up at run
 * time as the library does, so that no toolkit is needed. */
#ifndef EXAMPLES_CUDA_DRIVER_H
#define EXAMPLES_CUDA_DRIVER_H

#include "uvarrow/uvarrow.h"

/* The functions; a CUdeviceptr is a uintptr_t here, and handles are pointers */
#define CUDA_FUNCTIONS(X)                                                      \
    X(cuInit, (unsigned flags))                                                \
    X(cuDeviceGet, (int *device, int ordinal))                                 \
    X(cuDevicePrimaryCtxRetain, (void **context, int device))                  \
    X(cuCtxSetCurrent, (void *context))                                        \
    X(cuCtxPushCurrent_v2, (void *context))                                    \
    X(cuCtxPopCurrent_v2, (void **context))                                    \
    X(cuStreamCreate, (void **stream, unsigned flags))                         \
    X(cuModuleLoadData, (void **module, const void *image))                    \
    X(cuModuleGetFunction, (void **function, void *module, const char *name))  \
    X(cuMemAlloc_v2, (uintptr_t * memory, size_t size))                        \
    X(cuMemFree_v2, (uintptr_t memory))                                        \
    X(cuLaunchKernel,                                                          \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,      \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,  \
       void *stream, void **arguments, void **extra))

#define CUDA_MEMBER(name, types) int(*name) types;

/* The driver, and the first device. */
struct cuda {
    CUDA_FUNCTIONS(CUDA_MEMBER)
    void *context; /* the primary context, which the library uses, too */
    void *stream;  /* of the kernels */
    void *kernel;  /* its parameters: two columns, and an unsigned of rows */
};

extern struct cuda cuda;

/* Loads `kernel` of the text `ptx`. Returns 0; ENODEV without a device; EIO. */
int cuda_open(const char *ptx, const char *kernel);

/* Gives a column of `rows` int64 in the memory of the device, whose context is
 * current. Returns 0 or ENOMEM. */
int cuda_column(int64_t rows, struct ArrowArray *out);

/* Queues the kernel on `stream`, for each row of `from`. Returns 0 or EIO. */
int cuda_run(void *stream, const struct ArrowArray *from,
             const struct ArrowArray *to);

#endif
