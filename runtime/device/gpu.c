/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of struct uva_device_ops that CUDA and HIP share.
 *
 * Happy path:  an event is polled for some milliseconds -> if it is still
 *              pending, our stream waits for it and then calls back.
 *
 * Failures:    every call. If no callback can be armed, the event is polled for
 *              as long as it takes. After a failure of the device all later
 *              calls fail, so results of calls that free are ignored. */
#include "device/gpu.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/device_traits.h"
#include "arrow/vendor_error.h"
#include "device/gpu_streams.h"

enum { SLOT_SEEN, SLOT_CALLBACK, SLOT_VENDOR }; /* of uva_watch_slots() */

/* ---- events ------------------------------------------------------------- */

static uva__gpu_event event_of(const struct uva_device_event *event)
{
    return *(uva__gpu_event *)event->sync_event;
}

/* The vendor for which this thread is in relaxed mode: its calls do not disturb
 * captures on other threads. */
static _Thread_local const struct uva__gpu_vendor *relaxed;

/* Otherwise our call could invalidate a capture on another thread. Done once
 * for the thread, as soon as the program has initialised the driver; again
 * where a program uses two vendors. */
static void gpu_relax(struct uva__gpu *gpu)
{
    uva__gpu_capture_mode mode = UVA__GPU_CAPTURE_RELAXED;

    if (relaxed != gpu->vendor && gpu->calls.capture_exchange != NULL &&
        gpu->calls.capture_exchange(&mode) == 0)
        relaxed = gpu->vendor;
}

/* No context has to be current. */
int uva__gpu_query(void *state, const struct uva_device_event *event,
                   struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    int code;

    gpu_relax(gpu);
    code = gpu->calls.event_query(event_of(event));
    if (code != UVA__GPU_NOT_READY)
        return uva__gpu_result(gpu, UVA__GPU_CALL(event_query), code, error);
    if (gpu->vendor->forget != NULL)
        gpu->vendor->forget(gpu);
    error->vendor_code = code;
    return EAGAIN;
}

/* ---- contexts ----------------------------------------------------------- */

/* Makes the context of the program stream current. */
static int context_enter(struct uva__gpu *gpu, int64_t device_id,
                         uva__gpu_stream stream,
                         struct uva__gpu_context *context,
                         struct uva_error *error)
{
    int code = gpu->vendor->context_of(gpu, device_id, stream, context, error);

    if (code != 0)
        return code;
    code = gpu->vendor->enter(gpu, context, error);
    if (code != 0)
        gpu->vendor->context_drop(gpu, context);
    return code;
}

static void context_leave(struct uva__gpu *gpu,
                          struct uva__gpu_context *context)
{
    gpu->vendor->leave(gpu, context);
    gpu->vendor->context_drop(gpu, context);
}

/* Makes the context of our streams current; vendor->leave() undoes it. */
static int streams_enter(struct uva__gpu *gpu, int64_t device_id,
                         struct uva__gpu_streams **out, struct uva_error *error)
{
    int code = uva__gpu_streams_find(gpu, device_id, out, error);

    return code == 0 ? gpu->vendor->enter(gpu, &(*out)->context, error) : code;
}

/* ---- arming ------------------------------------------------------------- */

/* Runs on a vendor thread, which may not call functions of its library here. */
static void event_wait_called(struct uva_watch *watch, int code)
{
    void **slots = uva_watch_slots(watch);

    uva__gpu_callback_stream_drop(slots[SLOT_CALLBACK]);
    uva_watch_notify(watch, code != 0 ? EIO : 0, code, slots[SLOT_VENDOR]);
}

static void stream_called(uva__gpu_stream stream, uva__gpu_code code,
                          void *user_data)
{
    (void)stream;
    event_wait_called(user_data, code);
}

static void host_called(void *user_data)
{
    event_wait_called(user_data, 0);
}

/* A callback with a status comes for failures too; the other kind does not. */
static int callback_queue(struct uva__gpu *gpu,
                          struct uva__gpu_callback_stream *callback,
                          struct uva_watch *watch)
{
    const struct uva__gpu_calls *calls = &gpu->calls;

