/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL. An event calls back when it is complete, but on some platforms never
 * when it has failed, or with a status of success: so its status is asked after
 * the callback, and without one. On others that says success of a command whose
 * predecessor has failed: so a wait, which is none any more, has to agree.
 * sync_event is a cl_event * (EV-06). Copies are in devices/opencl_copy.c. */
#include "devices/opencl.h"

#include <errno.h>
#include <stdlib.h>

#include "core/vendor.h"
#include "devices/builtin.h"
#include "devices/library.h"

static const struct uva__library opencl_library = {
    .vendor = UVA__OPENCL_VENDOR,
    .names = (const char *const[]){"libOpenCL.so.1", "libOpenCL.so", NULL},
};

#define SYMBOL(name, optional)                                                 \
    {                                                                          \
#name, offsetof(struct uva__cl, name), optional                        \
    }

static const struct uva__symbol opencl_symbols[] = {
    SYMBOL(clGetEventInfo, false),
    SYMBOL(clWaitForEvents, false),
    SYMBOL(clRetainEvent, false),
    SYMBOL(clReleaseEvent, false),
    SYMBOL(clSetEventCallback, false),
    SYMBOL(clFlush, false),
    SYMBOL(clEnqueueMarkerWithWaitList, false),
    SYMBOL(clEnqueueBarrierWithWaitList, false),
    SYMBOL(clGetMemObjectInfo, false),
    SYMBOL(clGetContextInfo, false),
    SYMBOL(clRetainContext, false),
    SYMBOL(clReleaseContext, false),
    SYMBOL(clCreateCommandQueue, false),
    SYMBOL(clReleaseCommandQueue, false),
    SYMBOL(clEnqueueReadBuffer, false),
    SYMBOL(clEnqueueWriteBuffer, false),
    SYMBOL(clCreateBuffer, false),
    SYMBOL(clReleaseMemObject, false),
    SYMBOL(clSVMAlloc, true),
    SYMBOL(clSVMFree, true),
    SYMBOL(clEnqueueSVMMemcpy, true),
};

/* ---- the library -------------------------------------------------------- */

static int opencl_load(void *ctx, const char *path, void **state,
                       struct uva_error *error)
{
    struct uva__opencl *opencl;
    void *handle;
    int code = uva__library_open(&opencl_library, path, &handle, error);

    if (code != 0)
        return code;
    opencl = calloc(1, sizeof(*opencl));
    if (opencl == NULL)
        return ENOMEM;
    opencl->attached = ctx;
    code = uva__library_resolve(
        &opencl_library, handle, opencl_symbols,
        sizeof(opencl_symbols) / sizeof(opencl_symbols[0]), &opencl->cl, error);
    *state = opencl;
    if (code != 0)
        free(opencl);
    return code;
}

static void opencl_unload(void *state)
{
    struct uva__opencl *opencl = state;

    uva__opencl_forget(opencl);
    free(opencl);
}

/* ---- what calls say ----------------------------------------------------- */

static int errno_of(uva__cl_int status)
{
    switch (status) {
    case UVA__CL_NO_ALLOCATION:
    case UVA__CL_OUT_OF_HOST_MEMORY:
        return ENOMEM;
    case UVA__CL_DEVICE_NOT_AVAILABLE:
        return ENODEV;
    default:
        return EIO;
    }
}

int uva__opencl_failed(struct uva_error *error, const char *call,
                       uva__cl_int status)
{
    return uva__library_failed(error, errno_of(status), UVA__OPENCL_VENDOR,
                               call, status);
}

/* ---- events ------------------------------------------------------------- */

static uva__cl_event event_of(const struct uva_device_event *event)
{
    return *(uva__cl_event *)event->sync_event;
}

/* Its status alone would not make what it has written visible either. */
static int event_confirm(struct uva__cl *cl, uva__cl_event event,
                         struct uva_error *error)
{
    const uva__cl_int code = cl->clWaitForEvents(1, &event);

    return code == 0 ? 0 : uva__opencl_failed(error, "clWaitForEvents", code);
}

int uva__opencl_query(void *state, const struct uva_device_event *event,
                      struct uva_error *error)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;
    uva__cl_int status = 0;
    const uva__cl_int code = cl->clGetEventInfo(
        event_of(event), UVA__CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
        &status, NULL);

    if (code != 0)
        return uva__opencl_failed(error, "clGetEventInfo", code);
    if (status > UVA__CL_COMPLETE) {
        error->vendor_code = status;
        return EAGAIN;
    }
    if (status == UVA__CL_COMPLETE)
        return event_confirm(cl, event_of(event), error);
    return uva__vendor_say(error, EIO, UVA__OPENCL_VENDOR, status,
                           "clGetEventInfo failed with %d: so has the command "
                           "of an event",
                           status);
}

