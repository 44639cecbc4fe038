/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA, by its driver alone: events of the CUDA runtime are events of the
 * driver. Calls that need a context use the primary context of their device, if
 * the program has made it: never our own, which would cost hundreds of
 * megabytes. sync_event is a cudaEvent_t *, which is a CUevent *.
 *
 * Clauses: EV-05. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "arrow/vendor_error.h"
#include "device/builtin.h"
#include "device/cuda_abi.h"
#include "device/gpu.h"

struct cuda {
    struct uva__gpu gpu; /* first */
    struct uva__cu cu;
};

/* The names have the versions that the table was written for: macros in cuda.h
 * may choose other ones. */
static const struct uva__symbol cuda_calls[] = {
    {"cuEventCreate", UVA__GPU_CALL(event_create), false},
    {"cuEventDestroy_v2", UVA__GPU_CALL(event_destroy), false},
    {"cuEventRecord", UVA__GPU_CALL(event_record), false},
    {"cuEventQuery", UVA__GPU_CALL(event_query), false},
    {"cuStreamCreate", UVA__GPU_CALL(stream_create), false},
    {"cuStreamDestroy_v2", UVA__GPU_CALL(stream_destroy), false},
    {"cuStreamWaitEvent", UVA__GPU_CALL(stream_wait), false},
    {"cuStreamSynchronize", UVA__GPU_CALL(stream_synchronize), false},
    {"cuMemHostAlloc", UVA__GPU_CALL(host_alloc), false},
    {"cuMemFreeHost", UVA__GPU_CALL(host_free), false},
    {"cuStreamAddCallback", UVA__GPU_CALL(stream_callback), true},
    {"cuLaunchHostFunc", UVA__GPU_CALL(stream_host), true},
    {"cuThreadExchangeStreamCaptureMode", UVA__GPU_CALL(capture_exchange),
     true},
};

#define OWN(name, version, optional)                                           \
    {                                                                          \
#name version, offsetof(struct uva__cu, name), optional                \
    }

static const struct uva__symbol cuda_own[] = {
    OWN(cuDriverGetVersion, "", false),
    OWN(cuDeviceGet, "", false),
    OWN(cuDevicePrimaryCtxGetState, "", false),
    OWN(cuDevicePrimaryCtxRetain, "", false),
    OWN(cuDevicePrimaryCtxRelease, "_v2", false),
    OWN(cuCtxGetCurrent, "", false),
    OWN(cuCtxGetDevice, "", false),
    OWN(cuCtxPushCurrent, "_v2", false),
    OWN(cuCtxPopCurrent, "_v2", false),
    OWN(cuMemAlloc, "_v2", false),
    OWN(cuMemFree, "_v2", false),
    OWN(cuMemcpyDtoHAsync, "_v2", false),
    OWN(cuMemcpyHtoDAsync, "_v2", false),
    OWN(cuMemAllocManaged, "", true),
    OWN(cuDeviceGetAttribute, "", true),
    OWN(cuMemAllocAsync, "", true),
    OWN(cuMemFreeAsync, "", true),
    OWN(cuDeviceCanAccessPeer, "", true),
    OWN(cuMemcpyPeerAsync, "", true),
    OWN(cuPointerGetAttribute, "", true),
    OWN(cuStreamGetCtx, "", true),
    OWN(cuStreamGetCtx_v2, "", true),
};

static struct uva__cu *cu_of(struct uva__gpu *gpu)
{
    return &((struct cuda *)(void *)gpu)->cu;
}

/* ---- contexts ----------------------------------------------------------- */

static int primary_find(struct uva__gpu *gpu, int64_t device_id,
                        struct uva__gpu_context *out, struct uva_error *error)
{
    struct uva__cu *cu = cu_of(gpu);
    unsigned flags = 0;
    int active = 0;
    int code = UVA__GPU_INVALID_DEVICE;

