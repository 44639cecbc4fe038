/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a device keep their context alive. */
#include "device/gpu_streams.h"

#include <errno.h>
#include <stdlib.h>

enum { DEVICES_COUNTED = 64 }; /* if there are more, some share a count */

/* The callbacks that have not come, on each device. */
static struct uva__atomic64 armed_on[DEVICES_COUNTED];

/* ---- streams for callbacks ---------------------------------------------- */

static void callback_stream_release(struct uva__gpu_callback_stream *callback)
{
    if (uva__atomic64_sub(&callback->refs, 1) == 1)
        free(callback);
}

/* It may have been given up. */
void uva__gpu_callback_stream_drop(struct uva__gpu_callback_stream *callback)
{
    uint64_t armed = uva__atomic64_load(&callback->armed);

    while (armed != 0 &&
           !uva__atomic64_cas(&callback->armed, &armed, armed - 1))
        ;
    if (armed != 0)
        uva__atomic64_sub(callback->on_device, 1);
    callback_stream_release(callback);
}

/* Gives up callbacks that have not come: functions without a status are never
 * called if the device has failed. */
static void callback_stream_forget(struct uva__gpu_callback_stream *callback)
{
    uva__atomic64_sub(callback->on_device,
                      uva__atomic64_exchange(&callback->armed, 0));
}

static struct uva__gpu_callback_stream *
callback_stream_new(struct uva__gpu *gpu, int device)
{
    struct uva__gpu_callback_stream *callback = calloc(1, sizeof(*callback));
    const size_t call = UVA__GPU_CALL(stream_create);
    struct uva_error error;

    if (callback == NULL)
        return NULL;
    if (uva__gpu_result(gpu, call,
                        gpu->calls.stream_create(&callback->stream,
                                                 UVA__GPU_STREAM_NON_BLOCKING),
                        &error) != 0) {
        free(callback);
        return NULL;
    }
    callback->on_device = &armed_on[(unsigned)device % DEVICES_COUNTED];
    uva__atomic64_store(&callback->refs, 1);
    return callback;
}

/* Waits that begin at the same time get streams of their own: so no stream is
 * taken for idle that another wait may be about to use. */
void uva__gpu_streams_prepare(struct uva__gpu *gpu,
                              struct uva__gpu_streams *streams)
{
    struct uva__gpu_callback_stream *fresh;
    int i = 0;

    while (i < UVA__GPU_CALLBACK_STREAMS && streams->callbacks[i] != NULL)
        i++;
    if (i == UVA__GPU_CALLBACK_STREAMS)
        return;
    fresh = callback_stream_new(gpu, streams->context.device);
    uva__lock_take(&gpu->lock);
    streams->callbacks[i] = fresh;
    uva__lock_drop(&gpu->lock);
}

/* Chooses the stream with the fewest callbacks. */
static struct uva__gpu_callback_stream *
callback_stream_choose_locked(const struct uva__gpu_streams *streams)
{
    struct uva__gpu_callback_stream *best = NULL;
    uint64_t armed, least = UINT64_MAX;

    for (int i = 0;
         i < UVA__GPU_CALLBACK_STREAMS && streams->callbacks[i] != NULL; i++) {
        armed = uva__atomic64_load(&streams->callbacks[i]->armed);
        if (armed >= least)
            continue;
        least = armed;
        best = streams->callbacks[i];
    }
    return best;
}

struct uva__gpu_callback_stream *
uva__gpu_streams_callback(struct uva__gpu *gpu, int64_t device_id,
                          struct uva__gpu_context *context)
{
    struct uva__gpu_callback_stream *best = NULL;
    const struct uva__gpu_streams *streams;

    uva__lock_take(&gpu->lock);
    streams = gpu->streams;
    while (streams != NULL && streams->device_id != device_id)
        streams = streams->before;
    if (streams != NULL) {
        best = callback_stream_choose_locked(streams);
        *context = streams->context;
    }
    uva__lock_drop(&gpu->lock);
    if (best == NULL)
        return NULL;
    if (uva__atomic64_add(best->on_device, 1) >= UVA__GPU_ARMED_MOST) {
        uva__atomic64_sub(best->on_device, 1);
        return NULL;
    }
    uva__atomic64_add(&best->armed, 1);
    uva__atomic64_add(&best->refs, 1);
    return best;
}

/* ---- the streams of a device -------------------------------------------- */

int uva__gpu_streams_find(struct uva__gpu *gpu, int64_t device_id,
                          struct uva__gpu_streams **out,
                          struct uva_error *error)
{
    struct uva__gpu_streams *streams = gpu->streams;
    int code;

    while (streams != NULL && streams->device_id != device_id)
        streams = streams->before;
    *out = streams;
    if (streams != NULL)
        return 0;
    streams = calloc(1, sizeof(*streams));
    if (streams == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a stream");
    code = gpu->vendor->context_find(gpu, device_id, &streams->context, error);
    if (code != 0) {
        free(streams);
        return code;
    }
    streams->device_id = device_id;
    streams->pooled = gpu->vendor->is_pooled != NULL &&
                      gpu->vendor->is_pooled(gpu, &streams->context);
    uva__lock_take(&gpu->lock);
    streams->before = gpu->streams;
    gpu->streams = streams;
    uva__lock_drop(&gpu->lock);
    *out = streams;
    return 0;
}

int uva__gpu_streams_copy(struct uva__gpu *gpu,
                          struct uva__gpu_streams *streams, bool to_device,
                          uva__gpu_stream *out, struct uva_error *error)
{
    uva__gpu_stream *stream = &streams->copies[to_device];
    int code = 0;

    if (*stream == NULL)
        code = uva__gpu_result(
            gpu, UVA__GPU_CALL(stream_create),
            gpu->calls.stream_create(stream, UVA__GPU_STREAM_NON_BLOCKING),
            error);
    *out = *stream;
    return code;
}

static void streams_free(struct uva__gpu *gpu, struct uva__gpu_streams *streams)
{
    for (int i = 0; i < 2; i++)
        if (streams->copies[i] != NULL)
            (void)gpu->calls.stream_destroy(streams->copies[i]);
    for (int i = 0; i < UVA__GPU_CALLBACK_STREAMS; i++) {
        if (streams->callbacks[i] == NULL)
            continue;
        (void)gpu->calls.stream_destroy(streams->callbacks[i]->stream);
        if (gpu->calls.stream_callback == NULL)
            callback_stream_forget(streams->callbacks[i]);
        callback_stream_release(streams->callbacks[i]);
    }
}

void uva__gpu_streams_free(struct uva__gpu *gpu)
{
    struct uva__gpu_streams *streams = gpu->streams, *before;
    struct uva_error error;
    bool inside;

    for (; streams != NULL; streams = before) {
        before = streams->before;
        inside = gpu->vendor->enter(gpu, &streams->context, &error) == 0;
        streams_free(gpu, streams);
        if (inside)
            gpu->vendor->leave(gpu, &streams->context);
        gpu->vendor->context_drop(gpu, &streams->context);
        free(streams);
    }
    gpu->streams = NULL;
}
