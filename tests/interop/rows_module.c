/* SPDX-License-Identifier: Apache-2.0 */
/* For random_tables.py: puts a stream of Python's through stages that choose
 * rows, and gives it back. */
#include "uvarrow/uvarrow.h"

/* The stages; 0 leaves one out, but for `limit`: there it is -1. */
struct rows_stages {
    int64_t rows, bytes; /* of rebatch */
    int64_t limit;       /* rows in all */
    int64_t modulus;     /* a filter keeps the batches that it divides */
    int32_t place;       /* of a transform: 1: a worker, 2: the loop thread */
    int32_t window;      /* of that, in batches */
    int32_t flat;        /* 1: offsets are removed last */
};

/* Python calls these by name. */
struct uva_runtime *rows_open(void);
void rows_close(struct uva_runtime *runtime);
int rows_play(struct uva_runtime *runtime, struct ArrowArrayStream *in,
              const struct rows_stages *stages, struct ArrowArrayStream *out);

struct uva_runtime *rows_open(void)
{
    struct uva_runtime *runtime = NULL;

    return uva_runtime_open(NULL, NULL, &runtime, NULL) == 0 ? runtime : NULL;
}

void rows_close(struct uva_runtime *runtime)
{
    uva_runtime_close(runtime, 0, NULL, NULL);
}

static int pass(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                void *emitter, struct uva_error *error)
{
    const int code = emit(emitter, in);

    (void)ctx;
    (void)error;
    return code == EAGAIN ? 0 : code;
}

static int divides(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                   struct uva_error *error)
{
    (void)error;
    if (batch->ordinal % (intptr_t)ctx == 0)
        memset(bits, 0xff, (size_t)(batch->data.array.length + 7) / 8);
    return 0;
}

/* Takes `in` and gives `out`. */
int rows_play(struct uva_runtime *runtime, struct ArrowArrayStream *in,
              const struct rows_stages *stages, struct ArrowArrayStream *out)
{
    struct uva_stream *stream = uva_stream_from_arrow_stream(runtime, in, NULL);
    const struct uva_transform transform = {.batch = pass,
                                            .on_loop = stages->place == 2,
                                            .window.batches = stages->window};
    const struct uva_filter filter = {.keep = divides,
                                      .ctx = (void *)(intptr_t)stages->modulus};
    const struct uva_rebatch rebatch = {.rows = stages->rows,
                                        .bytes = stages->bytes};
    int code;

    if (stages->place != 0)
        (void)uva_stream_transform(stream, &transform);
    if (stages->modulus != 0)
        (void)uva_stream_filter(stream, &filter);
    if (stages->rows != 0 || stages->bytes != 0)
        (void)uva_stream_rebatch(stream, &rebatch);
    if (stages->limit >= 0)
        (void)uva_stream_limit_rows(stream, stages->limit);
    if (stages->flat != 0)
        (void)uva_stream_without_offsets(stream);
    code = uva_stream_to_arrow_stream(stream, NULL, out, NULL);
    uva_stream_release(stream);
    return code;
}
