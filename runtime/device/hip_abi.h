/* SPDX-License-Identifier: Apache-2.0 */
/* The part of HIP's binary interface that differs from CUDA's driver. */
#ifndef UVA_DEVICE_HIP_ABI_H
#define UVA_DEVICE_HIP_ABI_H

#include "device/gpu_abi.h"

#ifndef UVA_GPU_TYPES
typedef int uva__hip_copy_kind;
#endif

enum {
    UVA__HIP_HOST_TO_DEVICE = 1, /* hipMemcpyHostToDevice */
    UVA__HIP_DEVICE_TO_HOST = 2  /* hipMemcpyDeviceToHost */
};

/* The functions by their names. */
struct uva__hip {
    uva__gpu_code (*hipGetDevice)(int *device);
    uva__gpu_code (*hipSetDevice)(int device);
    uva__gpu_code (*hipGetLastError)(void);
    uva__gpu_code (*hipMalloc)(void **memory, size_t size);
    uva__gpu_code (*hipFree)(void *memory);
    uva__gpu_code (*hipMemcpyAsync)(void *target, const void *source,
                                    size_t size, uva__hip_copy_kind kind,
                                    uva__gpu_stream stream);

    /* each may be NULL */
    uva__gpu_code (*hipDeviceCanAccessPeer)(int *direct, int device, int peer);
    uva__gpu_code (*hipMemcpyPeerAsync)(void *target, int target_device,
                                        const void *source, int source_device,
                                        size_t size, uva__gpu_stream stream);
};

#endif
