/* SPDX-License-Identifier: Apache-2.0 */
/* A binding in a host on libuv, such as Node.js: only a request that waits for
 * an answer keeps the process alive, not a stream that nobody asks. Once every
 * function of the program was called for the last time, it may be unloaded.
 *
 *     $ cc keep_alive.c integers.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     answer: 10 rows
 *     nobody waits: the loop has ended, and the stream is open
 *     may be unloaded
 */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "integers.h"

static struct uva_runtime *rt; /* counts */
static struct uva_stream *s;   /* counts */
static bool is_wanted;         /* a request waits */

static void want(bool wanted)
{
    is_wanted = wanted;
    uva_runtime_keep_alive(rt, wanted);
}

/* Answers the request, if there is a batch. */
static void try_answer(void *ctx)
{
    struct uva_batch batch;

    (void)ctx;
    if (!is_wanted || uva_stream_take(s, &batch, NULL) != 0)
        return; /* it is called again */
    printf("answer: %" PRId64 " rows\n", batch.data.array.length);
    uva_array_release(&batch.data);
    want(false);
}

static void on_quiet(void *ctx) /* on any thread */
{
    uv_sem_post(ctx);
}

int main(void)
{
    struct uva_pusher *pusher; /* a source without an end */
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;
    uv_sem_t quiet;
    const struct uva_runtime_options options = {
        .uv_version = uv_version(), .on_quiet = on_quiet, .quiet_ctx = &quiet};

    if (uv_sem_init(&quiet, 0) != 0 || integers_new(10, &batch) == NULL ||
        uva_runtime_open(uv_default_loop(), &options, &rt, NULL) != 0)
        return 1;
    (void)uva_runtime_acquire(rt); /* want() may be called after the close */
    s = uva_stream_from_pusher(rt, NULL, &pusher);
    if (integers_schema(NULL, &schema, NULL) != 0 ||
        uva_pusher_set_schema(pusher, &schema) != 0 ||
        uva_pusher_push(pusher, &batch, NULL, 0) != 0 ||
        uva_stream_start_take(s, NULL, try_answer, NULL, NULL) != 0)
        return 1;
    want(true);
    try_answer(NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    printf("nobody waits: the loop has ended, and the stream is open\n");
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    want(false);
    uva_stream_release(s);
    uva_pusher_close(pusher, NULL, NULL);
    uv_sem_wait(&quiet);
    printf("may be unloaded\n");
    uva_runtime_release(rt);
    return 0;
}
