/* SPDX-License-Identifier: Apache-2.0 */
/* HIP, on AMD's devices. Its events are polled: callbacks were slower, and some
 * of its versions lack them. HIP keeps the code of a failed call for the
 * thread: it is cleared after our calls. Handles belong to one copy of the
 * library, so a copy that the program has loaded is preferred. sync_event is a
 * hipEvent_t *.
 *
 * Clauses: EV-10. */
#include <limits.h>
#include <stdlib.h>

#include "device/builtin.h"
#include "device/gpu.h"
#include "device/hip_abi.h"

struct hip {
    struct uva__gpu gpu; /* first */
    struct uva__hip table;
};

static const struct uva__symbol hip_calls[] = {
    {"hipEventCreateWithFlags", UVA__GPU_CALL(event_create), false},
    {"hipEventDestroy", UVA__GPU_CALL(event_destroy), false},
    {"hipEventRecord", UVA__GPU_CALL(event_record), false},
    {"hipEventQuery", UVA__GPU_CALL(event_query), false},
    {"hipStreamCreateWithFlags", UVA__GPU_CALL(stream_create), false},
    {"hipStreamDestroy", UVA__GPU_CALL(stream_destroy), false},
    {"hipStreamWaitEvent", UVA__GPU_CALL(stream_wait), false},
    {"hipStreamSynchronize", UVA__GPU_CALL(stream_synchronize), false},
    {"hipHostMalloc", UVA__GPU_CALL(host_alloc), false},
    {"hipHostFree", UVA__GPU_CALL(host_free), false},
    {"hipThreadExchangeStreamCaptureMode", UVA__GPU_CALL(capture_exchange),
     true},
};

#define OWN(name, optional)                                                    \
    {                                                                          \
#name, offsetof(struct uva__hip, name), optional                       \
    }

static const struct uva__symbol hip_own[] = {
    OWN(hipGetDevice, false),
    OWN(hipSetDevice, false),
    OWN(hipGetLastError, false),
    OWN(hipMalloc, false),
    OWN(hipFree, false),
    OWN(hipMemcpyAsync, false),
    OWN(hipDeviceCanAccessPeer, true),
    OWN(hipMemcpyPeerAsync, true),
};

static struct uva__hip *hip_of(struct uva__gpu *gpu)
{
    return &((struct hip *)(void *)gpu)->table;
}

/* ---- devices ------------------------------------------------------------ */

/* An array in pinned memory may have no device id. */
static int hip_context_find(struct uva__gpu *gpu, int64_t device_id,
                            struct uva__gpu_context *out,
                            struct uva_error *error)
{
    if (device_id > INT_MAX)
        return uva__gpu_failed(gpu, "hipSetDevice", UVA__GPU_INVALID_DEVICE,
                               error);
    out->device = device_id < 0 ? 0 : (int)device_id;
    return 0;
}

/* A device has one context, so that its default streams have, too. */
static int hip_context_of(struct uva__gpu *gpu, int64_t device_id,
                          uva__gpu_stream stream, struct uva__gpu_context *out,
                          struct uva_error *error)
{
    (void)stream;
    return hip_context_find(gpu, device_id, out, error);
}

static void hip_context_drop(struct uva__gpu *gpu,
                             struct uva__gpu_context *context)
{
    (void)gpu;
    (void)context;
}

static int hip_enter(struct uva__gpu *gpu, struct uva__gpu_context *context,
                     struct uva_error *error)
{
    struct uva__hip *hip = hip_of(gpu);
    int code = hip->hipGetDevice(&context->before);

    if (code != 0)
        return uva__gpu_failed(gpu, "hipGetDevice", code, error);
    if (context->before == context->device)
        return 0;
    code = hip->hipSetDevice(context->device);
    return code == 0 ? 0 : uva__gpu_failed(gpu, "hipSetDevice", code, error);
}

static void hip_leave(struct uva__gpu *gpu, struct uva__gpu_context *context)
{
    if (context->before != context->device)
        (void)hip_of(gpu)->hipSetDevice(context->before);
}

static void hip_forget(struct uva__gpu *gpu)
{
    (void)hip_of(gpu)->hipGetLastError();
}

/* ---- memory ------------------------------------------------------------- */

static int hip_copy(struct uva__gpu *gpu, const struct uva_device_copy *copy,
                    uva__gpu_stream stream, struct uva_error *error)
{
    const int code = hip_of(gpu)->hipMemcpyAsync(
        copy->target, copy->source, copy->size_bytes,
        copy->to_device ? UVA__HIP_HOST_TO_DEVICE : UVA__HIP_DEVICE_TO_HOST,
        stream);

    return code == 0 ? 0 : uva__gpu_failed(gpu, "hipMemcpyAsync", code, error);
}

