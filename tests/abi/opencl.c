/* SPDX-License-Identifier: Apache-2.0 */
/* Checks our declarations of OpenCL's binary interface against cl.h, as cuda.c
 * does for CUDA. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#define UVA_OPENCL_TYPES
typedef cl_event uva__cl_event;
typedef cl_command_queue uva__cl_queue;
typedef cl_context uva__cl_context;
typedef cl_device_id uva__cl_device;
typedef cl_mem uva__cl_mem;
typedef cl_int uva__cl_int;
typedef cl_uint uva__cl_uint;

#include "device/opencl_abi.h"

#define SAME(ours, theirs)                                                     \
    _Static_assert((int)(ours) == (int)(theirs), #ours " differs")

SAME(UVA__CL_COMPLETE, CL_COMPLETE);
SAME(UVA__CL_EVENT_FAILED, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
SAME(UVA__CL_DEVICE_NOT_AVAILABLE, CL_DEVICE_NOT_AVAILABLE);
SAME(UVA__CL_NO_ALLOCATION, CL_MEM_OBJECT_ALLOCATION_FAILURE);
SAME(UVA__CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_HOST_MEMORY);
SAME(UVA__CL_EVENT_COMMAND_QUEUE, CL_EVENT_COMMAND_QUEUE);
SAME(UVA__CL_CONTEXT_DEVICES, CL_CONTEXT_DEVICES);
SAME(UVA__CL_MEM_CONTEXT, CL_MEM_CONTEXT);
SAME(UVA__CL_MEM_READ_WRITE, CL_MEM_READ_WRITE);
SAME(UVA__CL_EVENT_COMMAND_EXECUTION_STATUS, CL_EVENT_COMMAND_EXECUTION_STATUS);
_Static_assert(sizeof(cl_command_queue_properties) == 8, "properties differ");
_Static_assert(sizeof(cl_mem_flags) == 8, "flags differ");

extern const struct uva__cl opencl_calls;
const struct uva__cl opencl_calls = {
    .clGetEventInfo = clGetEventInfo,
    .clWaitForEvents = clWaitForEvents,
    .clRetainEvent = clRetainEvent,
    .clReleaseEvent = clReleaseEvent,
    .clSetEventCallback = clSetEventCallback,
    .clFlush = clFlush,
    .clEnqueueMarkerWithWaitList = clEnqueueMarkerWithWaitList,
    .clEnqueueBarrierWithWaitList = clEnqueueBarrierWithWaitList,
    .clGetMemObjectInfo = clGetMemObjectInfo,
    .clGetContextInfo = clGetContextInfo,
    .clCreateCommandQueue = clCreateCommandQueue,
    .clReleaseCommandQueue = clReleaseCommandQueue,
    .clEnqueueReadBuffer = clEnqueueReadBuffer,
    .clEnqueueWriteBuffer = clEnqueueWriteBuffer,
    .clCreateBuffer = clCreateBuffer,
    .clReleaseMemObject = clReleaseMemObject,
    .clSVMAlloc = clSVMAlloc,
    .clSVMFree = clSVMFree,
    .clEnqueueSVMMemcpy = clEnqueueSVMMemcpy,
};
