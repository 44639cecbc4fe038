/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_inspect(): a function that is called for each step at a place. The
 * producer above calls it (observe/observe.c), so this only adds it there. */
#include <errno.h>

#include "observe/observe.h"
#include "stream/options.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

int uva_stream_inspect(struct uva_stream *stream,
                       const struct uva_inspect *options)
{
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_inspect), UVA__OPTIONS_CTX(uva_inspect),
        UVA__OPTIONS_NEED(uva_inspect, event)};
    const int code = uva__options_accept(&kind, stream, options, NULL);

    if (code != 0)
        return code;
    return uva__observe_add(stream->tail, options, stream) == 0
               ? 0
               : uva__stream_fail(stream, ENOMEM, "no memory for an inspector");
}
