/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the binary interface that CUDA's driver and HIP have in common:
 * HIP was modelled on CUDA. Where their headers are installed, tests/abi
 * compares them with this file. */
#ifndef UVA_DEVICE_GPU_ABI_H
#define UVA_DEVICE_GPU_ABI_H

#include <stddef.h>

/* Handles are pointers; codes and modes are integers. */
#ifndef UVA_GPU_TYPES /* tests/abi has the vendor's own */
typedef int uva__gpu_code;
typedef void *uva__gpu_event;
typedef void *uva__gpu_stream;
typedef int uva__gpu_capture_mode;
#endif

typedef void uva__gpu_callback_fn(uva__gpu_stream stream, uva__gpu_code code,
                                  void *user_data);
typedef void uva__gpu_host_fn(void *user_data);

/* Named CUDA_ERROR_..., CU_... in cuda.h, hipError..., hip... in HIP. */
enum {
    UVA__GPU_OUT_OF_MEMORY = 2,
    UVA__GPU_NOT_INITIALIZED = 3,
    UVA__GPU_STUB_LIBRARY = 34, /* CUDA's alone */
    UVA__GPU_OLD_DRIVER = 35,   /* HIP's alone */
    UVA__GPU_NO_DEVICE = 100,
    UVA__GPU_INVALID_DEVICE = 101,
    UVA__GPU_INVALID_CONTEXT = 201,
    UVA__GPU_NOT_READY = 600,
    UVA__GPU_CONTEXT_DESTROYED = 709,
    UVA__GPU_DRIVER_MISMATCH = 803, /* CUDA's alone */

    UVA__GPU_EVENT_DISABLE_TIMING = 2,
    UVA__GPU_STREAM_NON_BLOCKING = 1,
    UVA__GPU_STREAM_LEGACY = 1,     /* a handle; NULL is another handle of it */
    UVA__GPU_STREAM_PER_THREAD = 2, /* a handle */
    UVA__GPU_HOST_PORTABLE = 1,
    UVA__GPU_CAPTURE_RELAXED = 2
};

/* The functions, by purpose. */
struct uva__gpu_calls {
    uva__gpu_code (*event_create)(uva__gpu_event *event, unsigned flags);
    uva__gpu_code (*event_destroy)(uva__gpu_event event);
    uva__gpu_code (*event_record)(uva__gpu_event event, uva__gpu_stream stream);
    uva__gpu_code (*event_query)(uva__gpu_event event);
    uva__gpu_code (*stream_create)(uva__gpu_stream *stream, unsigned flags);
    uva__gpu_code (*stream_destroy)(uva__gpu_stream stream);
    uva__gpu_code (*stream_wait)(uva__gpu_stream stream, uva__gpu_event event,
                                 unsigned flags);
    uva__gpu_code (*stream_synchronize)(uva__gpu_stream stream);
    uva__gpu_code (*host_alloc)(void **memory, size_t size, unsigned flags);
    uva__gpu_code (*host_free)(void *memory);

    /* each may be NULL */
    uva__gpu_code (*stream_callback)(uva__gpu_stream stream,
                                     uva__gpu_callback_fn *fn, void *user_data,
                                     unsigned flags);
    uva__gpu_code (*stream_host)(uva__gpu_stream stream, uva__gpu_host_fn *fn,
                                 void *user_data);
    uva__gpu_code (*capture_exchange)(uva__gpu_capture_mode *mode);
};

#endif
