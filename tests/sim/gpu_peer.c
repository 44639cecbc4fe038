/* SPDX-License-Identifier: Apache-2.0 */
/* There is one device, number 0. The program has made its primary context.
 * The other acts of a driver of real hardware, in any order, are left to the
 * fibers of device_peer.c. */
#include "sim/gpu_peer.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/cuda_abi.h"
#include "device/hip_abi.h"
#include "device/shared_library.h"
#include "sim/arena.h"
#include "sim/device_peer.h"
#include "sim/engine.h"
#include "sim/expectation.h"
#include "sim/peers.h"

enum { FIBERS = 1024 };

enum memory_kind { MEMORY_DEVICE = 0x51, MEMORY_PINNED };

/* Memory of the driver, after its kind. */
struct memory {
    enum memory_kind kind;
    _Alignas(64) char bytes[];
};

/* A callback that is queued. */
struct callback {
    struct device_stream *stream;
    uva__gpu_callback_fn *fn; /* gets the code; or NULL */
    uva__gpu_host_fn *host;   /* only called without a failure */
    void *user_data;
};

static struct {
    ArrowDeviceType type;
    bool has_callbacks, has_host_functions;
    bool is_scarce;       /* little memory can be pinned */
    int current[FIBERS];  /* how often the context is pushed on each thread */
    bool calling[FIBERS]; /* it runs a callback */
    int retained;         /* by the library */
    int streams;          /* that are not destroyed */
    int events;           /* of the library, that are not destroyed */
    char context;         /* its address identifies the context */
} gpu;

void gpu_begin(void)
{
    memset(&gpu, 0, sizeof(gpu));
}

ArrowDeviceType gpu_draw(bool faulty)
{
    static const ArrowDeviceType types[] = {
        ARROW_DEVICE_CUDA,      ARROW_DEVICE_CUDA_HOST,
        ARROW_DEVICE_ROCM_HOST, ARROW_DEVICE_CUDA_MANAGED,
        ARROW_DEVICE_ROCM,      ARROW_DEVICE_CUDA};

    gpu.type = types[sim_choose(sizeof(types) / sizeof(types[0]))];
    gpu.has_callbacks = peers_chance(2, 3);
    gpu.has_host_functions = !faulty && peers_chance(1, 2);
    gpu.is_scarce = peers_chance(1, 4);
    return gpu.type;
}

static bool is_hip(void)
{
    return gpu.type == ARROW_DEVICE_ROCM || gpu.type == ARROW_DEVICE_ROCM_HOST;
}

bool gpu_type_is_pinned(void)
{
    return gpu.type == ARROW_DEVICE_CUDA_HOST ||
           gpu.type == ARROW_DEVICE_ROCM_HOST;
}

bool gpu_calls_back(void)
{
    return !is_hip() && (gpu.has_callbacks || gpu.has_host_functions);
}

void gpu_check(void)
{
    if (gpu.retained != 0)
        sim_fail("a primary context is retained %d times", gpu.retained);
    if (gpu.streams != 0)
        sim_fail("%d streams were not destroyed", gpu.streams);
    if (gpu.events != 0)
        sim_fail("%d events were not destroyed", gpu.events);
    for (int i = 0; i < FIBERS; i++)
        if (gpu.current[i] != 0)
            sim_fail("fiber %d has a context left", i);
}

/* ---- entering ----------------------------------------------------------- */

static void gpu_enter(const char *call)
{
    sim_flush();
    sim_point();
    if (gpu.calling[sim_self()])
        sim_fail("%s inside a callback", call);
}

/* A call that makes something in the context of its thread. */
static void gpu_enter_context(const char *call)
{
    gpu_enter(call);
    if (!is_hip() && gpu.current[sim_self()] == 0)
        sim_fail("%s without a context", call);
}

/* ---- events and streams ------------------------------------------------- */

static int event_create(uva__gpu_event *event, unsigned flags)
{
    gpu_enter_context("event_create");
    if (flags != UVA__GPU_EVENT_DISABLE_TIMING)
        sim_fail("an event that measures times");
    gpu.events++;
    *event = device_event_blank();
    return 0;
}

static int event_destroy(uva__gpu_event event)
{
    gpu_enter("event_destroy");
    gpu.events--;
    device_event_destroy(event);
    return 0;
}

static int event_record(uva__gpu_event event, uva__gpu_stream stream)
{
    gpu_enter("event_record");
    device_stream_record(stream, event);
    return 0;
}