    if (calls->stream_callback != NULL)
        return calls->stream_callback(callback->stream, stream_called, watch,
                                      0);
    return calls->stream_host(callback->stream, host_called, watch);
}

/* The context is current. */
static bool callback_arm(struct uva__gpu *gpu,
                         struct uva__gpu_callback_stream *callback,
                         const struct uva_device_event *event,
                         struct uva_watch *watch)
{
    void **slots = uva_watch_slots(watch);
    int code;

    slots[SLOT_CALLBACK] = callback;
    slots[SLOT_VENDOR] = (void *)(uintptr_t)gpu->vendor->library.vendor;
    code = gpu->calls.stream_wait(callback->stream, event_of(event), 0);
    if (code == 0)
        code = callback_queue(gpu, callback, watch);
    if (code == 0)
        return true;
    uva__gpu_callback_stream_drop(callback);
    return false;
}

/* Declines the first time, since most events are complete before a callback is
 * worth its cost. Only for vendors that do not keep codes of failed calls. */
int uva__gpu_arm(void *state, const struct uva_device_event *event,
                 struct uva_watch *watch, struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    void **slots = uva_watch_slots(watch);
    struct uva__gpu_callback_stream *callback;
    struct uva__gpu_context context;
    bool armed;

    if (slots[SLOT_SEEN] == NULL) {
        slots[SLOT_SEEN] = gpu;
        return EAGAIN;
    }
    callback = uva__gpu_streams_callback(gpu, event->device_id, &context);
    if (callback == NULL)
        return EAGAIN;
    if (gpu->vendor->enter(gpu, &context, error) != 0) {
        uva__gpu_callback_stream_drop(callback);
        return EAGAIN;
    }
    armed = callback_arm(gpu, callback, event, watch);
    gpu->vendor->leave(gpu, &context);
    return armed ? EINPROGRESS : EAGAIN;
}

/* Makes one stream more for callbacks. */
void uva__gpu_prepare(void *state, int64_t device_id)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_streams *streams;
    struct uva_error none;

    if (gpu->calls.stream_callback == NULL && gpu->calls.stream_host == NULL)
        return;
    gpu_relax(gpu);
    if (streams_enter(gpu, device_id, &streams, &none) != 0)
        return;
    uva__gpu_streams_prepare(gpu, streams);
    gpu->vendor->leave(gpu, &streams->context);
}

/* ---- the program's streams ---------------------------------------------- */

/* Gives a program's stream as each version of a driver knows it: older versions
 * of HIP have no handle 1 for the legacy default stream, and others have it
 * elsewhere. NULL is that stream in all functions that we look up. */
static uva__gpu_stream stream_of(void *device_stream)
{
    return (uintptr_t)device_stream == UVA__GPU_STREAM_LEGACY ? NULL
                                                              : device_stream;
}

/* Makes our own event. The context is current. */
static int event_new(struct uva__gpu *gpu, uva__gpu_event **out,
                     struct uva_error *error)
{
    uva__gpu_event *box = malloc(sizeof(*box));
    int code;

    if (box == NULL)
        return uva_error_set(error, ENOMEM, "no memory for an event");
    code = uva__gpu_result(
        gpu, UVA__GPU_CALL(event_create),
        gpu->calls.event_create(box, UVA__GPU_EVENT_DISABLE_TIMING), error);
    if (code != 0) {
        free(box);
        return code;
    }
    *out = box;
    return 0;
}

void uva__gpu_event_free(void *state, void *event)
{
    struct uva__gpu *gpu = state;

    (void)gpu->calls.event_destroy(*(uva__gpu_event *)event);
    free(event);
}

static int event_record(struct uva__gpu *gpu, uva__gpu_event *box,
                        uva__gpu_stream stream, struct uva_error *error)
{
    return uva__gpu_result(gpu, UVA__GPU_CALL(event_record),
                           gpu->calls.event_record(*box, stream), error);
}

