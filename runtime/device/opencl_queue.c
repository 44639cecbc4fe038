/* SPDX-License-Identifier: Apache-2.0 */
/* A queue is made for the first copy in a context and released after the last
 * one. The buffers of an array, and arrays that are in flight at once, share
 * it. */
#include "device/opencl_queue.h"

#include <errno.h>
#include <stdlib.h>

enum { DEVICES_MOST = 64 }; /* of one context */

static int queue_make(struct uva__opencl *opencl, uva__cl_context context,
                      struct uva__opencl_queue **out, struct uva_error *error)
{
    struct uva__opencl_queue *queue = calloc(1, sizeof(*queue));
    uva__cl_device devices[DEVICES_MOST] = {NULL};
    uva__cl_int status;

    if (queue == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a queue");
    status = opencl->cl.clGetContextInfo(context, UVA__CL_CONTEXT_DEVICES,
                                         sizeof(devices), devices, NULL);
    if (status != 0) {
        free(queue);
        return uva__opencl_failed(error, "clGetContextInfo", status);
    }
    queue->queue =
        opencl->cl.clCreateCommandQueue(context, devices[0], 0, &status);
    if (status != 0) {
        free(queue);
        return uva__opencl_failed(error, "clCreateCommandQueue", status);
    }
    queue->context = context;
    queue->before = opencl->own.queues;
    opencl->own.queues = queue;
    *out = queue;
    return 0;
}

int uva__opencl_queue_use(struct uva__opencl *opencl, uva__cl_context context,
                          struct uva__opencl_queue **out,
                          struct uva_error *error)
{
    struct uva__opencl_queue *queue = opencl->own.queues;
    int code = 0;

    while (queue != NULL && queue->context != context)
        queue = queue->before;
    if (queue == NULL)
        code = queue_make(opencl, context, &queue, error);
    if (code != 0)
        return code;
    queue->uses++;
    *out = queue;
    return 0;
}

void uva__opencl_queue_drop(struct uva__opencl *opencl,
                            struct uva__opencl_queue *queue)
{
    if (--queue->uses != 0)
        return;
    uva__opencl_queue_forget(opencl, queue);
    (void)opencl->cl.clReleaseCommandQueue(queue->queue);
    free(queue);
}

void uva__opencl_queue_forget(struct uva__opencl *opencl,
                              struct uva__opencl_queue *queue)
{
    struct uva__opencl_queue **at = &opencl->own.queues;

    while (*at != NULL && *at != queue)
        at = &(*at)->before;
    if (*at != NULL)
        *at = queue->before;
}

void uva__opencl_event_free(void *state, void *event)
{
    struct uva__opencl *opencl = state;
    struct uva__opencl_event *box = event;

    (void)opencl->cl.clReleaseEvent(box->handle);
    if (box->queue != NULL)
        uva__opencl_queue_drop(opencl, box->queue);
    free(box);
}