    if (device_id <= INT_MAX)
        code = cu->cuDeviceGet(&out->device, (int)device_id);
    if (code != 0)
        return uva__gpu_failed(gpu, "cuDeviceGet", code, error);
    code = cu->cuDevicePrimaryCtxGetState(out->device, &flags, &active);
    if (code != 0)
        return uva__gpu_failed(gpu, "cuDevicePrimaryCtxGetState", code, error);
    if (active == 0)
        return uva__vendor_error_set(
            error, ENODEV, "cuda", 0,
            "cuDevicePrimaryCtxGetState failed: the program "
            "has made no primary context on device %lld",
            (long long)device_id);
    code = cu->cuDevicePrimaryCtxRetain(&out->handle, out->device);
    if (code != 0)
        return uva__gpu_failed(gpu, "cuDevicePrimaryCtxRetain", code, error);
    out->retained = true;
    return 0;
}

/* An array in pinned memory may have no device id. */
static int cuda_context_find(struct uva__gpu *gpu, int64_t device_id,
                             struct uva__gpu_context *out,
                             struct uva_error *error)
{
    return primary_find(gpu, device_id < 0 ? 0 : device_id, out, error);
}

/* A default stream belongs to the context which is current on this thread, as
 * for all other calls of the program. The device thread has no context, and a
 * thread may have the context of another device: then the primary context is
 * meant, which the CUDA runtime would use. */
static int default_find(struct uva__gpu *gpu, int64_t device_id,
                        struct uva__gpu_context *out, struct uva_error *error)
{
    struct uva__cu *cu = cu_of(gpu);
    int code = cu->cuCtxGetCurrent(&out->handle);
    int device = -1;

    if (code != 0)
        return uva__gpu_failed(gpu, "cuCtxGetCurrent", code, error);
    if (out->handle == NULL)
        return cuda_context_find(gpu, device_id, out, error);
    code = cu->cuCtxGetDevice(&device);
    if (code != 0)
        return uva__gpu_failed(gpu, "cuCtxGetDevice", code, error);
    out->entered = device_id < 0 || device == device_id;
    return out->entered ? 0 : cuda_context_find(gpu, device_id, out, error);
}

static void cuda_context_drop(struct uva__gpu *gpu,
                              struct uva__gpu_context *context)
{
    if (context->retained)
        (void)cu_of(gpu)->cuDevicePrimaryCtxRelease(context->device);
}

/* The device thread uses the primary context. */
static int cuda_stream_check(void *state, struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__cu *cu = cu_of(gpu);
    struct uva__gpu_context primary = {0};
    uva__cu_context current = NULL;
    struct uva_error none;
    int device = 0;
    bool fits;

    if (cu->cuCtxGetCurrent(&current) != 0 || current == NULL ||
        cu->cuCtxGetDevice(&device) != 0)
        return 0;
    fits = primary_find(gpu, device, &primary, &none) == 0 &&
           primary.handle == current;
    cuda_context_drop(gpu, &primary);
    if (fits)
        return 0;
    return uva_error_set(error, ENOTSUP,
                         "CUDA: a default stream of a context that is not the "
                         "primary one cannot be made to wait: pass a stream "
                         "that was created in the context");
}

/* A green context may be current on one thread only, which may be another one:
 * its primary context is used. */
static int cuda_context_of(struct uva__gpu *gpu, int64_t device_id,
                           uva__gpu_stream stream, struct uva__gpu_context *out,
                           struct uva_error *error)
{
    struct uva__cu *cu = cu_of(gpu);
    uva__cu_green green;
    int code;

    if (uva__stream_is_default(stream))
        return default_find(gpu, device_id, out, error);
    if (cu->cuStreamGetCtx == NULL)
        return cuda_context_find(gpu, device_id, out, error);
    if (cu->cuStreamGetCtx_v2 != NULL)
        code = cu->cuStreamGetCtx_v2(stream, &out->handle, &green);
    else
        code = cu->cuStreamGetCtx(stream, &out->handle);
    return code == 0 ? 0 : uva__gpu_failed(gpu, "cuStreamGetCtx", code, error);
}

static int cuda_enter(struct uva__gpu *gpu, struct uva__gpu_context *context,
                      struct uva_error *error)
{
    const int code =
        context->entered ? 0 : cu_of(gpu)->cuCtxPushCurrent(context->handle);

    return code == 0 ? 0
                     : uva__gpu_failed(gpu, "cuCtxPushCurrent", code, error);
}

