/* SPDX-License-Identifier: Apache-2.0 */
/* A lane keeps the context of its streams alive. */
#include "device/gpu_streams.h"

#include <errno.h>
#include <stdlib.h>

/* ---- posts -------------------------------------------------------------- */

static void post_release(struct uva__gpu_callback_stream *post)
{
    if (uva__atomic64_sub(&post->refs, 1) == 1)
        free(post);
}

void uva__gpu_callback_stream_drop(struct uva__gpu_callback_stream *post)
{
    uva__atomic64_sub(&post->armed, 1);
    post_release(post);
}

static struct uva__gpu_callback_stream *post_new(struct uva__gpu *gpu)
{
    struct uva__gpu_callback_stream *post = calloc(1, sizeof(*post));
    const size_t call = UVA__GPU_CALL(stream_create);
    struct uva_error error;

    if (post == NULL)
        return NULL;
    if (uva__gpu_result(gpu, call,
                        gpu->calls.stream_create(&post->stream,
                                                 UVA__GPU_STREAM_NON_BLOCKING),
                        &error) != 0) {
        free(post);
        return NULL;
    }
    uva__atomic64_store(&post->refs, 1);
    return post;
}

/* Chooses an idle stream, or a new one, or the one with the fewest callbacks.
 */
struct uva__gpu_callback_stream *
uva__gpu_streams_callback(struct uva__gpu *gpu, struct uva__gpu_streams *lane)
{
    struct uva__gpu_callback_stream *best = NULL;
    uint64_t armed, least = UVA__GPU_ARMED_MOST;

    for (int i = 0; i < UVA__GPU_CALLBACK_STREAMS && least != 0; i++) {
        if (lane->posts[i] == NULL)
            lane->posts[i] = post_new(gpu);
        if (lane->posts[i] == NULL)
            break;
        armed = uva__atomic64_load(&lane->posts[i]->armed);
        if (armed >= least)
            continue;
        least = armed;
        best = lane->posts[i];
    }
    if (best == NULL)
        return NULL;
    uva__atomic64_add(&best->armed, 1);
    uva__atomic64_add(&best->refs, 1);
    return best;
}

/* ---- lanes -------------------------------------------------------------- */

int uva__gpu_streams_find(struct uva__gpu *gpu, int64_t device_id,
                          struct uva__gpu_streams **out,
                          struct uva_error *error)
{
    struct uva__gpu_streams *lane = gpu->lanes;
    int code;

    while (lane != NULL && lane->device_id != device_id)
        lane = lane->before;
    *out = lane;
    if (lane != NULL)
        return 0;
    lane = calloc(1, sizeof(*lane));
    if (lane == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a stream");
    code = gpu->vendor->context_find(gpu, device_id, NULL, &lane->place, error);
    if (code != 0) {
        free(lane);
        return code;
    }
    lane->device_id = device_id;
    lane->before = gpu->lanes;
    gpu->lanes = lane;
    *out = lane;
    return 0;
}

int uva__gpu_streams_copy(struct uva__gpu *gpu, struct uva__gpu_streams *lane,
                          bool to_device, uva__gpu_stream *out,
                          struct uva_error *error)
{
    uva__gpu_stream *stream = &lane->copies[to_device];
    int code = 0;

    if (*stream == NULL)
        code = uva__gpu_result(
            gpu, UVA__GPU_CALL(stream_create),
            gpu->calls.stream_create(stream, UVA__GPU_STREAM_NON_BLOCKING),
            error);
    *out = *stream;
    return code;
}

static void lane_streams_free(struct uva__gpu *gpu,
                              struct uva__gpu_streams *lane)
{
    for (int i = 0; i < 2; i++)
        if (lane->copies[i] != NULL)
            (void)gpu->calls.stream_destroy(lane->copies[i]);
    for (int i = 0; i < UVA__GPU_CALLBACK_STREAMS; i++) {
        if (lane->posts[i] == NULL)
            continue;
        (void)gpu->calls.stream_destroy(lane->posts[i]->stream);
        post_release(lane->posts[i]);
    }
}

void uva__gpu_streams_free(struct uva__gpu *gpu)
{
    struct uva__gpu_streams *lane = gpu->lanes, *before;
    struct uva_error error;
    bool inside;

    for (; lane != NULL; lane = before) {
        before = lane->before;
        inside = gpu->vendor->enter(gpu, &lane->place, &error) == 0;
        lane_streams_free(gpu, lane);
        if (inside)
            gpu->vendor->leave(gpu, &lane->place);
        gpu->vendor->context_drop(gpu, &lane->place);
        free(lane);
    }
    gpu->lanes = NULL;
}
