/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_filter(): a transform that passes batches on or drops them. */
#include <errno.h>

#include "stage/transform.h"
#include "stream/options.h"

/* The state is the options. */
static int filter_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    const struct uva_filter *filter = ctx;
    bool keep = false;
    int code = filter->keep(filter->ctx, in, &keep, error);

    if (code != 0)
        return uva__transform_fail(emitter, code);
    if (keep)
        code = emit(emitter, in);
    return code == EAGAIN ? 0 : code; /* the batch is done */
}

static void filter_free(void *ctx)
{
    const struct uva_filter *filter = ctx;

    if (filter->free_ctx != NULL)
        filter->free_ctx(filter->ctx);
}

int uva_stream_filter(struct uva_stream *stream,
                      const struct uva_filter *options)
{
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_filter), UVA__OPTIONS_CTX(uva_filter),
        UVA__OPTIONS_WINDOW(uva_filter), UVA__OPTIONS_NEED(uva_filter, keep),
        .follows = true};
    static const struct uva__transform_kind transform = {
        .name = "filter", .state_size = sizeof(*options)};
    struct uva_transform made = {.batch = filter_batch,
                                 .free_ctx = filter_free};
    struct uva_filter state;
    const int code = uva__options_accept(&kind, stream, options, &made.window);

    if (code != 0)
        return code;
    state = *options;
    made.ctx = &state;
    made.on_loop = options->on_loop;
    return uva__transform_add(stream, &transform, &made);
}