static void cuda_leave(struct uva__gpu *gpu, struct uva__gpu_context *context)
{
    void *handle;

    if (!context->entered)
        (void)cu_of(gpu)->cuCtxPopCurrent(&handle);
}

/* ---- memory ------------------------------------------------------------- */

static uva__cu_pointer pointer_of(const void *memory)
{
    return (uintptr_t)memory;
}

static int cuda_copy(struct uva__gpu *gpu, const struct uva_device_copy *copy,
                     uva__gpu_stream stream, struct uva_error *error)
{
    struct uva__cu *cu = cu_of(gpu);
    const int code =
        copy->to_device
            ? cu->cuMemcpyHtoDAsync(pointer_of(copy->target), copy->source,
                                    copy->size_bytes, stream)
            : cu->cuMemcpyDtoHAsync(copy->target, pointer_of(copy->source),
                                    copy->size_bytes, stream);

    return code == 0 ? 0
                     : uva__gpu_failed(gpu,
                                       copy->to_device ? "cuMemcpyHtoDAsync"
                                                       : "cuMemcpyDtoHAsync",
                                       code, error);
}

static int cuda_peers(struct uva__gpu *gpu, const struct uva__gpu_context *from,
                      const struct uva__gpu_context *to, bool *direct,
                      struct uva_error *error)
{
    struct uva__cu *cu = cu_of(gpu);
    int can = 0, code = 0;

    if (cu->cuDeviceCanAccessPeer != NULL && cu->cuMemcpyPeerAsync != NULL)
        code = cu->cuDeviceCanAccessPeer(&can, to->device, from->device);
    *direct = can != 0;
    return code == 0
               ? 0
               : uva__gpu_failed(gpu, "cuDeviceCanAccessPeer", code, error);
}

/* The source may be in the program's own context, or the driver may name no
 * context. */
static void *context_of_memory(struct uva__cu *cu, const void *memory,
                               const struct uva__gpu_context *primary)
{
    uva__cu_context context = NULL;

    if (cu->cuPointerGetAttribute == NULL ||
        cu->cuPointerGetAttribute(&context, UVA__CU_POINTER_CONTEXT,
                                  pointer_of(memory)) != 0 ||
        context == NULL)
        return primary->handle;
    return context;
}

static int cuda_copy_peer(struct uva__gpu *gpu,
                          const struct uva_device_copy *copy,
                          const struct uva__gpu_context *from,
                          const struct uva__gpu_context *to,
                          uva__gpu_stream stream, struct uva_error *error)
{
    struct uva__cu *cu = cu_of(gpu);
    const int code = cu->cuMemcpyPeerAsync(
        pointer_of(copy->target), to->handle, pointer_of(copy->source),
        context_of_memory(cu, copy->source, from), copy->size_bytes, stream);

    return code == 0 ? 0
                     : uva__gpu_failed(gpu, "cuMemcpyPeerAsync", code, error);
}

static bool cuda_is_pooled(struct uva__gpu *gpu,
                           const struct uva__gpu_context *context)
{
    struct uva__cu *cu = cu_of(gpu);
    int supported = 0;

    return cu->cuDeviceGetAttribute != NULL && cu->cuMemAllocAsync != NULL &&
           cu->cuMemFreeAsync != NULL &&
           cu->cuDeviceGetAttribute(&supported, UVA__CU_MEMORY_POOLS_SUPPORTED,
                                    context->device) == 0 &&
           supported != 0;
}

/* Gives memory and the code, and returns the name of the call. */
static const char *memory_new(struct uva__cu *cu, ArrowDeviceType device_type,
                              const uva__gpu_stream *pool, size_t size_bytes,
                              uva__cu_pointer *memory, int *code)
{
    if (device_type == ARROW_DEVICE_CUDA_MANAGED) {
        *code = UVA__GPU_OUT_OF_MEMORY;
        if (cu->cuMemAllocManaged != NULL)
            *code = cu->cuMemAllocManaged(memory, size_bytes,
                                          UVA__CU_MEM_ATTACH_GLOBAL);
        return "cuMemAllocManaged";
    }
    if (pool != NULL) {
        *code = cu->cuMemAllocAsync(memory, size_bytes, *pool);
        return "cuMemAllocAsync";
    }
    *code = cu->cuMemAlloc(memory, size_bytes);
    return "cuMemAlloc";
}

