/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of a sensor, one each second, in batches of a minute: a filter drops
 * the rows without a plausible value, a transform makes one mean of each
 * minute, rebatch puts ten of these into a batch, and a limit ends the stream
 * after 25 minutes, which stops the source.
 *
 *     $ cc shape_batches.c integers.c run.c \
 *         $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     10 means, from 29 on
 *     10 means, from 629 on
 *     5 means, from 1229 on
 */
#include <inttypes.h>
#include <stdio.h>

#include "integers.h"
#include "run.h"

static int keep_plausible(void *ctx, const struct uva_batch *batch,
                          uint8_t *bits, struct uva_error *error)
{
    const int64_t *values = integers_of(&batch->data);

    (void)ctx, (void)error;
    for (int64_t row = 0; row < batch->data.array.length; row++)
        if (values[row] % 11 != 0) /* the sensor fails now and then */
            bits[row / 8] |= (uint8_t)(1 << row % 8); /* is kept */
    return 0;
}

/* One row for each batch. */
static int mean(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                void *emitter, struct uva_error *error)
{
    const int64_t *values = integers_of(&in->data);
    const int64_t rows = in->data.array.length;
    struct uva_batch out = {0};
    int64_t *value = integers_new(1, &out.data);
    int code;

    (void)ctx;
    if (value == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a mean");
    for (int64_t row = 0; row < rows; row++)
        *value += values[row];
    *value /= rows;
    code = emit(emitter, &out);
    return code == EAGAIN ? 0 : code; /* this batch is finished */
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t *means = integers_of(&batch->data);

    (void)ctx;
    printf("%" PRId64 " means, from %" PRId64 " on\n", batch->data.array.length,
           means[0]);
    return 0;
}

int main(void)
{
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;

    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    s = integers_stream(rt, 100, 60);
    uva_stream_filter(s, &(struct uva_filter){.keep = keep_plausible});
    uva_stream_transform(s, &(struct uva_transform){.batch = mean});
    uva_stream_rebatch(s, &(struct uva_rebatch){.rows = 10});
    uva_stream_limit_rows(s, 25);
    return run_to_end(rt, s, &(struct uva_consumer){.on_batch = on_batch});
}
