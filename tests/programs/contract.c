/* SPDX-License-Identifier: Apache-2.0 */
/* Details of the contract: the promises of the headers about errors while
 * building, EAGAIN, late resumes, drops, last references and closing. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "support/world.h"
#include "uvarrow/uvarrow.h"

static uv_loop_t *loop;
static struct uva_runtime *rt;

static struct uva_stream *some(void)
{
    struct ArrowArrayStream rows = {0};

    (void)db_scan("x", &rows);
    return uva_stream_from_arrow_stream(rt, &rows, NULL);
}

struct seen {
    int schema, batches, done, freed, agains;
    enum uva_end end;
    struct uva_error error;
    struct uva_stream *stream;
    struct ArrowDeviceArray kept;
    int64_t last;
    pthread_t thread;
};

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct seen *x = ctx;

    assert(info->schema->n_children == 1 && x->batches == 0);
    x->schema++;
    return 0;
}

static int count(void *ctx, struct uva_batch *batch)
{
    struct seen *x = ctx;

    assert(x->done == 0 && batch->ordinal == x->batches);
    x->batches++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct seen *x = ctx;

    x->done++;
    x->end = outcome->end;
    x->error = outcome->error;
    assert((outcome->error.code == 0) == (outcome->end == UVA_END_COMPLETE));
}

static void freed(void *ctx)
{
    ((struct seen *)ctx)->freed++;
}

static int start(struct uva_stream *s,
                 int (*on_batch)(void *, struct uva_batch *), struct seen *x)
{
    x->stream = s;
    return uva_stream_for_each(s,
                               &(struct uva_consumer){.on_schema = on_schema,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = x},
                               &x->error);
}

static void run(void)
{
    uv_run(loop, UV_RUN_DEFAULT);
}

static void errors_while_building_are_remembered(void)
{
    struct ArrowArrayStream released = {0}, rows = {0};
    struct seen x = {0}, y = {0};
    struct uva_stream *s = uva_stream_from_arrow_stream(rt, &released, NULL);

    assert(s != NULL && uva_stream_status(s, NULL) == EINVAL);
    assert(uva_stream_map(s, &(struct uva_map){.free_ctx = freed, .ctx = &x}) ==
           EINVAL);
    assert(x.freed == 1);
    assert(start(s, count, &x) == EINVAL && x.error.message[0] != '\0');
    uva_stream_release(s);

    (void)db_scan("x", &rows); /* no runtime, but rows are taken */
    s = uva_stream_from_arrow_stream(
        NULL, &rows, &(struct uva_arrow_source){.free_ctx = freed, .ctx = &y});
    assert(rows.release == NULL && y.freed == 1);
    assert(start(s, count, &y) != 0);
    uva_stream_release(s);

    assert(uva_stream_map(NULL, &(struct uva_map){0}) == EINVAL);
    s = some(); /* cancelled before the start */
    uva_stream_cancel(s, ETIMEDOUT, "too late");
    assert(start(s, count, &x) == ETIMEDOUT);
    uva_stream_release(s);
    run();
    assert(x.done == 0 && y.done == 0);
}

static void options_not_cleared_are_refused(void)
{
    struct uva_runtime_options o;
    struct uva_runtime *other = NULL;
    struct uva_error error;

    memset(&o, 0xA5, sizeof(o));
    assert(uva_runtime_open(NULL, &o, &other, &error) == EINVAL &&
           other == NULL);
}

static int leave_and_wait(void *ctx, struct uva_batch *batch)
{
    struct seen *x = ctx;

    assert(uva_array_is_live(&batch->data));
    assert(batch->ordinal == x->batches); /* the next batch */
    x->agains++;
    uva_stream_resume(x->stream); /* before EAGAIN is returned */
    assert(count(ctx, batch) == 0);
    return EAGAIN;
}

static int take_and_wait(void *ctx, struct uva_batch *batch)
{
    struct seen *x = ctx;

    assert(batch->ordinal == x->batches++); /* the next batch */
    uva_array_release(&x->kept);
    uva_array_move(&batch->data, &x->kept);
    uva_stream_resume(x->stream);
    return EAGAIN;
}

static void eagain_is_taken(void)
{
    struct seen x = {0}, y = {0};
    struct uva_stream *s = some(), *t = some();

    assert(start(s, leave_and_wait, &x) == 0 &&
           start(t, take_and_wait, &y) == 0);
    run();
    assert(x.batches == DB_BATCHES && x.agains == DB_BATCHES && x.done == 1 &&
           x.end == UVA_END_COMPLETE);
    assert(y.batches == DB_BATCHES && y.done == 1);
    uva_array_release(&y.kept);
    uva_stream_release(s);
    uva_stream_release(t);
}

static int uv_error(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    return UV_EPIPE;
}

static int enough(void *ctx, struct uva_batch *batch)
{
    return count(ctx, batch) == 0 && batch->ordinal == 2 ? ECANCELED : 0;
}