static int stream_record(struct uva__gpu *gpu, uva__gpu_stream stream,
                         void **event_out, struct uva_error *error)
{
    uva__gpu_event *box = NULL;
    int code = event_new(gpu, &box, error);

    if (code != 0)
        return code;
    code = event_record(gpu, box, stream, error);
    if (code != 0)
        uva__gpu_event_free(gpu, box);
    else
        *event_out = box;
    return code;
}

int uva__gpu_record(void *state, const struct uva_device_event *device,
                    void *device_stream, void **event_out,
                    struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_context context = {0};
    int code =
        context_enter(gpu, device->device_id, device_stream, &context, error);

    if (code != 0)
        return code;
    code = stream_record(gpu, stream_of(device_stream), event_out, error);
    context_leave(gpu, &context);
    return code;
}

/* The stream is another one on each thread, and this thread is not the
 * program's. */
static int stream_of_thread(const struct uva__gpu *gpu, struct uva_error *error)
{
    return uva__vendor_error_set(
        error, ENOTSUP, gpu->vendor->library.vendor, 0,
        "the stream handle 2 is the default stream of the thread that uses it, "
        "and the library uses it on its own thread: pass a stream that "
        "was created, or 0 for the legacy default stream");
}

int uva__gpu_stream_wait(void *state, const struct uva_device_event *event,
                         void *device_stream, struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_context context = {0};
    int code;

    if ((uintptr_t)device_stream == UVA__GPU_STREAM_PER_THREAD)
        return stream_of_thread(gpu, error);
    code = context_enter(gpu, event->device_id, device_stream, &context, error);

    if (code != 0)
        return code;
    code = uva__gpu_result(
        gpu, UVA__GPU_CALL(stream_wait),
        gpu->calls.stream_wait(stream_of(device_stream), event_of(event), 0),
        error);
    context_leave(gpu, &context);
    return code;
}

/* Makes the context of a program's stream current. The handle of a thread's
 * default stream means another one here, and is refused. */
static int program_enter(struct uva__gpu *gpu, int64_t device_id,
                         void *device_stream, struct uva__gpu_context *context,
                         struct uva_error *error)
{
    if ((uintptr_t)device_stream == UVA__GPU_STREAM_PER_THREAD)
        return stream_of_thread(gpu, error);
    gpu_relax(gpu);
    return context_enter(gpu, device_id, device_stream, context, error);
}

/* A program function is called in between. */
int uva__gpu_enter(void *state, int64_t device_id, void *device_stream,
                   struct uva__stream_scope *scope, struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_context context = {0};
    int code;

    static_assert(sizeof(context) <= sizeof(*scope), "a scope is too small");
    code = program_enter(gpu, device_id, device_stream, &context, error);
    if (code == 0)
        memcpy(scope, &context, sizeof(context));
    return code;
}

void uva__gpu_leave(void *state, struct uva__stream_scope *scope)
{
    struct uva__gpu_context context;

    memcpy(&context, scope, sizeof(context));
    context_leave(state, &context);
}

/* ---- copies ------------------------------------------------------------- */

/* A copy without an event cannot be waited for: on failure it is drained here,
 * since it must not outlive its buffers. */
static int copy_end(struct uva__gpu *gpu, uva__gpu_event *box,
                    uva__gpu_stream stream, struct uva_error *error)
{
    const int code = event_record(gpu, box, stream, error);

    if (code != 0)
        (void)gpu->calls.stream_synchronize(stream);
    return code;
}

/* The two ends of a copy; all NULL: the host and the current device. */
struct ends {
    const struct uva__gpu_context *from, *to; /* borrow */
};

static int copy_queue(struct uva__gpu *gpu, uva__gpu_stream stream,
                      const struct uva_device_copy *copy,
                      const struct ends *ends, uva__gpu_event *box,
                      struct uva_error *error)
{
    int code = 0;

