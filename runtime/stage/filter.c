/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_filter(): a transform that passes batches on or drops them. */
#include <errno.h>

#include "base/memory.h"
#include "stage/transform.h"
#include "stream/stream_impl.h"

/* The state is the options. */
static int filter_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    const struct uva_filter *filter = ctx;
    bool keep = false;
    int code = filter->keep(filter->ctx, in, &keep, error);

    (void)emit;
    if (code != 0)
        return uva__transform_fail(emitter, code);
    if (keep)
        code = uva__transform_pass(emitter, in);
    return code == EAGAIN ? 0 : code; /* the batch is done */
}

static void filter_free(void *ctx)
{
    const struct uva_filter *filter = ctx;

    if (filter->free_ctx != NULL)
        filter->free_ctx(filter->ctx);
}

static int filter_add(struct uva_stream *stream, struct uva_filter filter)
{
    static const struct uva__transform_kind kind = {
        .name = "filter", .follows = true, .state_size = sizeof(filter)};

    return uva__transform_add(stream, &kind,
                              &(struct uva_transform){.batch = filter_batch,
                                                      .free_ctx = filter_free,
                                                      .ctx = &filter,
                                                      .on_loop = filter.on_loop,
                                                      .window = filter.window});
}

int uva_stream_filter(struct uva_stream *stream,
                      const struct uva_filter *options)
{
    int code = uva__stream_building(stream);

    if (options != NULL && !uva__memory_is_clear(options->reserved, 4))
        return code != 0 ? code /* no member of it can be trusted */
                         : uva__stream_fail(stream, EINVAL,
                                            "uva_filter: reserved members must "
                                            "be NULL; clear the struct before "
                                            "filling it in");
    if (code == 0 && (options == NULL || options->keep == NULL))
        code =
            uva__stream_fail(stream, EINVAL, "uva_filter: keep is mandatory");
    if (code == 0)
        return filter_add(stream, *options);
    if (options != NULL && options->free_ctx != NULL)
        options->free_ctx(options->ctx);
    return code;
}
