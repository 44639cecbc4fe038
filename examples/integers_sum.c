/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer: it adds up. */
#include "integers.h"

#include <stdio.h>

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t *values = integers_of(&batch->data);
    struct integers_sum *sum = ctx;

    for (int64_t i = 0; i < batch->data.array.length; i++)
        sum->sum += values[i];
    sum->rows += batch->data.array.length;
    sum->batches++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct integers_sum *sum = ctx;

    sum->code = outcome->error.code;
    if (sum->code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
}

void integers_add_up(struct uva_stream *s, struct integers_sum *sum)
{
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = sum};
    struct uva_outcome outcome = {.end = UVA_END_FAILED};

    *sum = (struct integers_sum){0};
    if (uva_stream_for_each(s, &consumer, &outcome.error) != 0)
        on_done(sum, &outcome);
    uva_stream_release(s);
}