    if (copy->after.sync_event != NULL)
        code = uva__gpu_result(
            gpu, UVA__GPU_CALL(stream_wait),
            gpu->calls.stream_wait(stream, event_of(&copy->after), 0), error);
    if (code == 0)
        code = ends->from == NULL
                   ? gpu->vendor->copy(gpu, copy, stream, error)
                   : gpu->vendor->copy_peer(gpu, copy, ends->from, ends->to,
                                            stream, error);
    if (code == 0 && box != NULL)
        code = copy_end(gpu, box, stream, error);
    return code;
}

/* The event is made first: no copy is queued that could not be waited for. */
static int copy_begin(struct uva__gpu *gpu, uva__gpu_stream stream,
                      const struct uva_device_copy *copy,
                      const struct ends *ends, void **event_out,
                      struct uva_error *error)
{
    uva__gpu_event *box = NULL;
    int code = 0;

    if (event_out != NULL)
        code = event_new(gpu, &box, error);
    if (code == 0)
        code = copy_queue(gpu, stream, copy, ends, box, error);
    if (code != 0 && box != NULL)
        uva__gpu_event_free(gpu, box);
    else if (code == 0 && box != NULL)
        *event_out = box;
    return code;
}

int uva__gpu_copy(void *state, const struct uva_device_copy *copy,
                  void **event_out, struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_streams *streams;
    uva__gpu_stream stream;
    int code;

    gpu_relax(gpu);
    code = streams_enter(gpu, copy->after.device_id, &streams, error);
    if (code != 0)
        return code;
    code = uva__gpu_streams_copy(gpu, streams, copy->to_device, &stream, error);
    if (code == 0)
        code =
            copy_begin(gpu, stream, copy, &(struct ends){0}, event_out, error);
    gpu->vendor->leave(gpu, &streams->context);
    return code;
}

int uva__gpu_copy_on(void *state, const struct uva_device_copy *copy,
                     void *device_stream, void **event_out,
                     struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_context context = {0};
    int code = program_enter(gpu, copy->after.device_id, device_stream,
                             &context, error);

    if (code != 0)
        return code;
    code = copy_begin(gpu, stream_of(device_stream), copy, &(struct ends){0},
                      event_out, error);
    context_leave(gpu, &context);
    return code;
}

/* ---- between devices ---------------------------------------------------- */

int uva__gpu_peers(void *state, int64_t from_id, int64_t to_id, bool *direct,
                   struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_streams *from, *to;
    int code;

    gpu_relax(gpu);
    code = uva__gpu_streams_find(gpu, from_id, &from, error);
    if (code == 0)
        code = uva__gpu_streams_find(gpu, to_id, &to, error);
    if (code == 0)
        code = gpu->vendor->peers(gpu, &from->context, &to->context, direct,
                                  error);
    return code;
}

/* The target's context is current, and the copy is queued there. Memory is the
 * library's, which is in the primary context, whatever context the caller's
 * stream has. */
int uva__gpu_copy_peer(void *state, const struct uva_device_copy *copy,
                       int64_t to_id, void *device_stream, void **event_out,
                       struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_streams *from, *to;
    struct uva__gpu_context own = {0};
    uva__gpu_stream stream = stream_of(device_stream);
    int code = uva__gpu_streams_find(gpu, copy->after.device_id, &from, error);

    if (code == 0)
        code = uva__gpu_streams_find(gpu, to_id, &to, error);
    if (code == 0)
        code = device_stream != NULL
                   ? program_enter(gpu, to_id, device_stream, &own, error)
                   : gpu->vendor->enter(gpu, &to->context, error);
    if (code != 0)
        return code;
    if (device_stream == NULL)
        code = uva__gpu_streams_copy(gpu, to, true, &stream, error);
    if (code == 0)
        code = copy_begin(gpu, stream, copy,
                          &(struct ends){&from->context, &to->context},
                          event_out, error);
    if (device_stream != NULL)
        context_leave(gpu, &own);
    else
        gpu->vendor->leave(gpu, &to->context);
    return code;
}

/* ---- memory ------------------------------------------------------------- */

