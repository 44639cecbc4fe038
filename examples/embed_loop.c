/* SPDX-License-Identifier: Apache-2.0 */
/* Embeds the runtime in the libuv loop that a program already has, and closes
 * it while a source blocks. The program's own timer runs on; at the end no
 * handle of the runtime is left on the loop.
 *
 *     $ cc embed_loop.c $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ mkfifo feed # to which nobody writes
 *     $ ./a.out feed
 *     the feed is silent: quit
 *     the stream: the runtime was closed
 *     the runtime has gone, the loop goes on
 */
#include <stdio.h>
#include <uv.h>

#include "uvarrow/io.h"

struct app {
    uv_timer_t heart; /* the program's own work */
    int beats;
    bool is_well;
    struct uva_runtime *rt; /* NULL: closed */
};

static void on_closed(void *ctx)
{
    struct app *app = ctx;

    printf("the runtime has gone, the loop goes on\n");
    app->rt = NULL;
    app->beats = 0;
}

static void on_heart(uv_timer_t *timer)
{
    struct app *app = timer->data;

    app->beats++;
    if (app->rt == NULL && app->beats == 10) {
        uv_close((uv_handle_t *)timer, NULL); /* the end of the program */
    } else if (app->rt != NULL && app->beats == 50) {
        printf("the feed is silent: quit\n");
        uva_runtime_close(app->rt, 0, on_closed, app); /* cancels streams */
    }
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)batch;
    ((struct app *)ctx)->beats = 0;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    app->is_well = outcome->end == UVA_END_CANCELLED;
    printf("the stream: %s\n", outcome->error.message);
}

int main(int argc, char **argv)
{
    struct app app = {.heart = {.data = &app}};
    struct uva_consumer to = {
        .on_batch = on_batch, .on_done = on_done, .ctx = &app};
    uv_loop_t *loop = uv_default_loop();
    struct uva_stream *s;
    int code;

    if (argc != 2 || uva_runtime_open(loop, NULL, &app.rt, NULL) != 0)
        return 1;
    s = uva_stream_from_file(app.rt, argv[1], NULL);
    code = uva_stream_for_each(s, &to, NULL);
    uva_stream_release(s);
    uv_timer_init(loop, &app.heart);
    uv_timer_start(&app.heart, on_heart, 1, 1);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || code != 0 || !app.is_well;
}
