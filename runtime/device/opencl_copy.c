/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL: memory, and copies on in-order queues: the program's, or our queue
 * for each context. A buffer is a cl_mem, which has a context, or shared
 * virtual memory, where the context cannot be found from the pointer. */
#include "device/opencl_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/vendor_error.h"

/* ---- queues ------------------------------------------------------------- */

/* The queue of a copy: the program's, or ours. */
struct queue_use {
    uva__cl_queue handle;
    struct uva__opencl_queue *ours; /* uses; NULL: it is the program's */
};

static void queue_end(struct uva__opencl *opencl, const struct queue_use *queue)
{
    if (queue->ours != NULL)
        uva__opencl_queue_drop(opencl, queue->ours);
}

/* The program's handles for a device, while they are in use: a detach waits for
 * that. */
struct handles {
    struct uva__native_handle *use;  /* NULL: not attached */
    struct uva_opencl_device native; /* all NULL then */
};

static struct handles handles_use(struct uva__opencl *opencl, int64_t device_id)
{
    struct handles handles = {0};

    handles.use = uva__native_handles_use(opencl->attached, ARROW_DEVICE_OPENCL,
                                          device_id);
    if (handles.use != NULL)
        memcpy(&handles.native, uva__native_handle_native(handles.use),
               sizeof(handles.native));
    return handles;
}

static void handles_drop(struct uva__opencl *opencl,
                         const struct handles *handles)
{
    if (handles->use != NULL)
        uva__native_handles_drop(opencl->attached, handles->use);
}

/* `call` needs a context, and is not made. */
static int context_missing(struct uva_error *error, const char *call)
{
    return uva__vendor_error_set(
        error, ENODEV, UVA__OPENCL_VENDOR, 0,
        "%s failed: the context of the device is not known; "
        "bring it in with uva_device_attach()",
        call);
}

/* Finds the queue by the context of the buffer; for shared virtual memory, the
 * program has to attach a context or queue. */
static int queue_find(struct uva__opencl *opencl,
                      const struct uva_opencl_device *native,
                      uva__cl_mem memory, struct queue_use *out,
                      struct uva_error *error)
{
    uva__cl_context context = native->context;
    uva__cl_int status;
    int code;

    out->handle = native->queue;
    if (out->handle != NULL)
        return 0;
    if (native->svm && context == NULL)
        return context_missing(error, "clEnqueueSVMMemcpy");
    if (!native->svm) {
        status = opencl->cl.clGetMemObjectInfo(memory, UVA__CL_MEM_CONTEXT,
                                               sizeof(context), &context, NULL);
        if (status != 0)
            return uva__opencl_failed(error, "clGetMemObjectInfo", status);
    }
    code = uva__opencl_queue_use(opencl, context, &out->ours, error);
    if (code == 0)
        out->handle = out->ours->queue;
    return code;
}

/* ---- copies ------------------------------------------------------------- */

static const char *copy_call(const struct uva_device_copy *copy, bool svm)
{
    if (svm)
        return "clEnqueueSVMMemcpy";
    return copy->to_device ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer";
}

