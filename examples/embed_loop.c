/* SPDX-License-Identifier: Apache-2.0 */
/* Embeds the runtime in the libuv loop that a program already has, and closes
 * it while a source blocks. The program's own timer runs before, during and
 * after that; at the end no handle is left on the loop.
 *
 *     $ cc embed_loop.c $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out
 *     3 batches came, and the source is silent: quit
 *     the stream was cancelled
 *     the runtime has gone, the source was interrupted, the loop goes on
 *     nothing is left on the loop
 */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

/* ---- a source that gives three batches and then blocks for ever --------- */

struct source {
    int wire[2];             /* owns: a socket that never receives data */
    int given;               /* batches given */
    atomic_bool silent;      /* get_next blocks */
    atomic_bool interrupted; /* the interrupt hook was called */
};

static void array_release(struct ArrowArray *array)
{
    array->release = NULL; /* no memory to free */
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int source_get_schema(struct ArrowArrayStream *self,
                             struct ArrowSchema *out)
{
    (void)self;
    *out = (struct ArrowSchema){
        .format = "n", /* null */ .name = "", .release = schema_release};
    return 0;
}

static int source_get_next(struct ArrowArrayStream *self,
                           struct ArrowArray *out)
{
    struct source *source = self->private_data;
    char byte;

    *out = (struct ArrowArray){
        .length = 1000, .null_count = 1000, .release = array_release};
    if (source->given++ < 3)
        return 0;
    out->release = NULL;
    atomic_store(&source->silent, true);
    (void)!read(source->wire[0], &byte, 1); /* blocks */
    return ECANCELED;
}

static const char *source_get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return "interrupted";
}

static void source_release(struct ArrowArrayStream *self)
{
    self->release = NULL;
}

/* Makes the read return, as the cancel call of a driver does. Runs on another
 * worker than the read. */
static void source_interrupt(void *ctx)
{
    struct source *source = ctx;

    atomic_store(&source->interrupted, true);
    (void)shutdown(source->wire[0], SHUT_RDWR);
}

/* The last call, after the stream was released. */
static void source_close(void *ctx)
{
    struct source *source = ctx;

    (void)close(source->wire[0]);
    (void)close(source->wire[1]);
}

/* ---- the program -------------------------------------------------------- */

struct app {
    struct source source;
    uv_loop_t loop;
    uv_timer_t heart; /* the program's own work */
    uv_timer_t quit;  /* the user quits */
    struct uva_runtime *rt;
    int batches;
};

static void on_heart(uv_timer_t *timer)
{
    (void)timer; /* stands for the program's own work */
}

/* The runtime has no handle on the loop any more. The program could continue as
 * long as it likes. */
static void on_closed(void *ctx)
{
    struct app *app = ctx;

    printf("the runtime has gone, the source was %s, the loop goes on\n",
           atomic_load(&app->source.interrupted) ? "interrupted" : "let be");
    uv_close((uv_handle_t *)&app->heart, NULL);
    uv_close((uv_handle_t *)&app->quit, NULL);
}

static void on_quit(uv_timer_t *timer)
{
    struct app *app = timer->data;

    if (app->batches < 3 || !atomic_load(&app->source.silent))
        return; /* not all batches have come */
    uv_timer_stop(timer);
    printf("%d batches came, and the source is silent: quit\n", app->batches);
    uva_runtime_close(app->rt, 0, on_closed, app); /* cancels running streams */
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct app *app = ctx;

    (void)batch;
    app->batches++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    printf("the stream was %s\n",
           outcome->end == UVA_END_CANCELLED ? "cancelled" : "not cancelled");
}

static int start(struct app *app)
{
    struct ArrowArrayStream reader = {.get_schema = source_get_schema,
                                      .get_next = source_get_next,
                                      .get_last_error = source_get_last_error,
                                      .release = source_release,
                                      .private_data = &app->source};
    struct uva_stream *s = uva_stream_from_arrow_stream(
        app->rt, &reader,
        &(struct uva_arrow_source){.interrupt = source_interrupt,
                                   .free_ctx = source_close,
                                   .ctx = &app->source});
    const int code = uva_stream_for_each(
        s,
        &(struct uva_consumer){
            .on_batch = on_batch, .on_done = on_done, .ctx = app},
        NULL);

    uva_stream_release(s);
    return code;
}

int main(void)
{
    struct app app = {0};

    if (uv_loop_init(&app.loop) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, app.source.wire) != 0)
        return 1;
    uv_timer_init(&app.loop, &app.heart);
    uv_timer_init(&app.loop, &app.quit);
    app.quit.data = &app;
    uv_timer_start(&app.heart, on_heart, 1, 1);
    uv_timer_start(&app.quit, on_quit, 1, 1);

    if (uva_runtime_open(&app.loop, NULL, &app.rt, NULL) != 0 ||
        start(&app) != 0)
        return 1;
    uv_run(&app.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&app.loop) != 0)
        return 1;
    printf("nothing is left on the loop\n");
    return 0;
}