static void *pinned_alloc(struct uva__gpu *gpu, size_t size_bytes,
                          struct uva_error *error)
{
    void *memory = NULL;
    const int code = uva__gpu_result(
        gpu, UVA__GPU_CALL(host_alloc),
        gpu->calls.host_alloc(&memory, size_bytes, UVA__GPU_HOST_PORTABLE),
        error);

    return code == 0 ? memory : NULL;
}

/* Gives the stream that orders the library's memory; NULL: memory is allocated
 * and freed at once. The context is current. */
static const uva__gpu_stream *pool_find(struct uva__gpu *gpu,
                                        struct uva__gpu_streams *streams,
                                        uva__gpu_stream *stream)
{
    struct uva_error none;

    return streams->pooled &&
                   uva__gpu_streams_copy(gpu, streams, true, stream, &none) == 0
               ? stream
               : NULL;
}

/* `program`: a program's stream, or NULL. */
static void *memory_new(struct uva__gpu *gpu, ArrowDeviceType device_type,
                        int64_t device_id, const uva__gpu_stream *program,
                        size_t size_bytes)
{
    struct uva_error *error = &gpu->no_memory;
    struct uva__gpu_streams *streams;
    uva__gpu_stream stream;
    void *memory;

    gpu_relax(gpu);
    if (streams_enter(gpu, device_id, &streams, error) != 0)
        return NULL;
    if (program == NULL || !streams->pooled)
        program = pool_find(gpu, streams, &stream);
    memory =
        uva__device_is_pinned(device_type)
            ? pinned_alloc(gpu, size_bytes, error)
            : gpu->vendor->alloc(gpu, device_type, program, size_bytes, error);
    gpu->vendor->leave(gpu, &streams->context);
    return memory;
}

void *uva__gpu_alloc(void *state, ArrowDeviceType device_type,
                     int64_t device_id, size_t size_bytes)
{
    return memory_new(state, device_type, device_id, NULL, size_bytes);
}

void *uva__gpu_alloc_on(void *state, ArrowDeviceType device_type,
                        int64_t device_id, void *device_stream,
                        size_t size_bytes)
{
    const uva__gpu_stream stream = stream_of(device_stream);

    return memory_new(state, device_type, device_id, &stream, size_bytes);
}

int uva__gpu_alloc_failed(void *state, struct uva_error *error)
{
    *error = ((struct uva__gpu *)state)->no_memory;
    return error->code;
}

void uva__gpu_dealloc(void *state, ArrowDeviceType device_type,
                      int64_t device_id, void *memory)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_streams *streams;
    uva__gpu_stream stream;
    struct uva_error error;
    const bool inside = streams_enter(gpu, device_id, &streams, &error) == 0;

    if (uva__device_is_pinned(device_type))
        (void)gpu->calls.host_free(memory);
    else
        gpu->vendor->dealloc(gpu, device_type,
                             inside ? pool_find(gpu, streams, &stream) : NULL,
                             memory);
    if (inside)
        gpu->vendor->leave(gpu, &streams->context);
}

/* ---- user functions ----------------------------------------------------- */

int uva__gpu_begin_use(void *state, int64_t device_id, void **stream,
                       struct uva_error *error)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_streams *streams;
    int code;

    gpu_relax(gpu);
    code = streams_enter(gpu, device_id, &streams, error);
    if (code != 0)
        return code;
    code = uva__gpu_streams_copy(gpu, streams, true, stream, error);
    if (code != 0)
        gpu->vendor->leave(gpu, &streams->context);
    return code;
}

void uva__gpu_end_use(void *state, int64_t device_id)
{
    struct uva__gpu *gpu = state;
    struct uva__gpu_streams *streams;
    struct uva_error none;

    if (uva__gpu_streams_find(gpu, device_id, &streams, &none) == 0)
        gpu->vendor->leave(gpu, &streams->context);
}

/* ---- unloading ---------------------------------------------------------- */

void uva__gpu_unload(void *state)
{
    uva__gpu_streams_free(state);
    free(state);
}
