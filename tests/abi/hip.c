/* SPDX-License-Identifier: Apache-2.0 */
/* Checks our declarations of HIP's binary interface against hip_runtime_api.h,
 * as cuda.c does for CUDA. */
#define __HIP_PLATFORM_AMD__ /* the only one with a separate library */
#include <hip/hip_runtime_api.h>

#define UVA_GPU_TYPES
typedef hipError_t uva__gpu_code;
typedef hipEvent_t uva__gpu_event;
typedef hipStream_t uva__gpu_stream;
typedef hipStreamCaptureMode uva__gpu_capture_mode;
typedef hipMemcpyKind uva__hip_copy_kind;

#include "device/hip_abi.h"

#define SAME(ours, theirs)                                                     \
    _Static_assert((int)(ours) == (int)(theirs), #ours " differs")
#define AS_LARGE(ours, theirs)                                                 \
    _Static_assert(sizeof(ours) == sizeof(theirs), #theirs " differs")

SAME(UVA__GPU_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME(UVA__GPU_NOT_INITIALIZED, hipErrorNotInitialized);
SAME(UVA__GPU_NO_DEVICE, hipErrorNoDevice);
SAME(UVA__GPU_INVALID_DEVICE, hipErrorInvalidDevice);
SAME(UVA__GPU_OLD_DRIVER, hipErrorInsufficientDriver);
SAME(UVA__GPU_INVALID_CONTEXT, hipErrorInvalidContext);
SAME(UVA__GPU_NOT_READY, hipErrorNotReady);
SAME(UVA__GPU_CONTEXT_DESTROYED, hipErrorContextIsDestroyed);
SAME(UVA__GPU_EVENT_DISABLE_TIMING, hipEventDisableTiming);
SAME(UVA__GPU_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(UVA__GPU_HOST_PORTABLE, hipHostMallocPortable);
SAME(UVA__GPU_CAPTURE_RELAXED, hipStreamCaptureModeRelaxed);
SAME(UVA__HIP_HOST_TO_DEVICE, hipMemcpyHostToDevice);
SAME(UVA__HIP_DEVICE_TO_HOST, hipMemcpyDeviceToHost);

AS_LARGE(int, hipError_t);
AS_LARGE(int, hipStreamCaptureMode);
AS_LARGE(int, hipMemcpyKind);
AS_LARGE(void *, hipEvent_t);
AS_LARGE(void *, hipStream_t);

extern const struct uva__gpu_calls hip_calls;
const struct uva__gpu_calls hip_calls = {
    .event_create = hipEventCreateWithFlags,
    .event_destroy = hipEventDestroy,
    .event_record = hipEventRecord,
    .event_query = hipEventQuery,
    .stream_create = hipStreamCreateWithFlags,
    .stream_destroy = hipStreamDestroy,
    .stream_wait = hipStreamWaitEvent,
    .stream_synchronize = hipStreamSynchronize,
    .host_alloc = hipHostMalloc,
    .host_free = hipHostFree,
    .capture_exchange = hipThreadExchangeStreamCaptureMode,
};

extern const struct uva__hip hip_own;
const struct uva__hip hip_own = {
    .hipGetDevice = hipGetDevice,
    .hipSetDevice = hipSetDevice,
    .hipGetLastError = hipGetLastError,
    .hipMalloc = hipMalloc,
    .hipFree = hipFree,
    .hipMemcpyAsync = hipMemcpyAsync,
    .hipDeviceCanAccessPeer = hipDeviceCanAccessPeer,
    .hipMemcpyPeerAsync = hipMemcpyPeerAsync,
};
