/* SPDX-License-Identifier: Apache-2.0 */
/* A GLib program hosts the runtime as one source on one descriptor, and pulls
 * batches: it requests the next one when it is idle.
 *
 *     example_host_glib DRIVER URI SQL */
#include <glib-unix.h>
#include <stdio.h>

#include "database.h"

struct app {
    GMainLoop *main;
    struct uva_runtime *rt;
    struct uva_stream *stream; /* owns a reference */
    int64_t rows;
    int code; /* code of the query's outcome */
};

static gboolean turn(gint fd, GIOCondition condition, gpointer rt)
{
    (void)fd;
    (void)condition;
    return uva_runtime_turn(rt) ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static void closed(void *ctx)
{
    g_main_loop_quit(((struct app *)ctx)->main);
}

static void end(struct app *app, const struct uva_error *error)
{
    app->code = error->code;
    if (app->code != 0)
        fprintf(stderr, "query: %s\n", error->message);
    uva_stream_release(app->stream);
    uva_runtime_close(app->rt, 0, closed, app);
}

static gboolean ask(gpointer app);

static void answer(void *ctx, struct uva_batch *batch,
                   const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    if (batch == NULL) {
        end(app, &outcome->error);
        return;
    }
    app->rows += batch->data.array.length;
    g_idle_add(ask, app);
}

static gboolean ask(gpointer ctx)
{
    struct app *app = ctx;
    struct uva_error error;

    if (uva_stream_next(app->stream, answer, app, &error) != 0)
        end(app, &error);
    return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
    struct app app = {0};

    if (argc != 4) {
        fprintf(stderr, "usage: %s DRIVER URI SQL\n", argv[0]);
        return 2;
    }
    if (uva_runtime_open_turned(NULL, NULL, NULL, &app.rt, NULL) != 0)
        return 1;
    app.main = g_main_loop_new(NULL, FALSE);
    g_unix_fd_add(uva_runtime_fd(app.rt), G_IO_IN, turn, app.rt);

    app.stream = database_query(
        app.rt, argv[1], argv[2],
        &(struct uva_adbc_query){.sql = argv[3],
                                 .window = {.batches = 4}}); /* ahead */
    g_idle_add(ask, &app);
    g_main_loop_run(app.main);
    g_main_loop_unref(app.main);
    printf("%lld rows\n", (long long)app.rows);
    return app.code != 0;
}