static void *cuda_alloc(struct uva__gpu *gpu, ArrowDeviceType device_type,
                        const uva__gpu_stream *pool, size_t size_bytes,
                        struct uva_error *error)
{
    uva__cu_pointer memory = 0;
    int code;
    const char *call =
        memory_new(cu_of(gpu), device_type, pool, size_bytes, &memory, &code);

    if (code != 0)
        (void)uva__gpu_failed(gpu, call, code, error);
    return code == 0 ? (void *)(uintptr_t)memory : NULL;
}

static void cuda_dealloc(struct uva__gpu *gpu, ArrowDeviceType device_type,
                         const uva__gpu_stream *pool, void *memory)
{
    struct uva__cu *cu = cu_of(gpu);

    if (pool == NULL || device_type == ARROW_DEVICE_CUDA_MANAGED ||
        cu->cuMemFreeAsync(pointer_of(memory), *pool) != 0)
        (void)cu->cuMemFree(pointer_of(memory));
}

/* ---- the library -------------------------------------------------------- */

static const struct uva__gpu_vendor cuda_vendor = {
    .library = {.vendor = "cuda",
                .names = (const char *const[]){"libcuda.so.1", NULL}},
    .calls = cuda_calls,
    .n_calls = sizeof(cuda_calls) / sizeof(cuda_calls[0]),
    .own = cuda_own,
    .n_own = sizeof(cuda_own) / sizeof(cuda_own[0]),
    .context_find = cuda_context_find,
    .context_of = cuda_context_of,
    .context_drop = cuda_context_drop,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .copy = cuda_copy,
    .peers = cuda_peers,
    .copy_peer = cuda_copy_peer,
    .is_pooled = cuda_is_pooled,
    .alloc = cuda_alloc,
    .dealloc = cuda_dealloc,
};

/* The toolkit has a stub library to link with. Its functions are empty. */
static int cuda_poll(struct cuda *cuda, struct uva_error *error)
{
    int version = 0;
    const int code = cuda->cu.cuDriverGetVersion(&version);

    return code == 0
               ? 0
               : uva__gpu_failed(&cuda->gpu, "cuDriverGetVersion", code, error);
}

static int cuda_load(void *ctx, const char *path, void **state,
                     struct uva_error *error)
{
    struct cuda *cuda = calloc(1, sizeof(*cuda));
    int code;

    (void)ctx;
    if (cuda == NULL)
        return uva_error_set(error, ENOMEM, "no memory for CUDA");
    code = uva__gpu_open(&cuda->gpu, &cuda_vendor, path, &cuda->cu, error);
    if (code == 0)
        code = cuda_poll(cuda, error);
    if (code == 0)
        *state = cuda;
    else
        free(cuda);
    return code;
}

const struct uva__vendor_info uva__cuda_info = {
    .vendor = "cuda",
    .query_call = "cuEventQuery",
    .default_streams = true,
    .stream_check = cuda_stream_check,
    .prepare = uva__gpu_prepare,
    .alloc_failed = uva__gpu_alloc_failed,
    .enter = uva__gpu_enter,
    .leave = uva__gpu_leave,
    .alloc_on = uva__gpu_alloc_on,
    .begin_use = uva__gpu_begin_use,
    .peers = uva__gpu_peers,
    .copy_peer = uva__gpu_copy_peer,
    .end_use = uva__gpu_end_use,
};

const struct uva_device_ops uva__cuda_ops =
    UVA__GPU_OPS("CUDA", cuda_load, uva__gpu_arm, uva__gpu_copy, false);

/* Pinned memory need not be copied. */
const struct uva_device_ops uva__cuda_host_ops =
    UVA__GPU_OPS("CUDA_HOST", cuda_load, uva__gpu_arm, NULL, true);

/* Older devices let the host read managed memory only while they are idle, so
 * it is copied like memory of the device. */
const struct uva_device_ops uva__cuda_managed_ops =
    UVA__GPU_OPS("CUDA_MANAGED", cuda_load, uva__gpu_arm, uva__gpu_copy, false);
