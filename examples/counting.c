/* SPDX-License-Identifier: Apache-2.0 */
/* The number is reported later than the end, so a reference is held until then,
 * and the user may have dropped the stream meanwhile. */
#include "counting.h"

#include <stdlib.h>

struct counting {
    struct uva_stream *stream; /* counts */
    void (*fn)(int64_t rows);  /* of the user */
    int64_t rows;
};

static int counting_batch(void *ctx, struct uva_batch *batch)
{
    ((struct counting *)ctx)->rows += batch->data.array.length;
    return 0;
}

static void counting_report(void *ctx)
{
    struct counting *c = ctx;

    if (!uva_stream_is_dropped(c->stream))
        c->fn(c->rows);
    uva_stream_release(c->stream);
    free(c);
}

/* The stream has ended, or was dropped: on the loop thread, once. */
static void counting_end(void *ctx)
{
    struct counting *c = ctx;
    struct uva_runtime *rt = uva_stream_get_runtime(c->stream);

    uva_runtime_log(rt, UVA_LOG_INFO, NULL, "counting: the end");
    if (rt == NULL || uva_runtime_post(rt, counting_report, c) != 0)
        counting_report(c); /* the runtime is closing */
}

int counting_start(struct uva_stream *s, void (*fn)(int64_t rows),
                   struct uva_error *error)
{
    struct counting *c = calloc(1, sizeof(*c));
    const struct uva_consumer consumer = {
        .on_batch = counting_batch, .free_ctx = counting_end, .ctx = c};
    int code;

    if (c == NULL)
        return uva_error_set(error, ENOMEM, "no memory to count");
    c->fn = fn;
    c->stream = uva_stream_acquire(s);
    code = uva_stream_for_each(s, &consumer, error);
    if (code != 0) { /* no function was called, and none will be */
        uva_stream_release(c->stream);
        free(c);
    }
    return code;
}
