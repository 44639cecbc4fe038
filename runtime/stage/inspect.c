/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_inspect(): a function that is called for what passes a place. The
 * producer above calls it (observe/observe.c), so this only adds it there. */
#include <errno.h>

#include "base/memory.h"
#include "observe/observe.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

int uva_stream_inspect(struct uva_stream *stream,
                       const struct uva_inspect *options)
{
    int code = uva__stream_building(stream);

    if (options != NULL && !uva__memory_is_clear(options->reserved, 4))
        return code != 0 ? code /* no member of it can be trusted */
                         : uva__stream_fail(stream, EINVAL,
                                            "uva_inspect: reserved members "
                                            "must be NULL; clear the struct "
                                            "before filling it in");
    if (code == 0 && (options == NULL || options->event == NULL))
        code =
            uva__stream_fail(stream, EINVAL, "uva_inspect: event is mandatory");
    if (code != 0) {
        if (options != NULL && options->free_ctx != NULL)
            options->free_ctx(options->ctx);
        return code;
    }
    return uva__observe_add(stream->tail, options, stream) == 0
               ? 0
               : uva__stream_fail(stream, ENOMEM, "no memory for an inspector");
}
