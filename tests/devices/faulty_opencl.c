/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL with calls that fail when the test requires it. Most calls have no
 * effect then, but calls that free do so anyway. With UVA_FAKE_OLD it is a
 * version without shared virtual memory. Only its path distinguishes it from
 * the library that it forwards to. */
#include "devices/faulty_opencl.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "device/opencl_abi.h"

#define FAULTY_API __attribute__((visibility("default")))

enum { COMMAND_TYPE = 0x11D1, COMMAND_USER = 0x1204 };

static struct uva__cl real;
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static atomic_long fail_at;
static atomic_int fail_code;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*behind)(void *ctx); /* locked, like all members below */
static void *behind_ctx;
static bool keeping;
static struct {
    uva__cl_event_fn *fn;
    void *event, *user_data;
} kept;

/* ---- declarations for the compiler -------------------------------------- */

FAULTY_API void faultycl_fail(long n, int code);
FAULTY_API long faultycl_left(void);
FAULTY_API void faultycl_behind_copy(void (*fn)(void *ctx), void *ctx);
FAULTY_API void faultycl_keep_callback(bool keep);
FAULTY_API bool faultycl_call_back(int status);

FAULTY_API int32_t clGetEventInfo(void *event, uint32_t what, size_t size,
                                  void *value, size_t *size_out);
FAULTY_API int32_t clWaitForEvents(uint32_t count, void *const *events);
FAULTY_API int32_t clRetainEvent(void *event);
FAULTY_API int32_t clReleaseEvent(void *event);
FAULTY_API int32_t clSetEventCallback(void *event, int32_t status,
                                      uva__cl_event_fn *fn, void *user_data);
FAULTY_API int32_t clFlush(void *queue);
FAULTY_API int32_t clEnqueueMarkerWithWaitList(void *queue, uint32_t count,
                                               void *const *events,
                                               void **event);
FAULTY_API int32_t clEnqueueBarrierWithWaitList(void *queue, uint32_t count,
                                                void *const *events,
                                                void **event);
FAULTY_API int32_t clGetMemObjectInfo(void *memory, uint32_t what, size_t size,
                                      void *value, size_t *size_out);
FAULTY_API int32_t clGetContextInfo(void *context, uint32_t what, size_t size,
                                    void *value, size_t *size_out);
FAULTY_API int32_t clRetainContext(void *context);
FAULTY_API int32_t clReleaseContext(void *context);
FAULTY_API void *clCreateCommandQueue(void *context, void *device,
                                      uint64_t properties, int32_t *code);
FAULTY_API int32_t clReleaseCommandQueue(void *queue);
FAULTY_API int32_t clEnqueueReadBuffer(void *queue, void *memory,
                                       uint32_t blocking, size_t offset,
                                       size_t size, void *target,
                                       uint32_t count, void *const *events,
                                       void **event);
FAULTY_API int32_t clEnqueueWriteBuffer(void *queue, void *memory,
                                        uint32_t blocking, size_t offset,
                                        size_t size, const void *source,
                                        uint32_t count, void *const *events,
                                        void **event);
FAULTY_API void *clCreateBuffer(void *context, uint64_t flags, size_t size,
                                void *host, int32_t *code);
FAULTY_API int32_t clReleaseMemObject(void *memory);
#ifndef UVA_FAKE_OLD
FAULTY_API void *clSVMAlloc(void *context, uint64_t flags, size_t size,
                            uint32_t alignment);
FAULTY_API void clSVMFree(void *context, void *memory);
FAULTY_API int32_t clEnqueueSVMMemcpy(void *queue, uint32_t blocking,
                                      void *target, const void *source,
                                      size_t size, uint32_t count,
                                      void *const *events, void **event);
#endif

/* ---- the control -------------------------------------------------------- */

void faultycl_fail(long n, int code)
{
    atomic_store(&fail_code, code);
    atomic_store(&fail_at, n);
}

long faultycl_left(void)
{
    return atomic_load(&fail_at);
}

