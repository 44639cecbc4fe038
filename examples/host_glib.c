/* SPDX-License-Identifier: Apache-2.0 */
/* A GLib program hosts the runtime as one source on one descriptor, and takes
 * batches after each turn.
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

static void end(struct app *app, const struct uva_error *error)
{
    app->code = error->code;
    if (app->code != 0)
        fprintf(stderr, "query: %s\n", error->message);
    uva_stream_release(app->stream);
    app->stream = NULL;
    uva_runtime_close(app->rt, 0, NULL, NULL);
}

/* Takes all batches that wait; the end comes once. */
static void take(struct app *app)
{
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    while ((code = uva_stream_take(app->stream, &batch, &outcome)) == 0) {
        app->rows += batch.data.array.length;
        uva_array_release(&batch.data);
    }
    if (code == ENOENT)
        end(app, &outcome.error);
}

static gboolean turn(gint fd, GIOCondition condition, gpointer ctx)
{
    struct app *app = ctx;
    const bool is_open = uva_runtime_turn(app->rt);

    (void)fd;
    (void)condition;
    if (app->stream != NULL)
        take(app);
    if (!is_open)
        g_main_loop_quit(app->main);
    return is_open ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
    struct app app = {0};
    struct uva_error error;

    if (argc != 4) {
        fprintf(stderr, "usage: %s DRIVER URI SQL\n", argv[0]);
        return 2;
    }
    if (uva_runtime_open_turned(NULL, NULL, NULL, &app.rt, NULL) != 0)
        return 1;
    app.main = g_main_loop_new(NULL, FALSE);
    g_unix_fd_add(uva_runtime_fd(app.rt), G_IO_IN, turn, &app);

    app.stream = database_query(app.rt, argv[1], argv[2],
                                &(struct uva_adbc_query){.sql = argv[3]});
    if (uva_stream_start_take(app.stream, NULL, NULL, NULL, &error) != 0)
        end(&app, &error);
    g_main_loop_run(app.main);
    g_main_loop_unref(app.main);
    printf("%lld rows\n", (long long)app.rows);
    return app.code != 0;
}