static uva__cl_int copy_enqueue(struct uva__opencl *opencl, uva__cl_queue queue,
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

/* Returns how the event that the copy waits for has failed, or 0. On some
 * platforms a command that is queued after a failed event waits for ever. */
static int copy_check(struct uva__opencl *opencl,
                      const struct uva_device_copy *copy,
                      struct uva_error *error)
{
    int code = 0;

    if (copy->after.sync_event != NULL)
        code = uva__opencl_query(opencl, &copy->after, error);
    return code == EAGAIN ? 0 : code;
}

/* Without `event_out` no event is made. */
static int copy_begin(struct uva__opencl *opencl, const struct queue_use *queue,
                      const struct uva_device_copy *copy, bool svm,
                      void **event_out, struct uva_error *error)
{
    struct uva__opencl_event *box = NULL;
    uva__cl_int status;

    if (event_out != NULL) {
        box = malloc(sizeof(*box));
        if (box == NULL)
            return uva_error_set(error, ENOMEM, "no memory for an event");
    }
    status = copy_enqueue(opencl, queue->handle, copy, svm,
                          box != NULL ? &box->handle : NULL);
    if (status != 0) {
        free(box);
        return uva__opencl_failed(error, copy_call(copy, svm), status);
    }
    (void)opencl->cl.clFlush(queue->handle);
    if (box == NULL)
        return 0;
    box->queue = queue->ours;
    if (box->queue != NULL)
        box->queue->uses++;
    *event_out = box;
    return 0;
}

/* Queries the event once more after the copy was queued: it may have failed in
 * between, and then the copy never runs. An event that is not known to have
 * failed may still let the copy run. A program's queue is left as it is. */
static int copy_behind(struct uva__opencl *opencl,
                       const struct queue_use *queue,
                       const struct uva_device_copy *copy, bool svm,
                       void **event_out, struct uva_error *error)
{
    int code = copy_check(opencl, copy, error);

    if (code == 0)
        code = copy_begin(opencl, queue, copy, svm, event_out, error);
    if (code != 0 || copy->after.sync_event == NULL ||
        !uva__opencl_has_failed(opencl, &copy->after))
        return code;
    if (event_out != NULL)
        uva__opencl_event_free(opencl, *event_out);
    if (queue->ours != NULL)
        uva__opencl_queue_forget(opencl, queue->ours);
    return uva__opencl_query(opencl, &copy->after, error);
}

/* `program` is a program's queue; NULL: the queue that goes with the buffer. */
static int copy_with(struct uva__opencl *opencl,
                     const struct uva_opencl_device *native,
                     uva__cl_queue program, const struct uva_device_copy *copy,
                     void **event_out, struct uva_error *error)
{
    void *const memory =
        copy->to_device ? copy->target : (void *)(uintptr_t)copy->source;
    struct queue_use queue = {.handle = program};
    int code = 0;

    if (native->svm && opencl->cl.clEnqueueSVMMemcpy == NULL)
        return uva_error_set(error, ENOTSUP,
                             "OpenCL: the library has no clEnqueueSVMMemcpy");
    if (program == NULL)
        code = queue_find(opencl, native, memory, &queue, error);
    if (code != 0)
        return code;
    code = copy_behind(opencl, &queue, copy, native->svm, event_out, error);
    queue_end(opencl, &queue);
    return code;
}

int uva__opencl_copy_on(void *state, const struct uva_device_copy *copy,
                        void *device_stream, void **event_out,
                        struct uva_error *error)
{
    struct uva__opencl *opencl = state;
    const struct handles handles = handles_use(opencl, copy->after.device_id);
    const int code = copy_with(opencl, &handles.native, device_stream, copy,
                               event_out, error);

    handles_drop(opencl, &handles);
    return code;
}

int uva__opencl_copy(void *state, const struct uva_device_copy *copy,
                     void **event_out, struct uva_error *error)
{
    return uva__opencl_copy_on(state, copy, NULL, event_out, error);
}

/* ---- memory ------------------------------------------------------------- */

static struct uva__opencl_block **bucket_of(struct uva__opencl *opencl,
                                            const void *memory)
{
    return &opencl->own.blocks[(uintptr_t)memory / 4096 % UVA__OPENCL_BUCKETS];
}

static void *block_new(struct uva__opencl *opencl, uva__cl_context context,
                       size_t size)
{
    struct uva__opencl_block *block, **bucket;
    struct uva__cl *cl = &opencl->cl;

    (void)uva__vendor_error_set(&opencl->own.no_memory, ENOMEM,
                                UVA__OPENCL_VENDOR, 0,
                                "clSVMAlloc failed, or is not there");
    if (cl->clSVMAlloc == NULL || cl->clSVMFree == NULL)
        return NULL;
    block = calloc(1, sizeof(*block));
    if (block == NULL)
        return NULL;
    block->memory = cl->clSVMAlloc(context, UVA__CL_MEM_READ_WRITE, size, 0);
    if (block->memory == NULL) {
        free(block);
        return NULL;
    }
    (void)cl->clRetainContext(context);
    block->context = context;
    bucket = bucket_of(opencl, block->memory);
    block->before = *bucket;
    *bucket = block;
    return block->memory;
}

/* False: the memory is not our shared virtual memory. */
static bool block_free(struct uva__opencl *opencl, void *memory)
{
    struct uva__opencl_block **at = bucket_of(opencl, memory), *found;

    while (*at != NULL && (*at)->memory != memory)
        at = &(*at)->before;
    found = *at;
    if (found == NULL)
        return false;
    *at = found->before;
    opencl->cl.clSVMFree(found->context, memory);
    (void)opencl->cl.clReleaseContext(found->context);
    free(found);
    return true;
}

static void *memory_new(struct uva__opencl *opencl,
                        const struct uva_opencl_device *native, size_t size)
{
    struct uva_error *error = &opencl->own.no_memory;
    uva__cl_int status;
    void *memory;

    if (native->context == NULL) {
        (void)context_missing(error,
                              native->svm ? "clSVMAlloc" : "clCreateBuffer");
        return NULL;
    }
    if (native->svm)
        return block_new(opencl, native->context, size);
    memory = opencl->cl.clCreateBuffer(native->context, UVA__CL_MEM_READ_WRITE,
                                       size, NULL, &status);
    if (status == 0)
        return memory;
    (void)uva__opencl_failed(error, "clCreateBuffer", status);
    return NULL;
}

void *uva__opencl_alloc(void *state, ArrowDeviceType device_type,
                        int64_t device_id, size_t size_bytes)
{
    struct uva__opencl *opencl = state;
    const struct handles handles = handles_use(opencl, device_id);
    void *memory = memory_new(opencl, &handles.native, size_bytes);

    (void)device_type;
    handles_drop(opencl, &handles);
    return memory;
}

int uva__opencl_alloc_failed(void *state, struct uva_error *error)
{
    *error = ((struct uva__opencl *)state)->own.no_memory;
    return error->code;
}

void uva__opencl_dealloc(void *state, ArrowDeviceType device_type,
                         int64_t device_id, void *memory)
{
    struct uva__opencl *opencl = state;

    (void)device_type;
    (void)device_id;
    if (!block_free(opencl, memory))
        (void)opencl->cl.clReleaseMemObject(memory);
}
