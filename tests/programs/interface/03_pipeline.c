/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline with two branches: all even numbers are written to a file, and a
 * display shows the newest of them. It is paused for a while, as if its window
 * were hidden, which never holds up the file.
 *
 *     $ ./03_pipeline numbers.arrow | sort
 *     display: paused once, then shown again
 *     file: 500000 rows
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "data.h"
#include "uvarrow/io.h"

static struct {
    struct uva_runtime *rt;
    struct uva_stream *display; /* counts, until done */
    uv_timer_t timer;
    int shown, pauses;
    int open; /* branches */
} app;

static int even(void *ctx, const struct uva_batch *batch, uint8_t *bits,
                struct uva_error *error)
{
    const int64_t *values = data_values(&batch->data.array, 8);

    (void)ctx;
    (void)error;
    for (int64_t row = 0; row < batch->data.array.length; row++)
        if (values[row] % 2 == 0)
            bits[row / 8] |= (uint8_t)(1 << row % 8);
    return 0;
}

static void branch_done(const char *name, const struct uva_outcome *outcome)
{
    if (outcome->error.code != 0)
        fprintf(stderr, "%s: %s\n", name, outcome->error.message);
    if (--app.open == 0)
        (void)uva_runtime_close(app.rt, 0, NULL, NULL);
}

static void on_timer(uv_timer_t *timer)
{
    uva_stream_resume(app.display); /* NULL is allowed */
    uv_close((uv_handle_t *)timer, NULL);
}

static void app_hide(void) /* for 50 ms */
{
    app.pauses++;
    (void)uv_timer_init(uv_default_loop(), &app.timer);
    (void)uv_timer_start(&app.timer, on_timer, 50, 0);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    if (++app.shown != 2)
        return 0;
    app_hide();
    return EAGAIN; /* this batch is taken, and no more now */
}

static void on_display_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    uva_stream_release(app.display);
    app.display = NULL;
    if (app.pauses == 1 && app.shown > 2)
        printf("display: paused once, then shown again\n");
    branch_done("display", outcome);
}

static void on_file_done(void *ctx, const struct uva_outcome *outcome,
                         int64_t bytes)
{
    (void)ctx;
    (void)bytes;
    printf("file: %" PRId64 " rows\n", outcome->rows);
    branch_done("file", outcome);
}

int main(int argc, char **argv)
{
    const int fd =
        argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    struct uva_error error;
    struct uva_stream *s;
    int code;

    if (fd < 0 ||
        uva_runtime_open(uv_default_loop(), NULL, &app.rt, &error) != 0)
        return 1;
    s = data_stream(app.rt, 8, 1000, 1000);
    uva_stream_filter(s, &(struct uva_filter){.keep = even});
    uva_stream_rebatch(s, &(struct uva_rebatch){.rows = 4096});
    app.display =
        uva_stream_tee(s, &(struct uva_tee){.slow = UVA_SLOW_DROP_OLD,
                                            .window = {.batches = 1}});
    code =
        uva_stream_for_each(app.display,
                            &(struct uva_consumer){.on_batch = on_batch,
                                                   .on_done = on_display_done},
                            &error);
    if (code == 0)
        code = uva_stream_write_file(
            s, fd,
            &(struct uva_write){.encode = {.format = UVA_FORMAT_ARROW_FILE},
                                .on_done = on_file_done},
            &error);
    uva_stream_release(s);
    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    app.open = 2;
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