bool uva__opencl_has_failed(struct uva__opencl *opencl,
                            const struct uva_device_event *event)
{
    struct uva__cl *cl = &opencl->cl;
    uva__cl_event handle = event_of(event);
    uva__cl_int status = 0;

    if (cl->clGetEventInfo(handle, UVA__CL_EVENT_COMMAND_EXECUTION_STATUS,
                           sizeof(status), &status, NULL) != 0)
        return false;
    if (status != UVA__CL_COMPLETE)
        return status < UVA__CL_COMPLETE;
    return cl->clWaitForEvents(1, &handle) == UVA__CL_EVENT_FAILED;
}

/* Any thread; nothing of OpenCL may be called from here. */
static void opencl_called(uva__cl_event event, uva__cl_int status,
                          void *user_data)
{
    (void)event;
    uva_watch_notify(user_data, status < 0 ? EIO : 0, status < 0 ? status : 0,
                     UVA__OPENCL_VENDOR);
}

/* Drivers may hold commands back until somebody flushes. */
static void event_flush(struct uva__cl *cl, uva__cl_event event)
{
    uva__cl_queue queue = NULL; /* a user event has none */

    if (cl->clGetEventInfo(event, UVA__CL_EVENT_COMMAND_QUEUE, sizeof(queue),
                           &queue, NULL) == 0 &&
        queue != NULL)
        (void)cl->clFlush(queue);
}

/* The event is held until it is settled: the array's owner may let go of it
 * before some platforms call back. */
static int opencl_arm(void *state, const struct uva_device_event *event,
                      struct uva_watch *watch, struct uva_error *error)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;
    const uva__cl_event handle = event_of(event);
    const int code = uva__opencl_query(state, event, error);
    uva__cl_int status;

    if (code != EAGAIN)
        return code;
    status = cl->clRetainEvent(handle);
    if (status != 0)
        return uva__opencl_failed(error, "clRetainEvent", status);
    *uva_watch_slots(watch) = handle;
    status =
        cl->clSetEventCallback(handle, UVA__CL_COMPLETE, opencl_called, watch);
    if (status != 0) {
        (void)cl->clReleaseEvent(handle);
        return EAGAIN;
    }
    event_flush(cl, handle);
    return EINPROGRESS;
}

static void opencl_settle(void *state, struct uva_watch *watch)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;

    (void)cl->clReleaseEvent(*uva_watch_slots(watch));
}

/* ---- queues ------------------------------------------------------------- */

/* The event is given as arrays carry it: its handle stands in memory. */
static int opencl_record(void *state, const struct uva_device_event *device,
                         void *device_stream, void **event_out,
                         struct uva_error *error)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;
    uva__cl_event *box = malloc(sizeof(*box));
    uva__cl_int status;

    (void)device;
    if (box == NULL)
        return uva_error_set(error, ENOMEM, "no memory for an event");
    status = cl->clEnqueueMarkerWithWaitList(device_stream, 0, NULL, box);
    if (status != 0) {
        free(box);
        return uva__opencl_failed(error, "clEnqueueMarkerWithWaitList", status);
    }
    (void)cl->clFlush(device_stream);
    *event_out = box;
    return 0;
}

static int opencl_stream_wait(void *state, const struct uva_device_event *event,
                              void *device_stream, struct uva_error *error)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;
    const uva__cl_int status = cl->clEnqueueBarrierWithWaitList(
        device_stream, 1, event->sync_event, NULL);

    if (status != 0)
        return uva__opencl_failed(error, "clEnqueueBarrierWithWaitList",
                                  status);
    return 0;
}

void uva__opencl_event_free(void *state, void *event)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;

    (void)cl->clReleaseEvent(*(uva__cl_event *)event);
    free(event);
}

/* ---- the table ----------------------------------------------------------- */

const struct uva__dialect uva__opencl_dialect = {
    .vendor = UVA__OPENCL_VENDOR,
    .asks = "clGetEventInfo",
    .alloc_failed = uva__opencl_alloc_failed,
};

const struct uva_device_ops uva__opencl_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .query_quick = true,
    .name = "OPENCL",
    .load = opencl_load,
    .unload = opencl_unload,
    .query = uva__opencl_query,
    .arm = opencl_arm,
    .settle = opencl_settle,
    .copy = uva__opencl_copy,
    .record = opencl_record,
    .stream_wait = opencl_stream_wait,
    .event_free = uva__opencl_event_free,
    .alloc = uva__opencl_alloc,
    .dealloc = uva__opencl_dealloc,
};
