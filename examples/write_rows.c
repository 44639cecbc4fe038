/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as text in a pipe, by writes of the program's own. While much waits to
 * be written no batch is delivered, so the query stops, and a write that ends
 * lets it go on. (uva_stream_write() does this for the formats of uvarrow-io.)
 *
 *     $ cc write_rows.c database.c rows.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc libuv)
 *     $ ./a.out "$SQLITE" :memory: "SELECT 2, 'apples'" | cat
 *     2	apples
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "database.h"
#include "rows.h"

enum { HIGH_BYTES = 1 << 20, LOW_BYTES = 1 << 18 };

static uv_pipe_t out;
static struct uva_stream *rows; /* counts */

static void on_written(uv_write_t *write, int status)
{
    free(write->data); /* the bytes */
    free(write);
    if (status < 0)
        uva_stream_cancel(rows, -status, uv_strerror(status));
    else if (out.write_queue_size < LOW_BYTES)
        uva_stream_resume(rows);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    uv_write_t *write = malloc(sizeof(*write));
    uv_buf_t text = uv_buf_init(NULL, 0);
    int code = rows_text(batch, &text.base, &text.len);

    (void)ctx;
    if (code == 0 && write == NULL)
        code = ENOMEM;
    if (code == 0) {
        write->data = text.base;
        code = uv_write(write, (uv_stream_t *)&out, &text, 1, on_written);
    }
    if (code == 0) /* EAGAIN: the batch is taken, and no more now */
        return out.write_queue_size > HIGH_BYTES ? EAGAIN : 0;
    free(text.base);
    free(write);
    return code; /* negative codes of libuv are valid, too */
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;
    struct uva_error error;
    int code;

    signal(SIGPIPE, SIG_IGN); /* the write returns an error instead */
    if (argc != 4 || uv_guess_handle(1) != UV_NAMED_PIPE ||
        uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        uv_pipe_init(loop, &out, 0) != 0 || uv_pipe_open(&out, 1) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL | PROGRAM\n", argv[0]),
               2;
    rows = database_query(rt, argv[1], argv[2],
                          &(struct uva_adbc_query){.sql = argv[3]});
    code = uva_stream_for_each(
        rows, &(struct uva_consumer){.on_batch = on_batch}, &error);
    uv_run(loop, UV_RUN_DEFAULT); /* until all is written */
    if (code == 0)
        code = uva_stream_status(rows, &error);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(rows);
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return code != 0;
}