/* A failure has any code without a meaning. */
static int event_query(uva__gpu_event event)
{
    int state;

    gpu_enter("event_query");
    state = device_event_query(event);
    if (state < 0)
        return UVA__GPU_NOT_READY;
    return state == 0 ? 0 : 700;
}

static int stream_create(uva__gpu_stream *stream, unsigned flags)
{
    gpu_enter_context("stream_create");
    if (flags != UVA__GPU_STREAM_NON_BLOCKING)
        sim_fail("a stream that waits for the default stream");
    gpu.streams++;
    *stream = device_stream_new();
    return 0;
}

static int stream_destroy(uva__gpu_stream stream)
{
    gpu_enter("stream_destroy");
    gpu.streams--;
    device_stream_end(stream);
    return 0;
}

static int stream_wait(uva__gpu_stream stream, uva__gpu_event event,
                       unsigned flags)
{
    gpu_enter("stream_wait");
    if (flags != 0)
        sim_fail("stream_wait with flags");
    device_stream_wait(stream, event);
    return 0;
}

static int stream_synchronize(uva__gpu_stream stream)
{
    gpu_enter("stream_synchronize");
    device_stream_await(stream);
    return 0;
}

/* ---- callbacks ---------------------------------------------------------- */

static void callback_run(void *arg, int code)
{
    struct callback *callback = arg;

    expectation_note("gpu: calls back: %d", code);
    gpu.calling[sim_self()] = true;
    if (callback->fn != NULL)
        callback->fn(callback->stream, code != 0 ? 700 : 0,
                     callback->user_data);
    else if (code == 0)
        callback->host(callback->user_data);
    gpu.calling[sim_self()] = false;
    arena_free(callback);
}

static int callback_queue(struct device_stream *stream,
                          uva__gpu_callback_fn *fn, uva__gpu_host_fn *host,
                          void *user_data)
{
    struct callback *callback = arena_new(sizeof(*callback), "a callback");

    *callback = (struct callback){stream, fn, host, user_data};
    device_stream_call(stream, callback_run, callback);
    return 0;
}

static int stream_callback(uva__gpu_stream stream, uva__gpu_callback_fn *fn,
                           void *user_data, unsigned flags)
{
    gpu_enter("stream_callback");
    if (flags != 0)
        sim_fail("stream_callback with flags");
    return callback_queue(stream, fn, NULL, user_data);
}

static int stream_host(uva__gpu_stream stream, uva__gpu_host_fn *host,
                       void *user_data)
{
    gpu_enter("stream_host");
    return callback_queue(stream, NULL, host, user_data);
}

static int capture_exchange(uva__gpu_capture_mode *mode)
{
    gpu_enter("capture_exchange");
    if (*mode != UVA__GPU_CAPTURE_RELAXED)
        sim_fail("captures are disturbed");
    return 0;
}

/* ---- memory ------------------------------------------------------------- */

static void *memory_new(enum memory_kind kind, size_t size)
{
    struct memory *memory =
        arena_new(sizeof(*memory) + size, "memory of a driver");

    memory->kind = kind;
    return memory->bytes;
}

static int memory_free(enum memory_kind kind, void *bytes)
{
    struct memory *memory =
        (struct memory *)((char *)bytes - offsetof(struct memory, bytes));

    if (memory->kind != kind)
        sim_fail("memory of another kind is freed");
    arena_free(memory);
    return 0;
}

static int host_alloc(void **out, size_t size, unsigned flags)
{
    gpu_enter_context("host_alloc");
    if (flags != UVA__GPU_HOST_PORTABLE)
        sim_fail("pinned memory of one context alone");
    if (gpu.is_scarce && peers_chance(1, 2))
        return UVA__GPU_OUT_OF_MEMORY;
    *out = memory_new(MEMORY_PINNED, size);
    return 0;
}

static int host_free(void *memory)
{
    gpu_enter("host_free");
    return memory_free(MEMORY_PINNED, memory);
}

static int memory_alloc(void **out, size_t size)
{
    gpu_enter_context("memory_alloc");
    *out = memory_new(MEMORY_DEVICE, size);
    return 0;
}

static int memory_dealloc(void *memory)
{
    gpu_enter_context("memory_dealloc");
    return memory_free(MEMORY_DEVICE, memory);
}

