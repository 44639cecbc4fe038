/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL: our queues, one for each context in which copies are in flight, and
 * the events of copies, which use them. The device thread's alone. */
#ifndef UVA_DEVICE_OPENCL_QUEUE_H
#define UVA_DEVICE_OPENCL_QUEUE_H

#include "device/opencl_event.h"

/* Finds our queue for a context, or makes it, and uses it. 0; ENOMEM, or the
 * reason for the failure. */
UVA_MUST_CHECK int uva__opencl_queue_use(struct uva__opencl *opencl,
                                         uva__cl_context context,
                                         struct uva__opencl_queue **out,
                                         struct uva_error *error);

/* Ends a use; the last one releases the queue, and with it the context. */
void uva__opencl_queue_drop(struct uva__opencl *opencl,
                            struct uva__opencl_queue *queue);

/* Takes a queue that may have a command which never ends out of the list, while
 * it is in use: the next copy makes a new one. */
void uva__opencl_queue_forget(struct uva__opencl *opencl,
                              struct uva__opencl_queue *queue);

/* Of struct uva_device_ops, which describes it. Thread: any, for an event that
 * is not a copy's. */
void uva__opencl_event_free(void *state, void *event);

#endif
