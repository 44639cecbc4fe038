/* SPDX-License-Identifier: Apache-2.0 */
/* A chain knows whether its extraction is dear; one worker keeps a map's ctx
 * free of locks until somebody asks for more. Data behind an event is waited
 * for where that makes it readable. */
#include "adapters/safety.h"

#include "stream/flow.h"
#include "uvarrow/operators.h"

/* Memory that the host can read once an event has come. */
static bool type_is_pinned(ArrowDeviceType type)
{
    return type == ARROW_DEVICE_CUDA_HOST || type == ARROW_DEVICE_ROCM_HOST ||
           type == ARROW_DEVICE_CUDA_MANAGED;
}

/* Waiting is no consent to data that the host cannot read. */
static void safety_wait(struct uva_stream *stream)
{
    if (stream->device_data || !type_is_pinned(stream->tail->abi.device_type))
        return;
    (void)uva_stream_ready(stream, NULL);
    stream->device_data = false;
}

int uva__safety_ensure(struct uva_stream *stream, struct uva_error *error)
{
    const struct uva_parallel one = {.workers = 1};

    safety_wait(stream);
    if (stream->tail->dear)
        (void)uva_stream_parallel(stream, &one);
    return uva__flow_may_start(stream, error);
}
