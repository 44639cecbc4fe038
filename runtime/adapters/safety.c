/* SPDX-License-Identifier: Apache-2.0 */
/* A chain knows whether its extraction is dear; one worker keeps a map's ctx
 * free of locks until somebody asks for more. */
#include "adapters/safety.h"

#include "stream/flow.h"
#include "uvarrow/operators.h"

int uva__safety_ensure(struct uva_stream *stream, struct uva_error *error)
{
    const struct uva_parallel one = {.workers = 1};

    if (!stream->tail->dear)
        return 0;
    return uva_stream_parallel(stream, &one) == 0
               ? 0
               : uva__flow_may_start(stream, error);
}