static void outcomes_are_told_apart(void)
{
    struct seen x = {0}, y = {0}, z = {0};
    struct uva_stream *s = some(), *t = some(), *u = some();

    uva_stream_limit_rows(u, 3 * DB_ROWS);
    assert(start(s, uv_error, &x) == 0 && start(t, enough, &y) == 0 &&
           start(u, count, &z) == 0);
    uva_stream_release(s); /* the stream runs on by itself */
    uva_stream_release(t);
    uva_stream_release(u);
    run();
    assert(x.end == UVA_END_REJECTED && x.error.code == EPIPE && x.done == 1);
    assert(y.end == UVA_END_CANCELLED && y.error.code == ECANCELED &&
           y.batches == 3);
    assert(z.end == UVA_END_COMPLETE && z.batches == 3);
}

static int drop_myself(void *ctx, struct uva_batch *batch)
{
    struct seen *x = ctx;

    assert(batch->ordinal == 0);
    uva_stream_drop(x->stream);
    memset(x, 0x5A, sizeof(*x)); /* no callback may read it any more */
    return EIO;
}

static void drop_is_silent(void)
{
    struct seen x = {0}, y = {0};
    struct uva_stream *s = some(), *t = some();

    assert(start(s, drop_myself, &x) == 0 && start(t, count, &y) == 0);
    uva_stream_drop(t); /* before any batch */
    run();
    assert(x.done == 0x5A5A5A5A && y.done == 0 && y.batches == 0);
}

static void take_what_waits(void *ctx)
{
    struct seen *x = ctx;
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    while ((code = uva_stream_take(x->stream, &batch, &outcome)) == 0) {
        assert(batch.ordinal == x->batches++);
        uva_array_release(&batch.data);
    }
    if (code == EAGAIN)
        return; /* it is called again */
    assert(code == ENOENT && uva_stream_take(x->stream, NULL, NULL) == 0);
    assert(uva_stream_take(x->stream, &batch, NULL) == ENOENT); /* sticky */
    x->done++;
    x->end = outcome.end;
    uva_stream_release(x->stream);
}

static void take_is_told_once_after_each_eagain(void)
{
    struct seen x = {.stream = some()};

    assert(uva_stream_start_take(x.stream, NULL, take_what_waits, &x, NULL) ==
           0);
    assert(uva_stream_take(x.stream, NULL, NULL) == EAGAIN);
    assert(start(x.stream, count, &(struct seen){0}) == EBUSY);
    run();
    assert(x.batches == DB_BATCHES && x.done == 1 && x.end == UVA_END_COMPLETE);
}

static void *from_elsewhere(void *ctx)
{
    struct seen *x = ctx;
    int i;

    for (i = 0; i < 100; i++) {
        uva_stream_cancel(x->stream, 0, "from elsewhere");
        uva_stream_resume(x->stream);
    }
    uva_stream_release(x->stream);
    return NULL;
}

static int spawn(void *ctx, struct uva_batch *batch)
{
    struct seen *x = ctx;

    if (batch->ordinal == 1) {
        uva_stream_acquire(x->stream);
        assert(pthread_create(&x->thread, NULL, from_elsewhere, x) == 0);
    }
    return count(ctx, batch);
}

static void cancel_comes_from_anywhere(void)
{
    struct seen x = {0};
    struct uva_stream *s = some();

    assert(start(s, spawn, &x) == 0);
    run();
    pthread_join(x.thread, NULL);
    assert(x.done == 1 &&
           (x.end == UVA_END_CANCELLED || x.end == UVA_END_COMPLETE));
    uva_stream_cancel(s, 0, NULL); /* has ended long before */
    uva_stream_release(s);
    run();
}

static void blocking_out_never_hangs_the_loop(void)
{
    struct ArrowArrayStream out;
    struct ArrowArray array;

    struct uva_stream *s = some();

    assert(uva_stream_to_arrow_stream(s, NULL, &out, NULL) == 0);
    assert(out.get_next(&out, &array) == EDEADLK);
    assert(out.get_last_error(&out)[0] != '\0');
    out.release(&out); /* cancels */
    uva_stream_release(s);
    run();
}

static void close_cancels_and_tells(void)
{
    struct uva_runtime *mine = rt;
    struct seen x = {0}, late = {0};
    struct uva_stream *s, *t;

    assert(uva_runtime_open(loop, NULL, &rt, NULL) == 0);
    s = some();
    t = some();
    assert(start(s, count, &x) == 0);
    assert(uva_runtime_close(rt, 0, freed, &x) == 0);
    assert(uva_runtime_close(rt, UVA_FOREVER, NULL, NULL) == EALREADY);
    assert(start(t, count, &late) == ESHUTDOWN && late.done == 0);
    run();
    assert(x.done == 1 && x.end == UVA_END_CANCELLED && x.freed == 1);
    uva_stream_release(s); /* after the runtime is closed */
    uva_stream_release(t);
    rt = mine;
}

int main(void)
{
    loop = uv_default_loop();
    assert(uva_runtime_open(loop, NULL, &rt, NULL) == 0);
    errors_while_building_are_remembered();
    options_not_cleared_are_refused();
    eagain_is_taken();
    outcomes_are_told_apart();
    drop_is_silent();
    take_is_told_once_after_each_eagain();
    cancel_comes_from_anywhere();
    blocking_out_never_hangs_the_loop();
    close_cancels_and_tells();
    uva_runtime_close(rt, 0, NULL, NULL);
    run();
    assert(uv_loop_close(loop) == 0);
    world_await_release();
    return 0;
}
