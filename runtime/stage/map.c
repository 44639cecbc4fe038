/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_map(): a function that is called with each batch. The producer
 * above runs it as part of extraction, so this only adds it there. */
#include <errno.h>

#include "base/memory.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

static int map_check(struct uva_stream *stream, const struct uva_map *options)
{
    if (options == NULL || options->batch == NULL)
        return uva__stream_fail(stream, EINVAL, "uva_map: batch is mandatory");
    return uva__stream_building(stream);
}

int uva_stream_map(struct uva_stream *stream, const struct uva_map *options)
{
    int code = uva__stream_building(stream);

    if (options != NULL && !uva__memory_is_clear(options->reserved, 4))
        return code != 0 ? code /* no member of it can be trusted */
                         : uva__stream_fail(stream, EINVAL,
                                            "uva_map: reserved members must be "
                                            "NULL; clear the struct before "
                                            "filling it in");
    if (code == 0)
        code = map_check(stream, options);
    if (code != 0) {
        if (options != NULL && options->free_ctx != NULL)
            options->free_ctx(options->ctx);
        return code;
    }
    return uva__producer_map(stream->tail, options) == 0
               ? 0
               : uva__stream_fail(stream, ENOMEM, "no memory for a map");
}
