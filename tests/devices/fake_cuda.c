/* SPDX-License-Identifier: Apache-2.0 */
/* The fake device under the names of the CUDA driver's functions, with the
 * versions that its symbols carry. */
#include <stdlib.h>

#include "device/cuda_abi.h"
#include "devices/fake_control.h"
#include "devices/fake_gpu.h"

const bool fake_has_legacy_handle = true;

/* Makes the call only if the checks allow it. */
#define IF_MAY(needs, what)                                                    \
    do {                                                                       \
        FAKE_LOCKED();                                                         \
        const int code = fake_begin(needs);                                    \
        return code != 0 ? code : (what);                                      \
    } while (0)

/* Frees even if the checks report an error. */
#define ANYHOW(what)                                                           \
    do {                                                                       \
        FAKE_LOCKED();                                                         \
        const int code = fake_begin(0);                                        \
        const int did = (what);                                                \
        return code != 0 ? code : did;                                         \
    } while (0)

static void *memory_of(uva__cu_pointer pointer)
{
    return (void *)(uintptr_t)pointer;
}

/* ---- declarations for the compiler -------------------------------------- */

FAKE_API int cuInit(unsigned flags);
FAKE_API int cuDriverGetVersion(int *version);
FAKE_API int cuDeviceGet(int *device, int ordinal);
FAKE_API int cuDevicePrimaryCtxGetState(int device, unsigned *flags,
                                        int *active);
FAKE_API int cuDevicePrimaryCtxRetain(void **context, int device);
FAKE_API int cuDevicePrimaryCtxRelease_v2(int device);
FAKE_API int cuCtxCreate_v2(void **context, unsigned flags, int device);
FAKE_API int cuCtxDestroy_v2(void *context);
FAKE_API int cuCtxSetCurrent(void *context);
FAKE_API int cuCtxGetCurrent(void **context);
FAKE_API int cuCtxGetDevice(int *device);
FAKE_API int cuCtxPushCurrent_v2(void *context);
FAKE_API int cuCtxPopCurrent_v2(void **context);
#ifndef UVA_FAKE_OLDEST
FAKE_API int cuThreadExchangeStreamCaptureMode(int *mode);
#endif
FAKE_API int cuStreamBeginCapture_v2(void *stream, int mode);
FAKE_API int cuStreamEndCapture(void *stream, void **graph);
FAKE_API int cuGraphDestroy(void *graph);
FAKE_API int cuEventCreate(void **event, unsigned flags);
FAKE_API int cuEventDestroy_v2(void *event);
FAKE_API int cuEventRecord(void *event, void *stream);
FAKE_API int cuEventQuery(void *event);
FAKE_API int cuStreamCreate(void **stream, unsigned flags);
FAKE_API int cuStreamDestroy_v2(void *stream);
FAKE_API int cuStreamSynchronize(void *stream);
#ifndef UVA_FAKE_OLDEST
FAKE_API int cuStreamGetCtx(void *stream, void **context);
#endif
#ifndef UVA_FAKE_OLD
FAKE_API int cuStreamGetCtx_v2(void *stream, void **context, void **green);
FAKE_API int cuDeviceGetDevResource(int device, void *resource, int type);
FAKE_API int cuDevResourceGenerateDesc(void **desc, void *resources,
                                       unsigned count);
FAKE_API int cuGreenCtxCreate(void **green, void *desc, int device,
                              unsigned flags);
FAKE_API int cuGreenCtxDestroy(void *green);
FAKE_API int cuCtxFromGreenCtx(void **context, void *green);
FAKE_API int cuGreenCtxStreamCreate(void **stream, void *green, unsigned flags,
                                    int priority);
#endif
FAKE_API int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
FAKE_API int cuStreamWaitValue32_v2(void *stream, uva__cu_pointer word,
                                    uint32_t value, unsigned flags);
#ifndef UVA_FAKE_OLD
FAKE_API int cuStreamAddCallback(void *stream, fake_callback_fn *fn, void *data,
                                 unsigned flags);
#endif
#ifndef UVA_FAKE_OLDEST
FAKE_API int cuLaunchHostFunc(void *stream, fake_host_fn *fn, void *data);
#endif
FAKE_API int cuMemAlloc_v2(uva__cu_pointer *memory, size_t size);
#ifndef UVA_FAKE_OLDEST
FAKE_API int cuMemAllocManaged(uva__cu_pointer *memory, size_t size,
                               unsigned flags);
#endif
#ifndef UVA_FAKE_OLD
FAKE_API int cuDeviceCanAccessPeer(int *direct, int device, int peer);
FAKE_API int cuMemcpyPeerAsync(uva__cu_pointer target, void *target_context,
                               uva__cu_pointer source, void *source_context,
                               size_t size, void *stream);
FAKE_API int cuPointerGetAttribute(void *value, int attribute,
                                   uva__cu_pointer memory);
FAKE_API int cuMemAllocAsync(uva__cu_pointer *memory, size_t size,
                             void *stream);