static int memory_copy(void *target, const void *source, size_t size,
                       int to_device, uva__gpu_stream stream)
{
    gpu_enter_context("memory_copy");
    (void)to_device;
    device_stream_copy(stream, target, source, size);
    return 0;
}

/* ---- CUDA's own --------------------------------------------------------- */

static int cu_version(int *version)
{
    gpu_enter("cuDriverGetVersion");
    *version = 12000;
    return 0;
}

static int cu_device_get(uva__cu_device *device, int ordinal)
{
    gpu_enter("cuDeviceGet");
    *device = ordinal;
    return ordinal == 0 ? 0 : UVA__GPU_INVALID_DEVICE;
}

static int cu_primary_state(uva__cu_device device, unsigned *flags, int *active)
{
    gpu_enter("cuDevicePrimaryCtxGetState");
    *flags = 0;
    *active = device == 0;
    return 0;
}

static int cu_primary_retain(uva__cu_context *context, uva__cu_device device)
{
    (void)device;
    gpu_enter("cuDevicePrimaryCtxRetain");
    gpu.retained++;
    *context = &gpu.context;
    return 0;
}

static int cu_primary_release(uva__cu_device device)
{
    (void)device;
    gpu_enter("cuDevicePrimaryCtxRelease");
    if (gpu.retained-- == 0)
        sim_fail("a primary context is released that was not retained");
    return 0;
}

static int cu_current(uva__cu_context *context)
{
    gpu_enter("cuCtxGetCurrent");
    *context = gpu.current[sim_self()] > 0 ? &gpu.context : NULL;
    return 0;
}

static int cu_current_device(uva__cu_device *device)
{
    gpu_enter_context("cuCtxGetDevice");
    *device = 0;
    return 0;
}

static int cu_push(uva__cu_context context)
{
    gpu_enter("cuCtxPushCurrent");
    if (context != &gpu.context)
        sim_fail("another context is pushed");
    gpu.current[sim_self()]++;
    return 0;
}

static int cu_pop(uva__cu_context *context)
{
    gpu_enter_context("cuCtxPopCurrent");
    gpu.current[sim_self()]--;
    *context = &gpu.context;
    return 0;
}

static int cu_stream_context(uva__gpu_stream stream, uva__cu_context *context)
{
    (void)stream;
    gpu_enter("cuStreamGetCtx");
    *context = &gpu.context;
    return 0;
}

static int cu_alloc(uva__cu_pointer *out, size_t size)
{
    void *memory = NULL;
    const int code = memory_alloc(&memory, size);

    *out = (uintptr_t)memory;
    return code;
}

static int cu_alloc_managed(uva__cu_pointer *out, size_t size, unsigned flags)
{
    if (flags != UVA__CU_MEM_ATTACH_GLOBAL)
        sim_fail("managed memory of one stream alone");
    return cu_alloc(out, size);
}

static int cu_free(uva__cu_pointer memory)
{
    return memory_dealloc((void *)(uintptr_t)memory);
}

static int cu_copy_to_host(void *target, uva__cu_pointer source, size_t size,
                           uva__gpu_stream stream)
{
    return memory_copy(target, (const void *)(uintptr_t)source, size, 0,
                       stream);
}

static int cu_copy_to_device(uva__cu_pointer target, const void *source,
                             size_t size, uva__gpu_stream stream)
{
    return memory_copy((void *)(uintptr_t)target, source, size, 1, stream);
}

/* ---- HIP's own ---------------------------------------------------------- */

static int hip_get_device(int *device)
{
    gpu_enter("hipGetDevice");
    *device = 0;
    return 0;
}

static int hip_set_device(int device)
{
    gpu_enter("hipSetDevice");
    return device == 0 ? 0 : UVA__GPU_INVALID_DEVICE;
}

static int hip_last_error(void)
{
    gpu_enter("hipGetLastError");
    return 0;
}

static int hip_copy(void *target, const void *source, size_t size,
                    uva__hip_copy_kind kind, uva__gpu_stream stream)
{
    return memory_copy(target, source, size, kind == UVA__HIP_HOST_TO_DEVICE,
                       stream);
}

/* ---- the library -------------------------------------------------------- */

typedef void any_fn(void);

struct name {
    const char *name;
    any_fn *fn;
};

#define FN(symbol, function)                                                   \
    {                                                                          \
        symbol, (any_fn *)(function)                                           \
    }

