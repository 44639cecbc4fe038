/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_filter(): a transform that passes on the rows that a function
 * wants: the batch itself, a slice of it, or a copy. */
#include <errno.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/select.h"
#include "base/memory.h"
#include "stage/transform.h"
#include "stream/options.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

struct filter {
    struct uva_filter options;
    const struct uva_allocator *allocator; /* borrows: the stage's */
    uint8_t *bits; /* owns: of a batch; NULL before the first */
    size_t size;   /* of these, in bytes */
};

static void filter_drop_bits(struct filter *filter)
{
    if (filter->bits != NULL)
        uva__memory_free(filter->allocator, filter->bits, filter->size);
}

/* Gives cleared bits for so many rows, which are kept for the next batch. */
static bool filter_make_bits(struct filter *filter, int64_t rows)
{
    const size_t size = (size_t)uva__bits_bytes(rows) + 1;

    if (size > filter->size) {
        filter_drop_bits(filter);
        filter->bits = uva__memory_new(filter->allocator, size);
        filter->size = filter->bits != NULL ? size : 0;
        return filter->bits != NULL;
    }
    memset(filter->bits, 0, size);
    return true;
}

/* Emits the selected rows, of which there are some. */
static int filter_emit(struct filter *filter, struct uva_batch *in,
                       const struct uva__mask *mask, uva_emit_fn *emit,
                       void *emitter, struct uva_error *error)
{
    struct ArrowDeviceArray rows;
    int code;

    if (mask->selected == mask->rows)
        return uva__transform_emit(emitter, in,
                                   uva__transform_input_size(emitter));
    code =
        uva__select_rows(filter->allocator, in->schema, &in->data, mask, &rows);
    if (code != 0)
        return uva__transform_fail(emitter,
                                   uva__select_fail("filter", code, error));
    uva_array_move(&rows, &in->data);
    return emit(emitter, in);
}

static int filter_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct filter *filter = ctx;
    const int64_t rows = in->data.array.length;
    struct uva__mask mask;
    int code;

    if (!filter_make_bits(filter, rows))
        return uva_error_set(error, ENOMEM, "filter: no memory for its bits");
    code = filter->options.keep(filter->options.ctx, in, filter->bits, error);
    if (code != 0)
        return uva__transform_fail(emitter, code);
    uva__mask_read(&mask, filter->bits, rows);
    if (mask.selected > 0)
        code = filter_emit(filter, in, &mask, emit, emitter, error);
    return code == EAGAIN ? 0 : code; /* the batch is done */
}

static void filter_free(void *ctx)
{
    struct filter *filter = ctx;

    filter_drop_bits(filter);
    if (filter->options.free_ctx != NULL)
        filter->options.free_ctx(filter->options.ctx);
}

int uva_stream_filter(struct uva_stream *stream,
                      const struct uva_filter *options)
{
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_filter), UVA__OPTIONS_CTX(uva_filter),
        UVA__OPTIONS_WINDOW(uva_filter), UVA__OPTIONS_NEED(uva_filter, keep),
        .follows = true};
    static const struct uva__transform_kind transform = {
        .name = "filter", .state_size = sizeof(struct filter)};
    struct uva_transform made = {.batch = filter_batch,
                                 .free_ctx = filter_free};
    struct filter state = {.bits = NULL};
    struct uva__window window;
    const int code = uva__options_accept(&kind, stream, options, &window);

    if (code != 0)
        return code;
    state.options = *options;
    state.allocator = &stream->rt->allocator;
    made.ctx = &state;
    made.on_loop = options->on_loop;
    made.window = options->window;
    return uva__transform_add(stream, &transform, &made);
}
