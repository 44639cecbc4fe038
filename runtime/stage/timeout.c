/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_timeout(): limits of time. The producer above measures how long it
 * waits, so this only sets its limits. */
#include <errno.h>

#include "stream/deadlines.h"
#include "stream/options.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

int uva_stream_timeout(struct uva_stream *stream,
                       const struct uva_timeout *options)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(uva_timeout, open_ms, 0, INT64_MAX),
        UVA__LIMIT(uva_timeout, first_ms, 0, INT64_MAX),
        UVA__LIMIT(uva_timeout, between_ms, 0, INT64_MAX),
        UVA__LIMIT(uva_timeout, total_ms, 0, INT64_MAX),
        {0}};
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_timeout), .mandatory = true, .limits = limits};
    const int code = uva__options_accept(&kind, stream, options, NULL);

    if (code != 0)
        return code;
    return uva__deadlines_add(stream->tail, options) == 0
               ? 0
               : uva__stream_fail(stream, ENOMEM, "no memory for a timeout");
}
