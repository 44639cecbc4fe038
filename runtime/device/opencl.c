/* SPDX-License-Identifier: Apache-2.0 */
/* The table of OpenCL. An event calls back when it is complete, but on some
 * platforms it never does so when it has failed, or does so with a status of
 * success: so the status is queried after the callback, and polled without one.
 * sync_event is a cl_event *.
 *
 * Clauses: EV-06. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "device/builtin.h"
#include "device/opencl_copy.h"
#include "device/opencl_event.h"
#include "device/shared_library.h"

static const struct uva__shared_library opencl_library = {
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
    int code = uva__shared_library_open(&opencl_library, path, &handle, error);

    if (code != 0)
        return code;
    opencl = calloc(1, sizeof(*opencl));
    if (opencl == NULL)
        return ENOMEM;
    opencl->attached = ctx;
    code = uva__shared_library_resolve(
        &opencl_library, handle, opencl_symbols,
        sizeof(opencl_symbols) / sizeof(opencl_symbols[0]), &opencl->cl, error);
    *state = opencl;
    if (code != 0)
        free(opencl);
    return code;
}

/* All copies have ended, and released their queues. */
static void opencl_unload(void *state)
{
    assert(((struct uva__opencl *)state)->own.queues == NULL);
    free(state);
}

/* ---- events ------------------------------------------------------------- */

/* Any thread. OpenCL does not allow its functions to be called here. */
static void opencl_called(uva__cl_event event, uva__cl_int status,
                          void *user_data)
{
    (void)event;
    uva_watch_notify(user_data, status < 0 ? EIO : 0, status < 0 ? status : 0,
                     UVA__OPENCL_VENDOR);
}

/* A driver may hold commands back until the queue is flushed. */
static void event_flush(struct uva__cl *cl, uva__cl_event event)
{
    uva__cl_queue queue = NULL; /* a user event has no queue */

    if (cl->clGetEventInfo(event, UVA__CL_EVENT_COMMAND_QUEUE, sizeof(queue),
                           &queue, NULL) == 0 &&
        queue != NULL)
        (void)cl->clFlush(queue);
}

/* The event is retained until it is settled: the array's owner may release it
 * before some platforms call back. */
static int opencl_arm(void *state, const struct uva_device_event *event,
                      struct uva_watch *watch, struct uva_error *error)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;
    const uva__cl_event handle = *(uva__cl_event *)event->sync_event;
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

static int queue_missing(struct uva_error *error)
{
    return uva_error_set(error, EINVAL,
                         "OpenCL: `device_stream` is NULL; pass a "
                         "cl_command_queue");
}

static int opencl_record(void *state, const struct uva_device_event *device,
                         void *device_stream, void **event_out,
                         struct uva_error *error)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;
    struct uva__opencl_event *box;
    uva__cl_int status;

    (void)device;
    if (device_stream == NULL)
        return queue_missing(error);
    box = malloc(sizeof(*box));
    if (box == NULL)
        return uva_error_set(error, ENOMEM, "no memory for an event");
    box->queue = NULL;
    status =
        cl->clEnqueueMarkerWithWaitList(device_stream, 0, NULL, &box->handle);
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
    uva__cl_int status;

    if (device_stream == NULL)
        return queue_missing(error);
    status = cl->clEnqueueBarrierWithWaitList(device_stream, 1,
                                              event->sync_event, NULL);
    if (status != 0)
        return uva__opencl_failed(error, "clEnqueueBarrierWithWaitList",
                                  status);
    return 0;
}

/* ---- the table ----------------------------------------------------------- */

const struct uva__vendor_info uva__opencl_info = {
    .vendor = UVA__OPENCL_VENDOR,
    .query_call = "clGetEventInfo",
    .alloc_failed = uva__opencl_alloc_failed,
};

const struct uva_device_ops uva__opencl_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .query_on_loop = true,
    .name = "OPENCL",
    .load = opencl_load,
    .unload = opencl_unload,
    .query = uva__opencl_query,
    .arm = opencl_arm,
    .settle = opencl_settle,
    .copy = uva__opencl_copy,
    .copy_on = uva__opencl_copy_on,
    .record = opencl_record,
    .stream_wait = opencl_stream_wait,
    .event_free = uva__opencl_event_free,
    .alloc = uva__opencl_alloc,
    .dealloc = uva__opencl_dealloc,
};
