/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL. An event calls back when it is complete, but on some platforms never
 * when it has failed, or with a status of success: so its status is asked after
 * the callback, and without one. sync_event is a cl_event * (EV-06). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "devices/builtin.h"
#include "devices/library.h"
#include "devices/opencl_abi.h"

static const char VENDOR[] = "opencl";

static const struct uva__library opencl_library = {
    .vendor = "OpenCL",
    .names = (const char *const[]){"libOpenCL.so.1", "libOpenCL.so", NULL},
};

#define SYMBOL(name, optional)                                                 \
    {                                                                          \
#name, offsetof(struct uva__cl, name), optional                        \
    }

static const struct uva__symbol opencl_symbols[] = {
    SYMBOL(clGetEventInfo, false),
    SYMBOL(clRetainEvent, false),
    SYMBOL(clReleaseEvent, false),
    SYMBOL(clSetEventCallback, false),
    SYMBOL(clFlush, false),
    SYMBOL(clEnqueueMarkerWithWaitList, false),
    SYMBOL(clEnqueueBarrierWithWaitList, false),
    SYMBOL(clGetMemObjectInfo, false),
    SYMBOL(clGetContextInfo, false),
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

/* A queue of ours for copies in one context. */
struct lane {
    struct lane *before; /* owns */
    uva__cl_context context;
    uva__cl_queue queue; /* owns */
};

struct opencl {
    struct uva__cl cl;
    struct uva__attachments *attached; /* borrows */
    struct lane *lanes;                /* owns; the service's alone */
};

/* ---- the library -------------------------------------------------------- */

static int opencl_load(void *ctx, const char *path, void **state,
                       struct uva_error *error)
{
    struct opencl *opencl;
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
    struct opencl *opencl = state;
    struct lane *lane = opencl->lanes, *before;

    for (; lane != NULL; lane = before) {
        before = lane->before;
        (void)opencl->cl.clReleaseCommandQueue(lane->queue);
        free(lane);
    }
    free(opencl);
}

/* ---- events ------------------------------------------------------------- */

static uva__cl_event event_of(const struct uva_device_event *event)
{
    return *(uva__cl_event *)event->sync_event;
}

static int opencl_query(void *state, const struct uva_device_event *event,
                        struct uva_error *error)
{
    struct uva__cl *cl = &((struct opencl *)state)->cl;
    uva__cl_int status = 0;
    const uva__cl_int code = cl->clGetEventInfo(
        event_of(event), UVA__CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
        &status, NULL);

    if (code != 0)
        return uva__library_failed(error, EIO, VENDOR, "clGetEventInfo", code);
    if (status > UVA__CL_COMPLETE)
        return EAGAIN;
    if (status == UVA__CL_COMPLETE)
        return 0;
    return uva__library_failed(error, EIO, VENDOR,
                               "the command of an OpenCL event", status);
}

/* Any thread; nothing of OpenCL may be called from here. */
static void opencl_called(uva__cl_event event, uva__cl_int status,
                          void *user_data)
{
    (void)event;
    uva_watch_notify(user_data, status < 0 ? EIO : 0, status < 0 ? status : 0,
                     VENDOR);
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
    struct uva__cl *cl = &((struct opencl *)state)->cl;
    const uva__cl_event handle = event_of(event);
    const int code = opencl_query(state, event, error);
    uva__cl_int status;

    if (code != EAGAIN)
        return code;
    status = cl->clRetainEvent(handle);
    if (status != 0)
        return uva__library_failed(error, EIO, VENDOR, "clRetainEvent", status);
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
    struct uva__cl *cl = &((struct opencl *)state)->cl;

    (void)cl->clReleaseEvent(*uva_watch_slots(watch));
}

/* ---- queues ------------------------------------------------------------- */

/* The event is given as arrays carry it: its handle stands in memory. */
static int opencl_record(void *state, const struct uva_device_event *device,
                         void *device_stream, void **event_out,
                         struct uva_error *error)
{
    struct uva__cl *cl = &((struct opencl *)state)->cl;
    uva__cl_event *box = malloc(sizeof(*box));
    uva__cl_int status;

    (void)device;
    if (box == NULL)
        return uva_error_set(error, ENOMEM, "no memory for an event");
    status = cl->clEnqueueMarkerWithWaitList(device_stream, 0, NULL, box);
    if (status != 0) {
        free(box);
        return uva__library_failed(error, EIO, VENDOR,
                                   "clEnqueueMarkerWithWaitList", status);
    }
    (void)cl->clFlush(device_stream);
    *event_out = box;
    return 0;
}

static int opencl_stream_wait(void *state, const struct uva_device_event *event,
                              void *device_stream, struct uva_error *error)
{
    struct uva__cl *cl = &((struct opencl *)state)->cl;
    const uva__cl_int status = cl->clEnqueueBarrierWithWaitList(
        device_stream, 1, event->sync_event, NULL);

    if (status != 0)
        return uva__library_failed(error, EIO, VENDOR,
                                   "clEnqueueBarrierWithWaitList", status);
    return 0;
}

static void opencl_event_free(void *state, void *event)
{
    struct uva__cl *cl = &((struct opencl *)state)->cl;

    (void)cl->clReleaseEvent(*(uva__cl_event *)event);
    free(event);
}

/* ---- copies ------------------------------------------------------------- */

/* The queue of ours for a context, made at first need. */
static int lane_find(struct opencl *opencl, uva__cl_context context,
                     uva__cl_queue *out, struct uva_error *error)
{
    struct lane *lane = opencl->lanes;
    uva__cl_device device = NULL;
    uva__cl_int status;

    while (lane != NULL && lane->context != context)
        lane = lane->before;
    if (lane != NULL) {
        *out = lane->queue;
        return 0;
    }
    status = opencl->cl.clGetContextInfo(context, UVA__CL_CONTEXT_DEVICES,
                                         sizeof(device), &device, NULL);
    if (status != 0)
        return uva__library_failed(error, EIO, VENDOR, "clGetContextInfo",
                                   status);
    lane = calloc(1, sizeof(*lane));
    if (lane == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a queue");
    lane->queue = opencl->cl.clCreateCommandQueue(context, device, 0, &status);
    if (status != 0) {
        free(lane);
        return uva__library_failed(error, EIO, VENDOR, "clCreateCommandQueue",
                                   status);
    }
    lane->context = context;
    lane->before = opencl->lanes;
    opencl->lanes = lane;
    *out = lane->queue;
    return 0;
}

/* The program's handles for a device, copied; all NULL if it has brought none.
 */
static struct uva_opencl_device native_of(struct opencl *opencl,
                                          int64_t device_id)
{
    struct uva__attachment *attachment =
        uva__attachments_use(opencl->attached, ARROW_DEVICE_OPENCL, device_id);
    struct uva_opencl_device native = {0};

    if (attachment == NULL)
        return native;
    memcpy(&native, uva__attachment_native(attachment), sizeof(native));
    uva__attachments_drop(opencl->attached, attachment);
    return native;
}

/* The context of a buffer says which queue; pointers say nothing. */
static int queue_find(struct opencl *opencl,
                      const struct uva_opencl_device *native,
                      uva__cl_mem memory, uva__cl_queue *out,
                      struct uva_error *error)
{
    uva__cl_context context = native->context;
    uva__cl_int status;

    *out = native->queue;
    if (*out != NULL)
        return 0;
    if (native->svm && context == NULL)
        return uva_error_set(error, ENODEV,
                             "OpenCL: the context of shared virtual memory is "
                             "brought in with uva_device_attach()");
    if (!native->svm) {
        status = opencl->cl.clGetMemObjectInfo(memory, UVA__CL_MEM_CONTEXT,
                                               sizeof(context), &context, NULL);
        if (status != 0)
            return uva__library_failed(error, EIO, VENDOR, "clGetMemObjectInfo",
                                       status);
    }
    return lane_find(opencl, context, out, error);
}

static uva__cl_int copy_enqueue(struct opencl *opencl, uva__cl_queue queue,
                                const struct uva_device_copy *copy, bool svm,
                                uva__cl_event *event)
{
    const uva__cl_event *after = copy->after.sync_event;
    const uva__cl_uint count = after != NULL;
    struct uva__cl *cl = &opencl->cl;

    if (svm)
        return cl->clEnqueueSVMMemcpy(queue, 0, copy->target, copy->source,
                                      copy->size_bytes, count, after, event);
    if (copy->to_device)
        return cl->clEnqueueWriteBuffer(queue, copy->target, 0, 0,
                                        copy->size_bytes, copy->source, count,
                                        after, event);
    return cl->clEnqueueReadBuffer(queue, (void *)(uintptr_t)copy->source, 0, 0,
                                   copy->size_bytes, copy->target, count, after,
                                   event);
}

static int opencl_copy(void *state, const struct uva_device_copy *copy,
                       void **event_out, struct uva_error *error)
{
    struct opencl *opencl = state;
    const struct uva_opencl_device native =
        native_of(opencl, copy->after.device_id);
    void *const memory =
        copy->to_device ? copy->target : (void *)(uintptr_t)copy->source;
    uva__cl_event *box, *wanted;
    uva__cl_queue queue;
    uva__cl_int status;
    int code = queue_find(opencl, &native, memory, &queue, error);

    if (code != 0)
        return code;
    if (native.svm && opencl->cl.clEnqueueSVMMemcpy == NULL)
        return uva_error_set(error, ENOTSUP,
                             "OpenCL: the library has no clEnqueueSVMMemcpy");
    box = event_out != NULL ? malloc(sizeof(*box)) : NULL;
    if (event_out != NULL && box == NULL)
        return uva_error_set(error, ENOMEM, "no memory for an event");
    wanted = box;
    status = copy_enqueue(opencl, queue, copy, native.svm, wanted);
    if (status != 0) {
        free(box);
        return uva__library_failed(error, EIO, VENDOR, "a copy of OpenCL",
                                   status);
    }
    (void)opencl->cl.clFlush(queue);
    if (event_out != NULL)
        *event_out = box;
    return 0;
}

static void *opencl_alloc(void *state, ArrowDeviceType device_type,
                          int64_t device_id, size_t size_bytes)
{
    struct opencl *opencl = state;
    const struct uva_opencl_device native = native_of(opencl, device_id);
    uva__cl_int status;
    void *memory;

    (void)device_type;
    if (native.context == NULL)
        return NULL;
    if (native.svm)
        return opencl->cl.clSVMAlloc != NULL
                   ? opencl->cl.clSVMAlloc(
                         native.context, UVA__CL_MEM_READ_WRITE, size_bytes, 0)
                   : NULL;
    memory = opencl->cl.clCreateBuffer(native.context, UVA__CL_MEM_READ_WRITE,
                                       size_bytes, NULL, &status);
    return status == 0 ? memory : NULL;
}

static void opencl_dealloc(void *state, ArrowDeviceType device_type,
                           int64_t device_id, void *memory)
{
    struct opencl *opencl = state;
    const struct uva_opencl_device native = native_of(opencl, device_id);

    (void)device_type;
    if (native.svm)
        opencl->cl.clSVMFree(native.context, memory);
    else
        (void)opencl->cl.clReleaseMemObject(memory);
}

const struct uva_device_ops uva__opencl_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .query_quick = true,
    .name = "OPENCL",
    .load = opencl_load,
    .unload = opencl_unload,
    .query = opencl_query,
    .arm = opencl_arm,
    .settle = opencl_settle,
    .copy = opencl_copy,
    .record = opencl_record,
    .stream_wait = opencl_stream_wait,
    .event_free = opencl_event_free,
    .alloc = opencl_alloc,
    .dealloc = opencl_dealloc,
};
