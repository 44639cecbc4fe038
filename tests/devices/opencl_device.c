/* SPDX-License-Identifier: Apache-2.0 */
/* Works with any platform, because the tests need only OpenCL 1.2. */
#define _GNU_SOURCE
#include "devices/opencl_device.h"

#include <assert.h>
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/faulty_opencl.h"

static void leave_now(int status, void *arg)
{
    (void)arg;
    (void)fflush(NULL);
    _exit(status);
}

/* Intel's platform may crash at process exit after commands have failed. */
static void platform_distrust(cl_platform_id platform)
{
    char name[64] = "";

    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name, NULL);
    if (strncmp(name, "Intel", 5) == 0)
        (void)on_exit(leave_now, NULL);
}

bool opencl_device_find(cl_device_id *out)
{
    cl_platform_id platforms[8];
    cl_uint count = 0, devices;

    if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < count && i < 8; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, out,
                           &devices) == CL_SUCCESS) {
            platform_distrust(platforms[i]);
            return true;
        }
    return false;
}

bool opencl_device_may(bool svm)
{
    cl_device_svm_capabilities has = 0;
    cl_device_id device;

    ck_assert(opencl_device_find(&device));
    (void)clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(has), &has,
                          NULL);
    return !svm || has != 0;
}

void opencl_device_open(struct opencl_device *device)
{
    cl_int code;

    ck_assert(opencl_device_find(&device->device));
    device->context =
        clCreateContext(NULL, 1, &device->device, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    device->queue = clCreateCommandQueueWithProperties(
        device->context, device->device, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
}

void opencl_device_close(struct opencl_device *device)
{
    clReleaseCommandQueue(device->queue);
    clReleaseContext(device->context);
}

cl_event opencl_device_gate(struct opencl_device *device)
{
    cl_int code;
    cl_event gate = clCreateUserEvent(device->context, &code);

    ck_assert_int_eq(code, CL_SUCCESS);
    return gate;
}

const char *opencl_device_reporter(struct opencl_device *device)
{
    cl_event gate = opencl_device_gate(device), marker;
    cl_int status = CL_COMPLETE;

    clEnqueueMarkerWithWaitList(device->queue, 1, &gate, &marker);
    clSetUserEventStatus(gate, -5);
    (void)clWaitForEvents(1, &marker);
    clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                   &status, NULL);
    clReleaseEvent(marker);
    clReleaseEvent(gate);
    return status == CL_COMPLETE ? "clWaitForEvents" : "clGetEventInfo";
}

static void find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);

    memcpy(out, &address, sizeof(address));
}

void faulty_opencl_open(struct faulty_opencl *faulty, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    assert(library != NULL);
    setenv("UVA_OPENCL_LIBRARY", path, 1);
    find(library, "faultycl_fail", &faulty->faultycl_fail);
    find(library, "faultycl_left", &faulty->faultycl_left);
    find(library, "faultycl_behind_copy", &faulty->faultycl_behind_copy);
    find(library, "faultycl_keep_callback", &faulty->faultycl_keep_callback);
    find(library, "faultycl_call_back", &faulty->faultycl_call_back);
}
