/* SPDX-License-Identifier: Apache-2.0 */
/* A binding in a host on libuv, such as Node.js: only a request that waits
 * keeps the process alive, the end is not held up by a source that is stuck,
 * and the last call is known.
 *
 *     $ ./08_keep_alive
 *     answer: 10 rows
 *     the loop has ended, and the stream is open
 *     closed
 *     quiet
 */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "data.h"

struct environment {
    struct uva_runtime *rt; /* owns a reference */
    int waiting;            /* requests without an answer */
};

struct rows {
    struct environment *env;
    struct uva_stream *stream; /* counts */
    bool is_wanted;            /* a request waits */
};

static void environment_wait(struct environment *env, int change)
{
    env->waiting += change;
    uva_runtime_keep_alive(env->rt, env->waiting > 0);
}

/* Answers the request that waits, if there is an answer. */
static void rows_try(void *ctx)
{
    struct rows *rows = ctx;
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    if (!rows->is_wanted)
        return;
    code = uva_stream_take(rows->stream, &batch, &outcome);
    if (code == EAGAIN)
        return; /* it is called again */
    rows->is_wanted = false;
    environment_wait(rows->env, -1);
    if (code == 0) {
        printf("answer: %" PRId64 " rows\n", batch.data.array.length);
        uva_array_release(&batch.data);
    } else {
        printf("answer: the end, %s\n", uva_error_name(outcome.error.code));
    }
}

static void rows_next(struct rows *rows)
{
    rows->is_wanted = true;
    environment_wait(rows->env, 1);
    rows_try(rows);
}

/* The garbage collector calls it, also after the runtime has closed. */
static void rows_finalize(struct rows *rows)
{
    if (rows->is_wanted)
        environment_wait(rows->env, -1);
    uva_stream_drop(rows->stream);
}

static void on_closed(void *ctx)
{
    (void)ctx;
    printf("closed\n");
}

static void on_quiet(void *ctx) /* on any thread; the code may be unloaded */
{
    uv_sem_post(ctx);
}

int main(void)
{
    struct environment env = {0};
    struct rows rows = {.env = &env};
    struct uva_pusher *pusher; /* a source without an end */
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;
    uv_sem_t quiet;
    const struct uva_runtime_options options = {.close_limit_ms = 1,
                                                .uv_version = uv_version(),
                                                .on_quiet = on_quiet,
                                                .quiet_ctx = &quiet};

    if (uv_sem_init(&quiet, 0) != 0 || data_schema(8, &schema) != 0 ||
        data_make(8, 0, 10, &batch) != 0 ||
        uva_runtime_open(uv_default_loop(), &options, &env.rt, NULL) != 0)
        return 1;
    (void)uva_runtime_acquire(env.rt); /* for rows_finalize() */
    uva_runtime_keep_alive(env.rt, false);
    rows.stream = uva_stream_from_pusher(env.rt, NULL, &pusher);
    if (uva_pusher_set_schema(pusher, &schema) != 0 ||
        uva_pusher_push(pusher, &batch, NULL, 0) != 0 ||
        uva_stream_start_take(rows.stream, NULL, rows_try, &rows, NULL) != 0)
        return 1;
    rows_next(&rows);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    printf("the loop has ended, and the stream is open\n");
    (void)uva_runtime_close(env.rt, 0, on_closed, NULL);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    rows_finalize(&rows);
    uva_pusher_close(pusher, NULL, NULL);
    uv_sem_wait(&quiet);
    printf("quiet\n");
    uva_runtime_release(env.rt);
    return 0;
}
