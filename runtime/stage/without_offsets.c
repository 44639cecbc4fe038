/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_without_offsets(): a map that copies columns with an offset
 * (arrow/flat). */
#include <errno.h>

#include "arrow/flat.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

static int without_offsets_batch(void *ctx, struct uva_batch *in,
                                 struct ArrowDeviceArray *out,
                                 struct uva_error *error)
{
    const struct uva__rt *rt = ctx;

    return uva__flat_array(&rt->allocator, in->schema, &in->data, out, error);
}

static void without_offsets_free(void *ctx)
{
    uva__rt_release(ctx);
}

int uva_stream_without_offsets(struct uva_stream *stream)
{
    const int code = uva__stream_building(stream);

    return code != 0 ? code
                     : uva_stream_map(stream,
                                      &(struct uva_map){
                                          .batch = without_offsets_batch,
                                          .free_ctx = without_offsets_free,
                                          .ctx = uva__rt_acquire(stream->rt)});
}