void faultycl_behind_copy(void (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&lock);
    behind = fn;
    behind_ctx = ctx;
    pthread_mutex_unlock(&lock);
}

void faultycl_keep_callback(bool keep)
{
    pthread_mutex_lock(&lock);
    keeping = keep;
    kept.fn = NULL;
    pthread_mutex_unlock(&lock);
}

bool faultycl_call_back(int status)
{
    uva__cl_event_fn *fn;

    pthread_mutex_lock(&lock);
    fn = kept.fn;
    kept.fn = NULL;
    pthread_mutex_unlock(&lock);
    if (fn != NULL)
        fn(kept.event, status, kept.user_data);
    return fn != NULL;
}

/* ---- the real library --------------------------------------------------- */

static void find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);

    memcpy(out, &address, sizeof(address));
}

#define FIND(name) find(library, #name, &real.name)

static void library_open(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

    assert(library != NULL);
    FIND(clGetEventInfo);
    FIND(clWaitForEvents);
    FIND(clRetainEvent);
    FIND(clReleaseEvent);
    FIND(clSetEventCallback);
    FIND(clFlush);
    FIND(clEnqueueMarkerWithWaitList);
    FIND(clEnqueueBarrierWithWaitList);
    FIND(clGetMemObjectInfo);
    FIND(clGetContextInfo);
    FIND(clRetainContext);
    FIND(clReleaseContext);
    FIND(clCreateCommandQueue);
    FIND(clReleaseCommandQueue);
    FIND(clEnqueueReadBuffer);
    FIND(clEnqueueWriteBuffer);
    FIND(clCreateBuffer);
    FIND(clReleaseMemObject);
    FIND(clSVMAlloc);
    FIND(clSVMFree);
    FIND(clEnqueueSVMMemcpy);
}

/* Returns the code with which the test wants this call to fail, or 0. */
static int32_t faulty_begin(void)
{
    (void)pthread_once(&opened, library_open);
    if (atomic_load(&fail_at) <= 0 || atomic_fetch_sub(&fail_at, 1) != 1)
        return 0;
    atomic_store(&fail_at, -1);
    return atomic_load(&fail_code);
}

/* Makes the call only if it is not to fail. */
#define IF_MAY(what)                                                           \
    do {                                                                       \
        const int32_t code = faulty_begin();                                   \
        return code != 0 ? code : (what);                                      \
    } while (0)

/* Frees even if the call is to fail. */
#define ANYHOW(what)                                                           \
    do {                                                                       \
        const int32_t code = faulty_begin();                                   \
        const int32_t did = (what);                                            \
        return code != 0 ? code : did;                                         \
    } while (0)

/* ---- events ------------------------------------------------------------- */

/* Waits for an event before a call reports that it cannot be queried, because
 * the library then releases the objects that its command uses. */
static void event_finish(void *event)
{
    uint32_t type = COMMAND_USER;

    (void)real.clGetEventInfo(event, COMMAND_TYPE, sizeof(type), &type, NULL);
    if (type != COMMAND_USER)
        (void)real.clWaitForEvents(1, &event);
}

int32_t clGetEventInfo(void *event, uint32_t what, size_t size, void *value,
                       size_t *size_out)
{
    const int32_t code = faulty_begin();

    if (code == 0)
        return real.clGetEventInfo(event, what, size, value, size_out);
    if (what == UVA__CL_EVENT_COMMAND_EXECUTION_STATUS)
        event_finish(event);
    return code;
}

/* Called for complete events only. */
int32_t clWaitForEvents(uint32_t count, void *const *events)
{
    ANYHOW(real.clWaitForEvents(count, events));
}

int32_t clRetainEvent(void *event)
{
    IF_MAY(real.clRetainEvent(event));
}

int32_t clReleaseEvent(void *event)
{
    ANYHOW(real.clReleaseEvent(event));
}

static bool callback_keep(void *event, uva__cl_event_fn *fn, void *user_data)
{
    bool keep;

    pthread_mutex_lock(&lock);
    keep = keeping;
    if (keep) {
        kept.fn = fn;
        kept.event = event;
        kept.user_data = user_data;
    }
    pthread_mutex_unlock(&lock);
    return keep;
}

