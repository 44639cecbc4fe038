/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_limit_rows(): a transform that counts rows, and passes on a slice
 * of the batch in which the last row lies. */
#include <errno.h>

#include "arrow/slice.h"
#include "base/memory.h"
#include "stage/limit.h"
#include "stage/transform.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

struct limit_rows {
    const struct uva_allocator *allocator; /* borrows: the stage's */
    int64_t left;                          /* rows that may still pass */
};

/* Emits the first rows of a batch, as many as are left. */
static int limit_rows_cut(struct limit_rows *limit, struct uva_batch *in,
                          uva_emit_fn *emit, void *emitter)
{
    struct ArrowDeviceArray part;
    int code = uva__slice_array(limit->allocator, in->schema, &in->data, 0,
                                limit->left, &part);

    if (code != 0)
        return code;
    uva_array_release(&in->data);
    uva_array_move(&part, &in->data);
    limit->left = 0;
    return emit(emitter, in);
}

static int limit_rows_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                            void *emitter, struct uva_error *error)
{
    struct limit_rows *limit = ctx;
    const int64_t rows = in->data.array.length;
    int code;

    (void)error;
    if (rows > limit->left) {
        code = limit_rows_cut(limit, in, emit, emitter);
    } else {
        limit->left -= rows;
        code = uva__transform_emit(emitter, in,
                                   uva__transform_input_size(emitter));
    }
    if (code != 0 && code != EAGAIN)
        return code;
    return limit->left == 0 ? ENOENT : 0;
}

int uva_stream_limit_rows(struct uva_stream *stream, int64_t rows)
{
    static const struct uva__transform_kind kind = {
        .name = "limit_rows", .state_size = sizeof(struct limit_rows)};
    int code = uva__stream_building(stream);

    if (code != 0)
        return code;
    if (rows < 0)
        return uva__stream_fail(stream, EINVAL,
                                "limit_rows: %lld rows make no sense",
                                (long long)rows);
    if (rows == 0)
        return uva__stream_limit(stream, 0);
    return uva__transform_add(
        stream, &kind,
        &(struct uva_transform){
            .batch = limit_rows_batch,
            .ctx = &(struct limit_rows){&stream->rt->allocator, rows},
            .on_loop = true});
}
