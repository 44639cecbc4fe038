/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_limit(): passes on the first batches, then the end. The producer
 * above counts them, so this only sets its limit. */
#include <errno.h>

#include "observe/observe.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

int uva_stream_limit(struct uva_stream *stream, int64_t batches)
{
    int code = uva__stream_building(stream);
    int64_t *limit;

    if (code != 0)
        return code;
    if (batches < 0)
        return uva__stream_fail(stream, EINVAL,
                                "limit: %lld batches make no sense",
                                (long long)batches);
    uva__observe_limit(stream->tail);
    limit = &stream->tail->loop->limit;
    if (*limit < 0 || batches < *limit)
        *limit = batches;
    return 0;
}
