/* SPDX-License-Identifier: Apache-2.0 */
/* The driver library of a CUDA or HIP device: opening it, the tables of its
 * functions, and the one translation of its codes. Events, streams and copies
 * are made with that in device/gpu.c and device/gpu_streams.c. */
#ifndef UVA_DEVICE_GPU_DRIVER_H
#define UVA_DEVICE_GPU_DRIVER_H

#include "base/atomic.h"
#include "device/gpu_abi.h"
#include "device/shared_library.h"
#include "uvarrow/device.h"

/* The offset of a common call in the table. */
#define UVA__GPU_CALL(name) offsetof(struct uva__gpu_calls, name)

struct uva__gpu;

/* The device or context that is made current on a thread around calls. */
struct uva__gpu_context {
    int device;
    void *handle; /* CUDA: counts, if `retained` */
    bool retained;
    bool entered; /* CUDA: the thread has it as its own: no undo */
    int before;   /* HIP: the device that was current */
};

/* The differences between vendors. Functions that can fail return 0, or an
 * errno and fill an error with the vendor's code. Thread: any, unless stated.
 */
struct uva__gpu_vendor {
    struct uva__shared_library library;
    const struct uva__symbol *calls; /* of struct uva__gpu_calls */
    size_t n_calls;
    const struct uva__symbol *own; /* of the vendor table */
    size_t n_own;

    /* finds the context for our streams on a device, and keeps it alive; never
     * creates one */
    int (*context_find)(struct uva__gpu *gpu, int64_t device_id,
                        struct uva__gpu_context *out, struct uva_error *error);
    /* finds the context of `stream`, the program's: for a default stream it
     * depends on the thread */
    int (*context_of)(struct uva__gpu *gpu, int64_t device_id,
                      uva__gpu_stream stream, struct uva__gpu_context *out,
                      struct uva_error *error);
    void (*context_drop)(struct uva__gpu *gpu,
                         struct uva__gpu_context *context);
    /* make it current on this thread, and undo that */
    int (*enter)(struct uva__gpu *gpu, struct uva__gpu_context *context,
                 struct uva_error *error);
    void (*leave)(struct uva__gpu *gpu, struct uva__gpu_context *context);
    /* clears the code of a failed call, which the vendor keeps for the thread;
     * NULL: it keeps no code */
    void (*forget)(struct uva__gpu *gpu);
    /* queues one copy; device thread, the context is current */
    int (*copy)(struct uva__gpu *gpu, const struct uva_device_copy *copy,
                uva__gpu_stream stream, struct uva_error *error);
    /* gives whether device `to` can read memory of `from`; any context */
    int (*peers)(struct uva__gpu *gpu, const struct uva__gpu_context *from,
                 const struct uva__gpu_context *to, bool *direct,
                 struct uva_error *error);
    /* queues a copy between these; device thread, `to` is current */
    int (*copy_peer)(struct uva__gpu *gpu, const struct uva_device_copy *copy,
                     const struct uva__gpu_context *from,
                     const struct uva__gpu_context *to, uva__gpu_stream stream,
                     struct uva_error *error);
    /* returns whether memory of a device can be allocated and freed in the
     * order of a stream, without waiting; NULL: it cannot. Device thread */
    bool (*is_pooled)(struct uva__gpu *gpu,
                      const struct uva__gpu_context *context);
    /* give memory that is not pinned, or NULL, and take it back: in the order
     * of `*pool`, or at once if that is NULL; device thread, the context is
     * current */
    void *(*alloc)(struct uva__gpu *gpu, ArrowDeviceType device_type,
                   const uva__gpu_stream *pool, size_t size_bytes,
                   struct uva_error *error);
    void (*dealloc)(struct uva__gpu *gpu, ArrowDeviceType device_type,
                    const uva__gpu_stream *pool, void *memory);
};

/* The first member of a back end's state. */
struct uva__gpu {
    const struct uva__gpu_vendor *vendor;
    struct uva__gpu_calls calls;
    struct uva__lock lock; /* guards the list of streams, and their callback
                              streams */
    struct uva__gpu_streams *streams; /* owns; only the device thread adds */
    struct uva_error no_memory; /* why alloc gave NULL; the device thread's */
};

/* Opens the library and fills both tables. 0; ENOTSUP, ENOSYS.
 * Thread: the device thread. */
UVA_MUST_CHECK int uva__gpu_open(struct uva__gpu *gpu,
                                 const struct uva__gpu_vendor *vendor,
                                 const char *path, void *own,
                                 struct uva_error *error);

/* The one translation of codes: fills `error`, and returns the errno.
 * Thread: any. */
int uva__gpu_failed(struct uva__gpu *gpu, const char *call, int code,
                    struct uva_error *error);

/* Translates the code of a common call, given by UVA__GPU_CALL(); 0 for code 0.
 * Thread: any. */
int uva__gpu_result(struct uva__gpu *gpu, size_t call, int code,
                    struct uva_error *error);

#endif
