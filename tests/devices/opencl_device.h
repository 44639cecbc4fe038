/* SPDX-License-Identifier: Apache-2.0 */
/* The first OpenCL device of any platform, with a context and a queue. */
#ifndef UVA_DEVICES_OPENCL_DEVICE_H
#define UVA_DEVICES_OPENCL_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdbool.h>

struct opencl_device {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* in order */
};

/* Returns whether there is a device. */
bool opencl_device_find(cl_device_id *out);

/* Returns whether a case can run that needs shared virtual memory, if `svm`: a
 * platform may lack it. */
bool opencl_device_may(bool svm);

void opencl_device_open(struct opencl_device *device);
void opencl_device_close(struct opencl_device *device);

/* Makes an event that the test completes. */
cl_event opencl_device_gate(struct opencl_device *device);

/* Returns the name of the call that reports a command after a failed one,
 * because on some platforms the command's status reads as complete. */
const char *opencl_device_reporter(struct opencl_device *device);

#endif
