/* SPDX-License-Identifier: Apache-2.0 */
/* Controls a stream from another thread: a console that reads commands while
 * the loop runs. A command that needs the loop is posted to it; a cancel is
 * allowed on any thread that holds a reference, and may overtake a post.
 *
 *     $ cc any_thread.c $(pkg-config --cflags --libs uvarrow-io)
 *     $ mkfifo feed # to which nobody writes
 *     $ (echo rows; echo quit) | ./a.out feed | sort
 *     0 rows so far
 *     0 rows so far
 *     console: quit
 */
#include <inttypes.h>
#include <stdio.h>

#include "uvarrow/io.h"

struct app {
    struct uva_runtime *rt;
    int64_t rows; /* used on the loop thread alone */
    enum uva_end end;
};

static void print_rows(void *ctx)
{
    printf("%" PRId64 " rows so far\n", ((struct app *)ctx)->rows);
}

/* For any thread. */
static void say_rows(struct app *app)
{
    if (uva_runtime_on_loop(app->rt))
        print_rows(app);
    else if (uva_runtime_post(app->rt, print_rows, app) != 0)
        fprintf(stderr, "the runtime is closing\n");
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    ((struct app *)ctx)->rows += batch->data.array.length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    app->end = outcome->end;
    printf("%s\n", outcome->error.code != 0 ? outcome->error.message : "read");
    say_rows(app);
}

/* Owns a reference to the stream. */
static void console(struct app *app, struct uva_stream *s)
{
    char command[16];

    while (scanf("%15s", command) == 1 && command[0] != 'q')
        say_rows(app);
    uva_stream_cancel(s, 0, "console: quit"); /* no effect on an ended one */
    uva_stream_release(s);
}

int main(int argc, char **argv)
{
    struct app app = {.rows = 0};
    struct uva_consumer to = {
        .on_batch = on_batch, .on_done = on_done, .ctx = &app};
    struct uva_error error;
    struct uva_stream *s;

    if (argc != 2 || uva_runtime_open(NULL, NULL, &app.rt, NULL) != 0)
        return 2;
    s = uva_stream_from_file(app.rt, argv[1], NULL);
    if (uva_stream_for_each(s, &to, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    console(&app, s);
    uva_runtime_join(app.rt, UVA_FOREVER);
    return app.end == UVA_END_FAILED;
}