FAKE_API int cuMemFreeAsync(uva__cu_pointer memory, void *stream);
#endif
FAKE_API int cuMemFree_v2(uva__cu_pointer memory);
FAKE_API int cuMemHostAlloc(void **memory, size_t size, unsigned flags);
FAKE_API int cuMemFreeHost(void *memory);
FAKE_API int cuMemcpyDtoHAsync_v2(void *target, uva__cu_pointer source,
                                  size_t size, void *stream);
FAKE_API int cuMemcpyHtoDAsync_v2(uva__cu_pointer target, const void *source,
                                  size_t size, void *stream);

/* ---- the driver --------------------------------------------------------- */

int cuInit(unsigned flags)
{
    (void)flags;
    return fake_init();
}

int cuDriverGetVersion(int *version)
{
    if (getenv("UVA_FAKE_STUB") != NULL)
        return UVA__GPU_STUB_LIBRARY;
    *version = 13000;
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    IF_MAY(0, fake_primary(ordinal) != NULL ? 0 : FAKE_INVALID_DEVICE);
}

/* ---- contexts ----------------------------------------------------------- */

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = fake_context_keep(fake_primary(device), 0) > 0;
    IF_MAY(0, 0);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    FAKE_LOCKED();
    const int code = fake_begin(0);

    if (code != 0)
        return code;
    *context = fake_primary(device);
    fake_context_keep(*context, 1);
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    ANYHOW(fake_context_keep(fake_primary(device), -1) < 0);
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    struct fake_context *made = calloc(1, sizeof(*made));

    (void)flags;
    made->device = device;
    *context = made;
    return fake_push(made);
}

/* Keeps the memory, because events refer to it. */
int cuCtxDestroy_v2(void *context)
{
    static struct fake_context *last;
    struct fake_context *gone = context;

    if (fake_current() == gone)
        (void)fake_pop();
    gone->before = last;
    last = gone;
    atomic_store(&gone->destroyed, true);
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    fake_current_set(context);
    return 0;
}

int cuCtxGetCurrent(void **context)
{
    *context = fake_current();
    IF_MAY(0, 0);
}

int cuCtxGetDevice(int *device)
{
    FAKE_LOCKED();
    const int code = fake_begin(FAKE_INSIDE);

    if (code == 0)
        *device = fake_current()->device;
    return code;
}

int cuCtxPushCurrent_v2(void *context)
{
    IF_MAY(FAKE_REFUSE_ENTER, fake_push(context));
}

int cuCtxPopCurrent_v2(void **context)
{
    *context = fake_pop();
    IF_MAY(0, 0);
}

/* ---- captures ----------------------------------------------------------- */

#ifndef UVA_FAKE_OLDEST
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    FAKE_LOCKED();
    const int code = fake_begin(0);

    if (code == 0)
        *mode = fake_capture_mode(*mode);
    return code;
}
#endif

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)stream;
    (void)mode;
    return fake_capture_begin();
}

int cuStreamEndCapture(void *stream, void **graph)
{
    (void)stream;
    *graph = NULL;
    return fake_capture_end();
}

int cuGraphDestroy(void *graph)
{
    (void)graph;
    return 0;
}

/* ---- events ------------------------------------------------------------- */

int cuEventCreate(void **event, unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_INSIDE, fake_event_create(event));
}

int cuEventDestroy_v2(void *event)
{
    ANYHOW(fake_event_destroy(event));
}

int cuEventRecord(void *event, void *stream)
{
    IF_MAY(FAKE_INSIDE, fake_event_record(event, stream));
}

int cuEventQuery(void *event)
{
    IF_MAY(FAKE_UNSAFE | FAKE_REPORTS, fake_event_query(event));
}

/* ---- streams ------------------------------------------------------------ */

int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_INSIDE | FAKE_UNSAFE, fake_stream_create(stream));
}

int cuStreamDestroy_v2(void *stream)
{
    ANYHOW(fake_stream_destroy(stream));
}

int cuStreamSynchronize(void *stream)
{
    IF_MAY(FAKE_INSIDE | FAKE_UNSAFE | FAKE_REPORTS,
           fake_stream_synchronize(stream));
}

#ifndef UVA_FAKE_OLDEST
int cuStreamGetCtx(void *stream, void **context)
{
    IF_MAY(0, fake_stream_context(stream, context));
}
#endif

#ifndef UVA_FAKE_OLD
int cuStreamGetCtx_v2(void *stream, void **context, void **green)
{
    FAKE_LOCKED();
    int code = fake_begin(0);

    *green = NULL;
    if (code == 0)
        code = fake_stream_context(stream, context);
    if (code == 0 && ((struct fake_context *)*context)->primary != NULL) {
        *green = *context;
        *context = ((struct fake_context *)*green)->primary;
    }
    return code;
}

