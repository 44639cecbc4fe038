/* SPDX-License-Identifier: Apache-2.0 */
/* Everything is torn down inside a callback: in on_batch, a stream drops
 * another one and itself, and closes the runtime. */
#include <assert.h>
#include <stdlib.h>
#include <uv.h>

#include "support/world.h"
#include "uvarrow/uvarrow.h"

struct session {
    struct uva_runtime *rt;
    struct uva_stream *mine, *other;
    struct ArrowDeviceArray kept;
    int batches;
    bool *closed;
};

static void closed(void *ctx)
{
    struct session *s = ctx;

    assert(s->batches == 1);
    *s->closed = true;
    free(s);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct session *s = ctx;

    s->batches++;
    assert(batch->data.array.length == DB_ROWS);
    uva_array_move(&batch->data, &s->kept);
    uva_stream_drop(s->other); /* no callback of it will follow */
    uva_stream_drop(s->mine);  /* not of this one, although one is running */
    uva_array_release(&s->kept);
    assert(uva_runtime_close(s->rt, 0, closed, s) == 0);
    return 0; /* the return code is ignored now */
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    (void)outcome;
    assert(false);
}

static struct uva_stream *open_stream(struct uva_runtime *rt)
{
    struct ArrowArrayStream rows = {0};

    assert(db_scan("flights.db", &rows) == 0);
    return uva_stream_from_arrow_stream(rt, &rows, NULL);
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct session *s = calloc(1, sizeof(*s));
    struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = s};
    bool is_closed = false;

    if (s == NULL || uva_runtime_open(loop, NULL, &s->rt, NULL) != 0)
        return 1;
    s->closed = &is_closed;
    s->mine = open_stream(s->rt);
    s->other = open_stream(s->rt);
    assert(uva_stream_for_each(s->mine, &consumer, NULL) == 0);
    /* The order of the two is not specified; both run the same callback. */
    assert(uva_stream_for_each(s->other, &consumer, NULL) == 0);
    uv_run(loop, UV_RUN_DEFAULT);
    assert(is_closed);
    world_await_release();
    return uv_loop_close(loop);
}
