/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL: the state of its table, the translation of its codes, and events. */
#ifndef UVA_DEVICE_OPENCL_EVENT_H
#define UVA_DEVICE_OPENCL_EVENT_H

#include "device/native_handles.h"
#include "device/opencl_abi.h"

#define UVA__OPENCL_VENDOR "opencl"

/* Our queue for copies in one context. It keeps the context alive, so it is
 * released when no copy uses it. */
struct uva__opencl_queue {
    struct uva__opencl_queue *before; /* the one made before it */
    uva__cl_context context;          /* borrows: of the queue */
    uva__cl_queue queue;              /* owns */
    uint64_t uses; /* one while a copy is begun, and one for each event of a
                      copy that was not freed */
};

/* An event as arrays have it: a pointer to its first member. */
struct uva__opencl_event {
    uva__cl_event handle;            /* owns */
    struct uva__opencl_queue *queue; /* uses: of the copy; or NULL */
};

/* Our buffer in shared virtual memory. It is freed with its own context, even
 * if the program has detached its handles meanwhile. */
struct uva__opencl_block {
    struct uva__opencl_block *before; /* owns: in the same bucket */
    void *memory;                     /* owns */
    uva__cl_context context;          /* counts */
};

enum { UVA__OPENCL_BUCKETS = 64 };

/* The state of the table. */
struct uva__opencl {
    struct uva__cl cl;
    struct uva__native_handles *attached; /* borrows */
    struct {                              /* the device thread's alone */
        struct uva__opencl_queue *queues; /* owns: those in use */
        struct uva__opencl_block *blocks[UVA__OPENCL_BUCKETS]; /* owns: hashed
                                                                  by address */
        struct uva_error no_memory; /* why alloc gave NULL */
    } own;
};

/* The one translation of codes: fills `error`, and returns the errno.
 * Thread: any. */
int uva__opencl_failed(struct uva_error *error, const char *call,
                       uva__cl_int status);

/* Returns whether a command is known to have failed, so that it will not access
 * memory any more. False too if a query fails. Thread: any. */
bool uva__opencl_has_failed(struct uva__opencl *opencl,
                            const struct uva_device_event *event);

/* Of struct uva_device_ops, which describes it. Thread: any. */
int uva__opencl_query(void *state, const struct uva_device_event *event,
                      struct uva_error *error);

#endif