/* Descriptions of a part of the device have no content here. */
int cuDeviceGetDevResource(int device, void *resource, int type)
{
    (void)device;
    (void)resource;
    (void)type;
    return 0;
}

int cuDevResourceGenerateDesc(void **desc, void *resources, unsigned count)
{
    (void)count;
    *desc = resources;
    return 0;
}

int cuGreenCtxCreate(void **green, void *desc, int device, unsigned flags)
{
    struct fake_context *made = calloc(1, sizeof(*made));

    (void)desc;
    (void)flags;
    made->device = device;
    made->primary = fake_primary(device);
    fake_context_keep(made->primary, 1);
    *green = made;
    return 0;
}

/* Keeps the memory, because streams that end refer to it. */
int cuGreenCtxDestroy(void *green)
{
    fake_context_keep(((struct fake_context *)green)->primary, -1);
    return cuCtxDestroy_v2(green);
}

int cuCtxFromGreenCtx(void **context, void *green)
{
    *context = green;
    return 0;
}

int cuGreenCtxStreamCreate(void **stream, void *green, unsigned flags,
                           int priority)
{
    (void)flags;
    (void)priority;
    return fake_stream_create_in(green, stream);
}
#endif

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_INSIDE | FAKE_REFUSE_WAIT, fake_stream_wait(stream, event));
}

int cuStreamWaitValue32_v2(void *stream, uva__cu_pointer word, uint32_t value,
                           unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_INSIDE, fake_stream_wait_value(stream, memory_of(word), value));
}

#ifndef UVA_FAKE_OLD
int cuStreamAddCallback(void *stream, fake_callback_fn *fn, void *data,
                        unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_INSIDE, fake_stream_callback(stream, fn, data));
}
#endif

#ifndef UVA_FAKE_OLDEST
int cuLaunchHostFunc(void *stream, fake_host_fn *fn, void *data)
{
    IF_MAY(FAKE_INSIDE, fake_stream_host(stream, fn, data));
}
#endif

/* ---- memory ------------------------------------------------------------- */

int cuMemAlloc_v2(uva__cu_pointer *memory, size_t size)
{
    void *made = NULL;
    FAKE_LOCKED();
    int code = fake_begin(FAKE_INSIDE | FAKE_UNSAFE);

    if (code == 0)
        code = fake_memory_new(&made, size, false);
    *memory = (uintptr_t)made;
    return code;
}

#ifndef UVA_FAKE_OLDEST
int cuMemAllocManaged(uva__cu_pointer *memory, size_t size, unsigned flags)
{
    (void)flags;
    return cuMemAlloc_v2(memory, size);
}
#endif

#ifndef UVA_FAKE_OLD
int cuDeviceCanAccessPeer(int *direct, int device, int peer)
{
    IF_MAY(0, fake_peers(direct, device, peer));
}

int cuMemcpyPeerAsync(uva__cu_pointer target, void *target_context,
                      uva__cu_pointer source, void *source_context, size_t size,
                      void *stream)
{
    const struct fake_context *to = target_context, *from = source_context;
    FAKE_LOCKED();
    const int code = fake_begin(FAKE_INSIDE);

    if (code != 0)
        return code;
    if (to == NULL || from == NULL || to->device == from->device)
        return FAKE_INVALID_CONTEXT;
    return fake_stream_peer(stream, memory_of(target), memory_of(source), size);
}

/* Memory of a pool is in no context. */
int cuPointerGetAttribute(void *value, int attribute, uva__cu_pointer memory)
{
    (void)attribute;
    (void)memory;
    *(void **)value = NULL;
    IF_MAY(0, 0);
}

int cuMemAllocAsync(uva__cu_pointer *memory, size_t size, void *stream)
{
    void *made = NULL;
    FAKE_LOCKED();
    int code = fake_begin(FAKE_INSIDE);

    if (code == 0)
        code = fake_stream_alloc(stream, &made, size);
    *memory = (uintptr_t)made;
    return code;
}

/* A call that has failed does not free: cuMemFree() still can. */
int cuMemFreeAsync(uva__cu_pointer memory, void *stream)
{
    IF_MAY(0, fake_stream_free(stream, memory_of(memory)));
}
#endif

int cuMemFree_v2(uva__cu_pointer memory)
{
    ANYHOW(fake_memory_free(memory_of(memory)));
}

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_INSIDE | FAKE_UNSAFE, fake_memory_new(memory, size, true));
}

int cuMemFreeHost(void *memory)
{
    ANYHOW(fake_memory_free(memory));
}

int cuMemcpyDtoHAsync_v2(void *target, uva__cu_pointer source, size_t size,
                         void *stream)
{
    IF_MAY(FAKE_INSIDE,
           fake_stream_download(stream, target, memory_of(source), size));
}

int cuMemcpyHtoDAsync_v2(uva__cu_pointer target, const void *source,
                         size_t size, void *stream)
{
    IF_MAY(FAKE_INSIDE,
           fake_stream_upload(stream, memory_of(target), source, size));
}
