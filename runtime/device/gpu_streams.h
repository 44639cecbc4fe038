/* SPDX-License-Identifier: Apache-2.0 */
/* Our streams on one device, made when first needed, in a context that the
 * program has made: one for copies in each direction, a few for callbacks.
 * Before a copy from memory that is not pinned, a driver may wait for all work
 * queued on the stream: so copies to the device are not queued after events
 * that are not complete. */
#ifndef UVA_DEVICE_GPU_STREAMS_H
#define UVA_DEVICE_GPU_STREAMS_H

#include "base/atomic.h"
#include "device/gpu_driver.h"

enum {
    UVA__GPU_CALLBACK_STREAMS = 8, /* streams for callbacks, which share them */
    UVA__GPU_ARMED_MOST = 32       /* callbacks on one device, for all sets of
                                      workers: drivers hang with a few more */
};

/* A stream on which callbacks wait. References are held by the device's streams
 * and by each callback, since a callback may come when all else is freed. */
struct uva__gpu_callback_stream {
    uva__gpu_stream stream; /* owned by the device's streams */
    struct uva__atomic64 refs;
    struct uva__atomic64 armed;      /* callbacks that have not come */
    struct uva__atomic64 *on_device; /* static: callbacks on its device that
                                        have not come */
};

/* The streams of one device. The device thread's alone, but for those for
 * callbacks. */
struct uva__gpu_streams {
    struct uva__gpu_streams *before; /* owns */
    int64_t device_id;
    struct uva__gpu_context context;
    bool pooled; /* memory is allocated and freed in the order of a stream */
    uva__gpu_stream copies[2]; /* owns: for copies, [1] to the device; NULL:
                                  not made so far */
    struct uva__gpu_callback_stream
        *callbacks[UVA__GPU_CALLBACK_STREAMS]; /* counts; NULL: not made */
};

/* Finds or makes the streams of a device. 0, or why the device cannot be used.
 * Thread: the device thread. */
UVA_MUST_CHECK int uva__gpu_streams_find(struct uva__gpu *gpu,
                                         int64_t device_id,
                                         struct uva__gpu_streams **out,
                                         struct uva_error *error);

/* Gives the stream for copies in one direction. Their context is current.
 * Thread: the device thread. */
UVA_MUST_CHECK int uva__gpu_streams_copy(struct uva__gpu *gpu,
                                         struct uva__gpu_streams *streams,
                                         bool to_device, uva__gpu_stream *out,
                                         struct uva_error *error);

/* Makes a stream for callbacks, unless there are enough. Their context is
 * current. Thread: the device thread. */
void uva__gpu_streams_prepare(struct uva__gpu *gpu,
                              struct uva__gpu_streams *streams);

/* Gives a stream for one more callback, and its context, and notes the
 * callback; NULL: there is no stream, or too many callbacks wait. Makes no
 * vendor call. Thread: any. */
struct uva__gpu_callback_stream *
uva__gpu_streams_callback(struct uva__gpu *gpu, int64_t device_id,
                          struct uva__gpu_context *context);

/* Notes that the callback has come. Makes no vendor call.
 * Thread: any. */
void uva__gpu_callback_stream_drop(struct uva__gpu_callback_stream *callback);

/* Frees the streams of all devices. Thread: the device thread. */
void uva__gpu_streams_free(struct uva__gpu *gpu);

#endif
