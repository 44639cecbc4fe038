/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_map(): a function that is called with each batch. The producer
 * above runs it as part of extraction, so this only adds it there. */
#include <errno.h>

#include "stream/maps.h"
#include "stream/options.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

int uva_stream_map(struct uva_stream *stream, const struct uva_map *options)
{
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_map), UVA__OPTIONS_CTX(uva_map),
        UVA__OPTIONS_NEED(uva_map, batch)};
    const int code = uva__options_accept(&kind, stream, options, NULL);

    if (code != 0)
        return code;
    return uva__maps_add(stream->tail, options) == 0
               ? 0
               : uva__stream_fail(stream, ENOMEM, "no memory for a map");
}
