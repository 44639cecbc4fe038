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

/* Whether there is one. */
bool opencl_device_find(cl_device_id *out);

void opencl_device_open(struct opencl_device *device);
void opencl_device_close(struct opencl_device *device);

/* Gives an event that is complete when the test says so. */
cl_event opencl_device_gate(struct opencl_device *device);

/* The call that tells of a command whose predecessor has failed: to the status
 * it is complete on some platforms. */
const char *opencl_device_teller(struct opencl_device *device);

#endif
