/* SPDX-License-Identifier: Apache-2.0 */
/* Checks our declarations of CUDA's binary interface against cuda.h: the
 * functions must have the types that we call them with, and handles the same
 * size. Our types are CUDA's own here. */
#include <cuda.h>

#define UVA_GPU_TYPES
typedef CUresult uva__gpu_code;
typedef CUevent uva__gpu_event;
typedef CUstream uva__gpu_stream;
typedef CUstreamCaptureMode uva__gpu_capture_mode;
typedef CUdevice uva__cu_device;
typedef CUdevice_attribute uva__cu_attribute;
typedef CUpointer_attribute uva__cu_pointer_attribute;
typedef CUcontext uva__cu_context;
#if CUDA_VERSION >= 12050
typedef CUgreenCtx uva__cu_green;
#else
typedef void *uva__cu_green;
#endif
typedef CUdeviceptr uva__cu_pointer;

#include "device/cuda_abi.h"

#define SAME(ours, theirs)                                                     \
    _Static_assert((int)(ours) == (int)(theirs), #ours " differs")
#define AS_LARGE(ours, theirs)                                                 \
    _Static_assert(sizeof(ours) == sizeof(theirs), #theirs " differs")

SAME(UVA__GPU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(UVA__GPU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(UVA__GPU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(UVA__GPU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(UVA__GPU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(UVA__GPU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(UVA__GPU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(UVA__GPU_CONTEXT_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(UVA__GPU_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(UVA__GPU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(UVA__GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(UVA__GPU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(UVA__GPU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(UVA__CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_GLOBAL);
SAME(UVA__CU_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(UVA__CU_MEMORY_POOLS_SUPPORTED,
     CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);

AS_LARGE(int, CUresult);
AS_LARGE(int, CUstreamCaptureMode);
AS_LARGE(int, CUdevice);
AS_LARGE(int, CUdevice_attribute);
AS_LARGE(int, CUpointer_attribute);
AS_LARGE(void *, CUevent);
AS_LARGE(void *, CUstream);
AS_LARGE(void *, CUcontext);
AS_LARGE(unsigned long long, CUdeviceptr);

/* Headers may select a later version of functions not listed here than ours. */
extern const struct uva__gpu_calls cuda_calls;
const struct uva__gpu_calls cuda_calls = {
    .event_create = cuEventCreate,
    .event_destroy = cuEventDestroy,
    .event_record = cuEventRecord,
    .event_query = cuEventQuery,
    .stream_create = cuStreamCreate,
    .stream_destroy = cuStreamDestroy,
    .stream_wait = cuStreamWaitEvent,
    .stream_synchronize = cuStreamSynchronize,
    .host_alloc = cuMemHostAlloc,
    .host_free = cuMemFreeHost,
    .stream_callback = cuStreamAddCallback,
    .stream_host = cuLaunchHostFunc,
    .capture_exchange = cuThreadExchangeStreamCaptureMode,
};

extern const struct uva__cu cuda_own;
const struct uva__cu cuda_own = {
    .cuDriverGetVersion = cuDriverGetVersion,
    .cuDeviceGet = cuDeviceGet,
    .cuDevicePrimaryCtxGetState = cuDevicePrimaryCtxGetState,
    .cuDevicePrimaryCtxRetain = cuDevicePrimaryCtxRetain,
    .cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxRelease,
    .cuCtxGetCurrent = cuCtxGetCurrent,
    .cuCtxGetDevice = cuCtxGetDevice,
    .cuCtxPushCurrent = cuCtxPushCurrent,
    .cuCtxPopCurrent = cuCtxPopCurrent,
    .cuMemAlloc = cuMemAlloc,
    .cuMemFree = cuMemFree,
    .cuMemcpyDtoHAsync = cuMemcpyDtoHAsync,
    .cuMemcpyHtoDAsync = cuMemcpyHtoDAsync,
    .cuMemAllocManaged = cuMemAllocManaged,
    .cuDeviceGetAttribute = cuDeviceGetAttribute,
    .cuMemAllocAsync = cuMemAllocAsync,
    .cuMemFreeAsync = cuMemFreeAsync,
    .cuDeviceCanAccessPeer = cuDeviceCanAccessPeer,
    .cuMemcpyPeerAsync = cuMemcpyPeerAsync,
    .cuPointerGetAttribute = cuPointerGetAttribute,
    .cuStreamGetCtx = (cuStreamGetCtx),
#if CUDA_VERSION >= 12050
    .cuStreamGetCtx_v2 = cuStreamGetCtx_v2,
#endif
};