static int hip_peers(struct uva__gpu *gpu, const struct uva__gpu_context *from,
                     const struct uva__gpu_context *to, bool *direct,
                     struct uva_error *error)
{
    struct uva__hip *hip = hip_of(gpu);
    int can = 0, code = 0;

    if (hip->hipDeviceCanAccessPeer != NULL && hip->hipMemcpyPeerAsync != NULL)
        code = hip->hipDeviceCanAccessPeer(&can, to->device, from->device);
    *direct = can != 0;
    return code == 0
               ? 0
               : uva__gpu_failed(gpu, "hipDeviceCanAccessPeer", code, error);
}

static int hip_copy_peer(struct uva__gpu *gpu,
                         const struct uva_device_copy *copy,
                         const struct uva__gpu_context *from,
                         const struct uva__gpu_context *to,
                         uva__gpu_stream stream, struct uva_error *error)
{
    const int code =
        hip_of(gpu)->hipMemcpyPeerAsync(copy->target, to->device, copy->source,
                                        from->device, copy->size_bytes, stream);

    return code == 0 ? 0
                     : uva__gpu_failed(gpu, "hipMemcpyPeerAsync", code, error);
}

static void *hip_alloc(struct uva__gpu *gpu, ArrowDeviceType device_type,
                       const uva__gpu_stream *pool, size_t size_bytes,
                       struct uva_error *error)
{
    void *memory = NULL;
    const int code = hip_of(gpu)->hipMalloc(&memory, size_bytes);

    (void)device_type;
    (void)pool;
    if (code != 0)
        (void)uva__gpu_failed(gpu, "hipMalloc", code, error);
    return code == 0 ? memory : NULL;
}

static void hip_dealloc(struct uva__gpu *gpu, ArrowDeviceType device_type,
                        const uva__gpu_stream *pool, void *memory)
{
    (void)device_type;
    (void)pool;
    (void)hip_of(gpu)->hipFree(memory);
}

/* ---- the library -------------------------------------------------------- */

static const struct uva__gpu_vendor hip_vendor = {
    .library = {.vendor = "hip",
                .prefix = "libamdhip64",
                .names = (const char *const[]){"libamdhip64.so.7",
                                               "libamdhip64.so.6",
                                               "libamdhip64.so.5",
                                               "libamdhip64.so", NULL}},
    .calls = hip_calls,
    .n_calls = sizeof(hip_calls) / sizeof(hip_calls[0]),
    .own = hip_own,
    .n_own = sizeof(hip_own) / sizeof(hip_own[0]),
    .context_find = hip_context_find,
    .context_of = hip_context_of,
    .context_drop = hip_context_drop,
    .enter = hip_enter,
    .leave = hip_leave,
    .forget = hip_forget,
    .copy = hip_copy,
    .peers = hip_peers,
    .copy_peer = hip_copy_peer,
    .alloc = hip_alloc,
    .dealloc = hip_dealloc,
};

static int hip_load(void *ctx, const char *path, void **state,
                    struct uva_error *error)
{
    struct hip *hip = calloc(1, sizeof(*hip));
    int code;

    (void)ctx;
    if (hip == NULL)
        return uva_error_set(error, ENOMEM, "no memory for HIP");
    code = uva__gpu_open(&hip->gpu, &hip_vendor, path, &hip->table, error);
    if (code == 0)
        *state = hip;
    else
        free(hip);
    return code;
}

const struct uva__vendor_info uva__hip_info = {
    .vendor = "hip",
    .query_call = "hipEventQuery",
    .default_streams = true,
    .alloc_failed = uva__gpu_alloc_failed,
    .enter = uva__gpu_enter,
    .leave = uva__gpu_leave,
    .begin_use = uva__gpu_begin_use,
    .peers = uva__gpu_peers,
    .copy_peer = uva__gpu_copy_peer,
    .end_use = uva__gpu_end_use,
};

/* Polling was faster than callbacks, which some versions do not have. */
const struct uva_device_ops uva__hip_ops =
    UVA__GPU_OPS("ROCM", hip_load, NULL, uva__gpu_copy, false);

/* Pinned memory need not be copied. */
const struct uva_device_ops uva__hip_host_ops =
    UVA__GPU_OPS("ROCM_HOST", hip_load, NULL, NULL, true);
