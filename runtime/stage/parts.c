/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that are no hop, but parts of the producer above: uva_stream_map(), a
 * function that is part of the extraction; uva_stream_without_offsets(), a map
 * that copies columns with an offset; uva__stream_limit(), a count of batches;
 * uva_stream_inspect(), a function for each step; uva_stream_timeout(), limits
 * of time. */
#include <errno.h>

#include "arrow/flat.h"
#include "observe/observe.h"
#include "stage/limit.h"
#include "stream/deadlines.h"
#include "stream/maps.h"
#include "stream/options.h"
#include "stream/stream_impl.h"
#include "uvarrow/stages.h"

int uva_stream_map(struct uva_stream *stream, const struct uva_map *options)
{
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_map), UVA__OPTIONS_CTX(uva_map),
        UVA__OPTIONS_NEED(uva_map, batch)};
    int code = uva__options_accept(&kind, stream, options, NULL);

    if (code == 0 && uva__maps_add(stream->tail, options) != 0)
        code = uva__stream_fail(stream, ENOMEM, "no memory for a map");
    return code;
}

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
    struct uva_map map = {.batch = without_offsets_batch,
                          .free_ctx = without_offsets_free};
    const int code = uva__stream_building(stream);

    if (code != 0)
        return code;
    map.ctx = uva__rt_acquire(stream->rt);
    return uva_stream_map(stream, &map);
}

int uva__stream_limit(struct uva_stream *stream, int64_t batches)
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

int uva_stream_inspect(struct uva_stream *stream, const struct uva_trace *trace)
{
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_trace), UVA__OPTIONS_CTX(uva_trace),
        UVA__OPTIONS_NEED(uva_trace, event)};
    int code = uva__options_accept(&kind, stream, trace, NULL);

    if (code == 0 && uva__observe_add(stream->tail, trace, stream) != 0)
        code = uva__stream_fail(stream, ENOMEM, "no memory for an inspector");
    return code;
}

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
    int code = uva__options_accept(&kind, stream, options, NULL);

    if (code == 0 && uva__deadlines_add(stream->tail, options) != 0)
        code = uva__stream_fail(stream, ENOMEM, "no memory for a timeout");
    return code;
}
