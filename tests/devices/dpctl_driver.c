/* SPDX-License-Identifier: Apache-2.0 */
/* Real SYCL events, made from OpenCL events: markers after user events, so that
 * a test decides when they complete. dpctl's library has a queue for C;
 * everything else is called in libsycl by its mangled C++ names. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "devices/sycl_driver.h"

enum { MOST = 1024, OPENCL = 1 /* as in sycl::backend */ };

/* Functions, named as in their libraries, except for the last two. */
struct calls {
    void *(*DPCTLFilterSelector_Create)(const char *filter);
    void *(*DPCTLDevice_CreateFromSelector)(void *selector);
    void *(*DPCTLQueue_CreateForDevice)(void *device, void *handler,
                                        int properties);
    void *(*DPCTLQueue_GetContext)(void *queue);
    void *(*DPCTLQueue_SubmitBarrierForEvents)(void *queue, void *const *events,
                                               size_t count);
    void (*DPCTLEvent_Delete)(void *event);
    void *(*DPCTLEvent_Copy)(void *event);
    cl_context (*native)(const void *context);
    void (*make)(void *event_out, cl_event native, const void *context,
                 signed char backend);
};

static const char *const names[] = {
    "DPCTLFilterSelector_Create",
    "DPCTLDevice_CreateFromSelector",
    "DPCTLQueue_CreateForDevice",
    "DPCTLQueue_GetContext",
    "DPCTLQueue_SubmitBarrierForEvents",
    "DPCTLEvent_Delete",
    "DPCTLEvent_Copy",
    "_ZNK4sycl3_V17context9getNativeEv",
    "_ZN4sycl3_V16detail10make_eventEmRKNS0_7contextENS0_7backendE",
};

static struct {
    struct calls calls;
    void *queue, *context; /* objects of SYCL */
    cl_command_queue native;
    struct {
        void *event; /* NULL: unused */
        cl_event gate;
    } pending[MOST];
} dpctl;

/* ---- events ------------------------------------------------------------- */

/* SYCL's objects are larger than their declarations here, so they are copied to
 * memory of their own. */
static void *event_wrap(cl_event native)
{
    void *made[8] = {NULL};
    void *event;

    dpctl.calls.make(made, native, dpctl.context, OPENCL);
    event = dpctl.calls.DPCTLEvent_Copy(made);
    ck_assert_ptr_nonnull(event);
    return event;
}

static int pending_find(const void *event)
{
    for (int k = 0; k < MOST; k++)
        if (dpctl.pending[k].event == event)
            return k;
    ck_abort_msg("too many events, or not one of ours");
    return -1;
}

static void *dpctl_event_new(void)
{
    const int k = pending_find(NULL);
    cl_context context = dpctl.calls.native(dpctl.context);
    cl_event marker;
    cl_int code;

    dpctl.pending[k].gate = clCreateUserEvent(context, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueMarkerWithWaitList(
                         dpctl.native, 1, &dpctl.pending[k].gate, &marker),
                     CL_SUCCESS);
    ck_assert_int_eq(clFlush(dpctl.native), CL_SUCCESS);
    dpctl.pending[k].event = event_wrap(marker);
    return dpctl.pending[k].event;
}

static void dpctl_event_end(void *event, bool failed)
{
    const int k = pending_find(event);

    dpctl.pending[k].event = NULL;
    ck_assert_int_eq(
        clSetUserEventStatus(dpctl.pending[k].gate, failed ? -5 : CL_COMPLETE),
        0);
    clReleaseEvent(dpctl.pending[k].gate);
}

static void dpctl_event_free(void *event)
{
    dpctl.calls.DPCTLEvent_Delete(event);
}

static void dpctl_queue_block(void *event)
{
    void *barrier =
        dpctl.calls.DPCTLQueue_SubmitBarrierForEvents(dpctl.queue, &event, 1);

    ck_assert_ptr_nonnull(barrier);
    dpctl.calls.DPCTLEvent_Delete(barrier);
}

static int dpctl_events_live(void)
{
    return -1;
}

/* ---- opening ------------------------------------------------------------ */

static bool calls_find(void)
{
    const char *path = getenv("UVA_TEST_DPCTL");
    void *library = dlopen(path != NULL ? path : "libDPCTLSyclInterface.so",
                           RTLD_NOW | RTLD_LOCAL);
    void *address;

    if (library == NULL)
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        address = dlsym(library, names[i]);
        if (address == NULL)
            return false;
        memcpy((char *)&dpctl.calls + i * sizeof(address), &address,
               sizeof(address));
    }
    return true;
}

static bool queue_make(void)
{
    void *selector = dpctl.calls.DPCTLFilterSelector_Create("opencl:cpu");
    void *device = selector != NULL
                       ? dpctl.calls.DPCTLDevice_CreateFromSelector(selector)
                       : NULL;

    if (device == NULL)
        return false;
    dpctl.queue = dpctl.calls.DPCTLQueue_CreateForDevice(device, NULL, 0);
    dpctl.context = dpctl.calls.DPCTLQueue_GetContext(dpctl.queue);
    return dpctl.queue != NULL && dpctl.context != NULL;
}

/* Makes an out-of-order queue, so that events of different tests do not wait
 * for each other. */
static bool native_make(void)
{
    const cl_queue_properties properties[] = {
        CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    cl_context context = dpctl.calls.native(dpctl.context);
    cl_device_id device;
    cl_int code = clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(device),
                                   &device, NULL);

    if (code == CL_SUCCESS)
        dpctl.native = clCreateCommandQueueWithProperties(context, device,
                                                          properties, &code);
    return code == CL_SUCCESS;
}

bool dpctl_driver_open(struct sycl_driver *out)
{
    if (!calls_find() || !queue_make() || !native_make())
        return false;
    *out = (struct sycl_driver){.real = true,
                                .queue = dpctl.queue,
                                .event_new = dpctl_event_new,
                                .event_end = dpctl_event_end,
                                .event_free = dpctl_event_free,
                                .queue_block = dpctl_queue_block,
                                .events_live = dpctl_events_live};
    return true;
}