int32_t clSetEventCallback(void *event, int32_t status, uva__cl_event_fn *fn,
                           void *user_data)
{
    if (callback_keep(event, fn, user_data))
        return 0;
    IF_MAY(real.clSetEventCallback(event, status, fn, user_data));
}

/* ---- queues ------------------------------------------------------------- */

int32_t clFlush(void *queue)
{
    ANYHOW(real.clFlush(queue));
}

int32_t clEnqueueMarkerWithWaitList(void *queue, uint32_t count,
                                    void *const *events, void **event)
{
    IF_MAY(real.clEnqueueMarkerWithWaitList(queue, count, events, event));
}

int32_t clEnqueueBarrierWithWaitList(void *queue, uint32_t count,
                                     void *const *events, void **event)
{
    IF_MAY(real.clEnqueueBarrierWithWaitList(queue, count, events, event));
}

int32_t clGetContextInfo(void *context, uint32_t what, size_t size, void *value,
                         size_t *size_out)
{
    IF_MAY(real.clGetContextInfo(context, what, size, value, size_out));
}

int32_t clRetainContext(void *context)
{
    return real.clRetainContext(context);
}

int32_t clReleaseContext(void *context)
{
    return real.clReleaseContext(context);
}

void *clCreateCommandQueue(void *context, void *device, uint64_t properties,
                           int32_t *code)
{
    *code = faulty_begin();
    return *code != 0
               ? NULL
               : real.clCreateCommandQueue(context, device, properties, code);
}

int32_t clReleaseCommandQueue(void *queue)
{
    ANYHOW(real.clReleaseCommandQueue(queue));
}

/* ---- copies ------------------------------------------------------------- */

static int32_t copy_end(int32_t code)
{
    void (*fn)(void *ctx);

    pthread_mutex_lock(&lock);
    fn = behind;
    behind = NULL;
    pthread_mutex_unlock(&lock);
    if (fn != NULL)
        fn(behind_ctx);
    return code;
}

int32_t clEnqueueReadBuffer(void *queue, void *memory, uint32_t blocking,
                            size_t offset, size_t size, void *target,
                            uint32_t count, void *const *events, void **event)
{
    IF_MAY(copy_end(real.clEnqueueReadBuffer(
        queue, memory, blocking, offset, size, target, count, events, event)));
}

int32_t clEnqueueWriteBuffer(void *queue, void *memory, uint32_t blocking,
                             size_t offset, size_t size, const void *source,
                             uint32_t count, void *const *events, void **event)
{
    IF_MAY(copy_end(real.clEnqueueWriteBuffer(
        queue, memory, blocking, offset, size, source, count, events, event)));
}

#ifndef UVA_FAKE_OLD
int32_t clEnqueueSVMMemcpy(void *queue, uint32_t blocking, void *target,
                           const void *source, size_t size, uint32_t count,
                           void *const *events, void **event)
{
    IF_MAY(copy_end(real.clEnqueueSVMMemcpy(queue, blocking, target, source,
                                            size, count, events, event)));
}
#endif

/* ---- memory ------------------------------------------------------------- */

int32_t clGetMemObjectInfo(void *memory, uint32_t what, size_t size,
                           void *value, size_t *size_out)
{
    IF_MAY(real.clGetMemObjectInfo(memory, what, size, value, size_out));
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host,
                     int32_t *code)
{
    *code = faulty_begin();
    return *code != 0 ? NULL
                      : real.clCreateBuffer(context, flags, size, host, code);
}

int32_t clReleaseMemObject(void *memory)
{
    ANYHOW(real.clReleaseMemObject(memory));
}

#ifndef UVA_FAKE_OLD
void *clSVMAlloc(void *context, uint64_t flags, size_t size, uint32_t alignment)
{
    return faulty_begin() != 0
               ? NULL
               : real.clSVMAlloc(context, flags, size, alignment);
}

void clSVMFree(void *context, void *memory)
{
    real.clSVMFree(context, memory);
}
#endif
