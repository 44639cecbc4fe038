/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_timeout(): limits of time. The producer above measures how long it
 * waits, so this only sets its limits. */
#include <errno.h>

#include "base/memory.h"
#include "stream/deadlines.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

static int timeout_check(struct uva_stream *stream,
                         const struct uva_timeout *options)
{
    const int code = uva__stream_building(stream);

    if (code != 0)
        return code;
    if (options == NULL)
        return uva__stream_fail(stream, EINVAL,
                                "uva_timeout: options are mandatory");
    if (!uva__memory_is_clear(options->reserved, 4))
        return uva__stream_fail(stream, EINVAL,
                                "uva_timeout: reserved members must be NULL; "
                                "clear the struct before filling it in");
    if (options->open_ms < 0 || options->first_ms < 0 ||
        options->between_ms < 0 || options->total_ms < 0)
        return uva__stream_fail(stream, EINVAL,
                                "uva_timeout: open_ms, first_ms, between_ms "
                                "and total_ms must not be negative");
    return 0;
}

int uva_stream_timeout(struct uva_stream *stream,
                       const struct uva_timeout *options)
{
    const int code = timeout_check(stream, options);

    if (code != 0)
        return code;
    return uva__deadlines_add(stream->tail, options) == 0
               ? 0
               : uva__stream_fail(stream, ENOMEM, "no memory for a timeout");
}
