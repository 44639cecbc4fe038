/* SPDX-License-Identifier: Apache-2.0 */
/* The part of OpenCL's binary interface that we use, so that none of its
 * headers is needed; where they are there, tests/abi compares. */
#ifndef UVA_DEVICES_OPENCL_ABI_H
#define UVA_DEVICES_OPENCL_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Handles and scalars, as void * and integers of their size. */
typedef void *uva__cl_event;
typedef void *uva__cl_queue;
typedef int32_t uva__cl_int;
typedef uint32_t uva__cl_uint;

typedef void uva__cl_event_fn(uva__cl_event event, uva__cl_int status,
                              void *user_data);

enum {
    UVA__CL_COMPLETE = 0,                           /* CL_COMPLETE */
    UVA__CL_EVENT_COMMAND_QUEUE = 0x11D0,           /* CL_EVENT_COMMAND_QUEUE */
    UVA__CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3 /* the same */
};

/* Functions by their names. */
struct uva__cl {
    uva__cl_int (*clGetEventInfo)(uva__cl_event event, uva__cl_uint what,
                                  size_t size, void *value, size_t *size_out);
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
};

#endif
