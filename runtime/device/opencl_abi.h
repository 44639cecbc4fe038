/* SPDX-License-Identifier: Apache-2.0 */
/* The part of OpenCL's binary interface that we use, so that its headers are
 * not needed; where they are installed, tests/abi compares them with this file.
 */
#ifndef UVA_DEVICE_OPENCL_ABI_H
#define UVA_DEVICE_OPENCL_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Handles and scalars, as void * and integers of their size. */
#ifndef UVA_OPENCL_TYPES /* tests/abi has the vendor's own */
typedef void *uva__cl_event;
typedef void *uva__cl_queue;
typedef void *uva__cl_context;
typedef void *uva__cl_device;
typedef void *uva__cl_mem;
typedef int32_t uva__cl_int;
typedef uint32_t uva__cl_uint;
#endif

typedef void uva__cl_event_fn(uva__cl_event event, uva__cl_int status,
                              void *user_data);

enum {
    UVA__CL_COMPLETE = 0,                 /* CL_COMPLETE */
    UVA__CL_DEVICE_NOT_AVAILABLE = -2,    /* CL_DEVICE_NOT_AVAILABLE */
    UVA__CL_NO_ALLOCATION = -4,           /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    UVA__CL_OUT_OF_HOST_MEMORY = -6,      /* CL_OUT_OF_HOST_MEMORY */
    UVA__CL_EVENT_FAILED = -14,           /* CL_EXEC_STATUS_ERROR_FOR_... */
    UVA__CL_EVENT_COMMAND_QUEUE = 0x11D0, /* CL_EVENT_COMMAND_QUEUE */
    UVA__CL_CONTEXT_DEVICES = 0x1081,     /* CL_CONTEXT_DEVICES */
    UVA__CL_MEM_CONTEXT = 0x1106,         /* CL_MEM_CONTEXT */
    UVA__CL_MEM_READ_WRITE = 1,           /* CL_MEM_READ_WRITE */
    /* CL_EVENT_COMMAND_EXECUTION_STATUS */
    UVA__CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3
};

/* The functions by their names. */
struct uva__cl {
    uva__cl_int (*clGetEventInfo)(uva__cl_event event, uva__cl_uint what,
                                  size_t size, void *value, size_t *size_out);
    uva__cl_int (*clWaitForEvents)(uva__cl_uint count,
                                   const uva__cl_event *events);
    uva__cl_int (*clRetainEvent)(uva__cl_event event);
    uva__cl_int (*clReleaseEvent)(uva__cl_event event);
    uva__cl_int (*clSetEventCallback)(uva__cl_event event, uva__cl_int status,
                                      uva__cl_event_fn *fn, void *user_data);
    uva__cl_int (*clFlush)(uva__cl_queue queue);
    uva__cl_int (*clEnqueueMarkerWithWaitList)(uva__cl_queue queue,
                                               uva__cl_uint count,
                                               const uva__cl_event *events,
                                               uva__cl_event *event);
    uva__cl_int (*clEnqueueBarrierWithWaitList)(uva__cl_queue queue,
                                                uva__cl_uint count,
                                                const uva__cl_event *events,
                                                uva__cl_event *event);

    /* memory */
    uva__cl_int (*clGetMemObjectInfo)(uva__cl_mem memory, uva__cl_uint what,
                                      size_t size, void *value,
                                      size_t *size_out);
    uva__cl_int (*clGetContextInfo)(uva__cl_context context, uva__cl_uint what,
                                    size_t size, void *value, size_t *size_out);
    uva__cl_int (*clRetainContext)(uva__cl_context context);
    uva__cl_int (*clReleaseContext)(uva__cl_context context);
    uva__cl_queue (*clCreateCommandQueue)(uva__cl_context context,
                                          uva__cl_device device,
                                          uint64_t properties,
                                          uva__cl_int *code);
    uva__cl_int (*clReleaseCommandQueue)(uva__cl_queue queue);
    uva__cl_int (*clEnqueueReadBuffer)(uva__cl_queue queue, uva__cl_mem memory,
                                       uva__cl_uint blocking, size_t offset,
                                       size_t size, void *target,
                                       uva__cl_uint count,
                                       const uva__cl_event *events,
                                       uva__cl_event *event);
    uva__cl_int (*clEnqueueWriteBuffer)(uva__cl_queue queue, uva__cl_mem memory,
                                        uva__cl_uint blocking, size_t offset,
                                        size_t size, const void *source,
                                        uva__cl_uint count,
                                        const uva__cl_event *events,
                                        uva__cl_event *event);
    uva__cl_mem (*clCreateBuffer)(uva__cl_context context, uint64_t flags,
                                  size_t size, void *host, uva__cl_int *code);
    uva__cl_int (*clReleaseMemObject)(uva__cl_mem memory);

    /* shared virtual memory, from 2.0 on; each may be NULL */
    void *(*clSVMAlloc)(uva__cl_context context, uint64_t flags, size_t size,
                        uva__cl_uint alignment);
    void (*clSVMFree)(uva__cl_context context, void *memory);
    uva__cl_int (*clEnqueueSVMMemcpy)(uva__cl_queue queue,
                                      uva__cl_uint blocking, void *target,
                                      const void *source, size_t size,
                                      uva__cl_uint count,
                                      const uva__cl_event *events,
                                      uva__cl_event *event);
};

#endif
