/* SPDX-License-Identifier: Apache-2.0 */
/* Adds stages to a stream before it starts. The parallel stage has one worker,
 * so that a map's ctx needs no lock unless the program requests more workers. A
 * ready stage is added only where waiting for the event makes data readable. */
#include "sink/auto_stages.h"

#include "arrow/device_traits.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

/* Pinned and managed memory can be read once the event is complete. The wait
 * does not mean that the program accepts data that the host cannot read. */
static void auto_stages_wait(struct uva_stream *stream,
                             const struct uva_window *window)
{
    const ArrowDeviceType type = stream->tail->abi.device_type;
    const struct uva_ready ready = {.window = *window};

    if (stream->device_data || !uva__device_is_readable(type) ||
        !uva__device_has_events(type))
        return;
    (void)uva_stream_ready(stream, &ready);
    stream->device_data = false;
}

int uva__auto_stages_add(struct uva_stream *stream,
                         const struct uva_window *window,
                         struct uva_error *error)
{
    const struct uva_window none = {0};
    const struct uva_window *given = window != NULL ? window : &none;
    const struct uva_parallel one = {.workers = 1, .window = *given};

    auto_stages_wait(stream, given);
    if (uva__stream_building(stream) == 0 && stream->tail->expensive)
        (void)uva_stream_parallel(stream, &one);
    return uva__stream_may_start(stream, error);
}
