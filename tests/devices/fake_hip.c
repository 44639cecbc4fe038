/* SPDX-License-Identifier: Apache-2.0 */
/* The fake device under the names of HIP. An error stays with the thread until
 * it is queried. */
#include <stdlib.h>

#include "device/hip_abi.h"
#include "devices/fake_gpu.h"

const bool fake_has_legacy_handle = false; /* as before ROCm 6 */

static _Thread_local int last;

/* Initialises the driver, as any call does, and makes the device current. */
static int hip_begin(unsigned needs)
{
    const int code = fake_init();

    if (code != 0)
        return code;
    if (fake_current() == NULL)
        fake_current_set(fake_primary(0));
    return fake_begin(needs);
}

static int remember(int code)
{
    if (code != 0)
        last = code;
    return code;
}

#define IF_MAY(needs, what)                                                    \
    do {                                                                       \
        FAKE_LOCKED();                                                         \
        const int code = hip_begin(needs);                                     \
        return remember(code != 0 ? code : (what));                            \
    } while (0)

#define ANYHOW(what)                                                           \
    do {                                                                       \
        FAKE_LOCKED();                                                         \
        const int code = hip_begin(0);                                         \
        const int did = (what);                                                \
        return remember(code != 0 ? code : did);                               \
    } while (0)

/* ---- declarations for the compiler -------------------------------------- */

FAKE_API int hipInit(unsigned flags);
FAKE_API int hipGetDeviceCount(int *count);
FAKE_API int hipGetDevice(int *device);
FAKE_API int hipSetDevice(int device);
FAKE_API int hipGetLastError(void);
FAKE_API int hipPeekAtLastError(void);
FAKE_API int hipThreadExchangeStreamCaptureMode(int *mode);
FAKE_API int hipStreamBeginCapture(void *stream, int mode);
FAKE_API int hipStreamEndCapture(void *stream, void **graph);
FAKE_API int hipEventCreateWithFlags(void **event, unsigned flags);
FAKE_API int hipEventDestroy(void *event);
FAKE_API int hipEventRecord(void *event, void *stream);
FAKE_API int hipEventQuery(void *event);
FAKE_API int hipStreamCreateWithFlags(void **stream, unsigned flags);
FAKE_API int hipStreamDestroy(void *stream);
FAKE_API int hipStreamSynchronize(void *stream);
FAKE_API int hipStreamWaitEvent(void *stream, void *event, unsigned flags);
FAKE_API int hipStreamWaitValue32(void *stream, void *word, uint32_t value,
                                  unsigned flags, uint32_t mask);
FAKE_API int hipMalloc(void **memory, size_t size);
FAKE_API int hipFree(void *memory);
FAKE_API int hipHostMalloc(void **memory, size_t size, unsigned flags);
FAKE_API int hipHostFree(void *memory);
FAKE_API int hipDeviceCanAccessPeer(int *direct, int device, int peer);
FAKE_API int hipMemcpyPeerAsync(void *target, int target_device,
                                const void *source, int source_device,
                                size_t size, void *stream);
FAKE_API int hipMemcpyAsync(void *target, const void *source, size_t size,
                            int kind, void *stream);

/* ---- devices ------------------------------------------------------------ */

int hipInit(unsigned flags)
{
    (void)flags;
    IF_MAY(0, 0);
}

int hipGetDeviceCount(int *count)
{
    *count = FAKE_DEVICES;
    IF_MAY(0, 0);
}

int hipGetDevice(int *device)
{
    FAKE_LOCKED();
    const int code = hip_begin(0);

    if (code == 0)
        *device = fake_current()->device;
    return remember(code);
}

int hipSetDevice(int device)
{
    FAKE_LOCKED();
    int code = hip_begin(0);

    if (code == 0 && fake_primary(device) == NULL)
        code = FAKE_INVALID_DEVICE;
    if (code == 0)
        fake_current_set(fake_primary(device));
    return remember(code);
}

int hipGetLastError(void)
{
    const int code = last;

    last = 0;
    return code;
}

int hipPeekAtLastError(void)
{
    return last;
}

/* ---- captures ----------------------------------------------------------- */

int hipThreadExchangeStreamCaptureMode(int *mode)
{
    FAKE_LOCKED();
    const int code = hip_begin(0);

    if (code == 0)
        *mode = fake_capture_mode(*mode);
    return remember(code);
}

int hipStreamBeginCapture(void *stream, int mode)
{
    (void)stream;
    (void)mode;
    return fake_capture_begin();
}

int hipStreamEndCapture(void *stream, void **graph)
{
    (void)stream;
    *graph = NULL;
    return fake_capture_end();
}

/* ---- events ------------------------------------------------------------- */

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    (void)flags;
    IF_MAY(0, fake_event_create(event));
}

int hipEventDestroy(void *event)
{
    ANYHOW(fake_event_destroy(event));
}

int hipEventRecord(void *event, void *stream)
{
    IF_MAY(0, fake_event_record(event, stream));
}

int hipEventQuery(void *event)
{
    IF_MAY(FAKE_UNSAFE | FAKE_REPORTS, fake_event_query(event));
}

/* ---- streams ------------------------------------------------------------ */

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_UNSAFE, fake_stream_create(stream));
}

int hipStreamDestroy(void *stream)
{
    ANYHOW(fake_stream_destroy(stream));
}

int hipStreamSynchronize(void *stream)
{
    IF_MAY(FAKE_UNSAFE | FAKE_REPORTS, fake_stream_synchronize(stream));
}

int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    IF_MAY(0, fake_stream_wait(stream, event));
}

int hipStreamWaitValue32(void *stream, void *word, uint32_t value,
                         unsigned flags, uint32_t mask)
{
    (void)flags;
    (void)mask;
    IF_MAY(0, fake_stream_wait_value(stream, word, value));
}

/* ---- memory ------------------------------------------------------------- */

int hipMalloc(void **memory, size_t size)
{
    IF_MAY(FAKE_UNSAFE, fake_memory_new(memory, size, false));
}

int hipFree(void *memory)
{
    ANYHOW(fake_memory_free(memory));
}

int hipHostMalloc(void **memory, size_t size, unsigned flags)
{
    (void)flags;
    IF_MAY(FAKE_UNSAFE, fake_memory_new(memory, size, true));
}

int hipHostFree(void *memory)
{
    ANYHOW(fake_memory_free(memory));
}

int hipDeviceCanAccessPeer(int *direct, int device, int peer)
{
    IF_MAY(0, fake_peers(direct, device, peer));
}

int hipMemcpyPeerAsync(void *target, int target_device, const void *source,
                       int source_device, size_t size, void *stream)
{
    IF_MAY(0, target_device == source_device
                  ? FAKE_INVALID_DEVICE
                  : fake_stream_peer(stream, target, source, size));
}

int hipMemcpyAsync(void *target, const void *source, size_t size, int kind,
                   void *stream)
{
    IF_MAY(0, kind == UVA__HIP_DEVICE_TO_HOST
                  ? fake_stream_download(stream, target, source, size)
                  : fake_stream_upload(stream, target, source, size));
}
