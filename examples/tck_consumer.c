/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of batches from whatever producer gets its handler. */
#include "tck_consumer.h"

#include <stdio.h>

static int start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error)
{
    struct consumer *c = ctx;

    (void)error;
    c->handler = handler; /* the suite passes it to a producer */
    return sem_post(&c->has_handler);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *rows = &batch->data.array;
    const int64_t *n = rows->children[0]->buffers[1];
    struct consumer *c = ctx;

    for (int64_t i = 0; i < rows->length; i++)
        c->outcome.sum += n[rows->offset + rows->children[0]->offset + i];
    c->outcome.rows += rows->length;
    return c->outcome.batches++ == c->k && c->cancels ? ECANCELED : 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct consumer *c = ctx;

    c->outcome.end = (int32_t)outcome->end; /* the numbers are the same */
    c->outcome.code = outcome->error.code;
    (void)snprintf(c->outcome.message, sizeof(c->outcome.message), "%.255s",
                   outcome->error.message);
    atomic_store(&c->is_over, true);
}

int consumer_start(struct consumer *c)
{
    const struct uva_async_source source = {
        .start = start, .ctx = c, .on_loop = true};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = c};
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code = uva_runtime_open(NULL, NULL, &rt, NULL);

    if (code != 0)
        return code;
    s = uva_stream_from_async(rt, &source);
    code = uva_stream_for_each(s, &consumer, NULL);
    uva_stream_release(s);
    if (code == 0)
        (void)sem_wait(&c->has_handler);
    return code;
}
