/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA driver's binary interface that differs from HIP's. */
#ifndef UVA_DEVICE_CUDA_ABI_H
#define UVA_DEVICE_CUDA_ABI_H

#include "device/gpu_abi.h"

#ifndef UVA_GPU_TYPES
typedef int uva__cu_device;
typedef int uva__cu_attribute;
typedef int uva__cu_pointer_attribute;
typedef void *uva__cu_context;
typedef void *uva__cu_green;
typedef unsigned long long uva__cu_pointer; /* on the device */
#endif

enum {
    UVA__CU_MEM_ATTACH_GLOBAL = 1,        /* CU_MEM_ATTACH_GLOBAL */
    UVA__CU_MEMORY_POOLS_SUPPORTED = 115, /* CU_DEVICE_ATTRIBUTE_... */
    UVA__CU_POINTER_CONTEXT = 1           /* CU_POINTER_ATTRIBUTE_CONTEXT */
};

/* The functions by their names, without the versions in the symbols. */
struct uva__cu {
    uva__gpu_code (*cuDriverGetVersion)(int *version);
    uva__gpu_code (*cuDeviceGet)(uva__cu_device *device, int ordinal);
    uva__gpu_code (*cuDevicePrimaryCtxGetState)(uva__cu_device device,
                                                unsigned *flags, int *active);
    uva__gpu_code (*cuDevicePrimaryCtxRetain)(uva__cu_context *context,
                                              uva__cu_device device);
    uva__gpu_code (*cuDevicePrimaryCtxRelease)(uva__cu_device device);
    uva__gpu_code (*cuCtxGetCurrent)(uva__cu_context *context);
    uva__gpu_code (*cuCtxGetDevice)(uva__cu_device *device);
    uva__gpu_code (*cuCtxPushCurrent)(uva__cu_context context);
    uva__gpu_code (*cuCtxPopCurrent)(uva__cu_context *context);
    uva__gpu_code (*cuMemAlloc)(uva__cu_pointer *memory, size_t size);
    uva__gpu_code (*cuMemFree)(uva__cu_pointer memory);
    uva__gpu_code (*cuMemcpyDtoHAsync)(void *target, uva__cu_pointer source,
                                       size_t size, uva__gpu_stream stream);
    uva__gpu_code (*cuMemcpyHtoDAsync)(uva__cu_pointer target,
                                       const void *source, size_t size,
                                       uva__gpu_stream stream);

    /* each may be NULL */
    uva__gpu_code (*cuMemAllocManaged)(uva__cu_pointer *memory, size_t size,
                                       unsigned flags);
    uva__gpu_code (*cuDeviceGetAttribute)(int *value,
                                          uva__cu_attribute attribute,
                                          uva__cu_device device);
    uva__gpu_code (*cuMemAllocAsync)(uva__cu_pointer *memory, size_t size,
                                     uva__gpu_stream stream);
    uva__gpu_code (*cuMemFreeAsync)(uva__cu_pointer memory,
                                    uva__gpu_stream stream);
    uva__gpu_code (*cuDeviceCanAccessPeer)(int *direct, uva__cu_device device,
                                           uva__cu_device peer);
    uva__gpu_code (*cuMemcpyPeerAsync)(uva__cu_pointer target,
                                       uva__cu_context target_context,
                                       uva__cu_pointer source,
                                       uva__cu_context source_context,
                                       size_t size, uva__gpu_stream stream);
    uva__gpu_code (*cuPointerGetAttribute)(void *value,
                                           uva__cu_pointer_attribute attribute,
                                           uva__cu_pointer memory);
    uva__gpu_code (*cuStreamGetCtx)(uva__gpu_stream stream,
                                    uva__cu_context *context);
    /* of a stream in a green context, gives the primary context besides */
    uva__gpu_code (*cuStreamGetCtx_v2)(uva__gpu_stream stream,
                                       uva__cu_context *context,
                                       uva__cu_green *green);
};

#endif
