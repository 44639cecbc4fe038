/* SPDX-License-Identifier: Apache-2.0 */
/* A function over batches. It becomes part of the extraction of the producer
 * above, so there is nothing to run here. */
#include <errno.h>

#include "base/memory.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

static int map_check(struct uva_stream *stream, const struct uva_map *how)
{
    if (how == NULL || how->batch == NULL)
        return uva__flow_fail(stream, EINVAL, "uva_map: batch is mandatory");
    return uva__flow_building(stream);
}

int uva_stream_map(struct uva_stream *stream, const struct uva_map *how)
{
    int code = uva__flow_building(stream);

    if (how != NULL && !uva__memory_is_clear(how->reserved, 4))
        return code != 0 ? code /* nothing in it can be trusted */
                         : uva__flow_fail(stream, EINVAL,
                                          "uva_map: reserved members must be "
                                          "NULL; clear the struct before "
                                          "filling it in");
    if (code == 0)
        code = map_check(stream, how);
    if (code != 0) {
        if (how != NULL && how->free_ctx != NULL)
            how->free_ctx(how->ctx);
        return code;
    }
    return uva__producer_map(stream->tail, how) == 0
               ? 0
               : uva__flow_fail(stream, ENOMEM, "no memory for a map");
}