static const struct name names[] = {
    FN("cuEventCreate", event_create),
    FN("cuEventDestroy_v2", event_destroy),
    FN("cuEventRecord", event_record),
    FN("cuEventQuery", event_query),
    FN("cuStreamCreate", stream_create),
    FN("cuStreamDestroy_v2", stream_destroy),
    FN("cuStreamWaitEvent", stream_wait),
    FN("cuStreamSynchronize", stream_synchronize),
    FN("cuMemHostAlloc", host_alloc),
    FN("cuMemFreeHost", host_free),
    FN("cuStreamAddCallback", stream_callback),
    FN("cuLaunchHostFunc", stream_host),
    FN("cuThreadExchangeStreamCaptureMode", capture_exchange),
    FN("cuDriverGetVersion", cu_version),
    FN("cuDeviceGet", cu_device_get),
    FN("cuDevicePrimaryCtxGetState", cu_primary_state),
    FN("cuDevicePrimaryCtxRetain", cu_primary_retain),
    FN("cuDevicePrimaryCtxRelease_v2", cu_primary_release),
    FN("cuCtxGetCurrent", cu_current),
    FN("cuCtxGetDevice", cu_current_device),
    FN("cuCtxPushCurrent_v2", cu_push),
    FN("cuCtxPopCurrent_v2", cu_pop),
    FN("cuMemAlloc_v2", cu_alloc),
    FN("cuMemFree_v2", cu_free),
    FN("cuMemcpyDtoHAsync_v2", cu_copy_to_host),
    FN("cuMemcpyHtoDAsync_v2", cu_copy_to_device),
    FN("cuMemAllocManaged", cu_alloc_managed),
    FN("cuStreamGetCtx", cu_stream_context),
    FN("hipEventCreateWithFlags", event_create),
    FN("hipEventDestroy", event_destroy),
    FN("hipEventRecord", event_record),
    FN("hipEventQuery", event_query),
    FN("hipStreamCreateWithFlags", stream_create),
    FN("hipStreamDestroy", stream_destroy),
    FN("hipStreamWaitEvent", stream_wait),
    FN("hipStreamSynchronize", stream_synchronize),
    FN("hipHostMalloc", host_alloc),
    FN("hipHostFree", host_free),
    FN("hipGetDevice", hip_get_device),
    FN("hipSetDevice", hip_set_device),
    FN("hipGetLastError", hip_last_error),
    FN("hipMalloc", memory_alloc),
    FN("hipFree", memory_dealloc),
    FN("hipMemcpyAsync", hip_copy),
};

/* Whether the driver of this schedule lacks it. */
static bool is_lacking(const char *name)
{
    if (strcmp(name, "cuStreamAddCallback") == 0)
        return !gpu.has_callbacks;
    if (strcmp(name, "cuLaunchHostFunc") == 0)
        return !gpu.has_host_functions;
    return false;
}

static any_fn *name_find(const char *name)
{
    if (is_lacking(name))
        return NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].fn;
    return NULL;
}

int __wrap_uva__shared_library_open(const struct uva__shared_library *library,
                                    const char *path, void **out,
                                    struct uva_error *error);
int __real_uva__shared_library_open(const struct uva__shared_library *library,
                                    const char *path, void **out,
                                    struct uva_error *error);
int __wrap_uva__shared_library_resolve(
    const struct uva__shared_library *library, void *handle,
    const struct uva__symbol *symbols, size_t count, void *table,
    struct uva_error *error);

int __wrap_uva__shared_library_open(const struct uva__shared_library *library,
                                    const char *path, void **out,
                                    struct uva_error *error)
{
    if (gpu.type == 0 ||
        strcmp(library->vendor, is_hip() ? "hip" : "cuda") != 0)
        return __real_uva__shared_library_open(library, path, out, error);
    expectation_note("gpu: the driver of %s is loaded", library->vendor);
    peers_dawdle();
    device_load_await();
    *out = &gpu;
    return 0;
}

int __wrap_uva__shared_library_resolve(
    const struct uva__shared_library *library, void *handle,
    const struct uva__symbol *symbols, size_t count, void *table,
    struct uva_error *error)
{
    (void)library;
    (void)error;
    if (handle != &gpu)
        sim_fail("functions of another library are looked for");
    for (size_t i = 0; i < count; i++) {
        any_fn *fn = name_find(symbols[i].name);

        if (fn == NULL && !symbols[i].optional)
            sim_fail("%s is not simulated", symbols[i].name);
        memcpy((char *)table + symbols[i].offset, &fn, sizeof(fn));
    }
    return 0;
}
