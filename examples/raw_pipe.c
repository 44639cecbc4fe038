/* SPDX-License-Identifier: Apache-2.0 */
/* Writes numbers to a pipe or socket in a protocol of its own: their bytes.
 * While much waits to be written, the stream is paused.
 *
 *     $ cc raw_pipe.c integers.c tell.c \
 *         $(pkg-config --cflags --libs uvarrow libuv)
 *     $ ./a.out 100 | wc -c
 *     6553600
 */
#include <signal.h>
#include <stdlib.h>
#include <uv.h>

#include "integers.h"
#include "tell.h"

enum { HIGH_BYTES = 1 << 20, LOW_BYTES = 1 << 18 }; /* that wait */

struct chunk {
    uv_write_t write;
    struct uva_stream *stream; /* counts */
    struct ArrowDeviceArray data;
};

static void on_written(uv_write_t *write, int status)
{
    struct chunk *chunk = (struct chunk *)write;

    if (status != 0)
        uva_stream_cancel(chunk->stream, -status, "cannot write");
    else if (uv_stream_get_write_queue_size(write->handle) <= LOW_BYTES)
        uva_stream_resume(chunk->stream);
    uva_array_release(&chunk->data);
    uva_stream_release(chunk->stream);
    free(chunk);
}

static int on_batch(void *pipe, struct uva_batch *batch)
{
    const int64_t *numbers = integers_of(&batch->data);
    const uv_buf_t bytes =
        uv_buf_init((char *)numbers, (unsigned)batch->data.array.length * 8);
    struct chunk *chunk = malloc(sizeof(*chunk));
    int code;

    if (chunk == NULL)
        return ENOMEM;
    chunk->stream = uva_stream_acquire(batch->stream);
    uva_array_move(&batch->data, &chunk->data);
    code = uv_write(&chunk->write, pipe, &bytes, 1, on_written);
    if (code != 0)
        on_written(&chunk->write, code);
    else if (uv_stream_get_write_queue_size(pipe) > HIGH_BYTES)
        uva_stream_pause(batch->stream);
    return -code;
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    uv_pipe_t pipe;
    struct uva_consumer to = {.on_batch = on_batch, .ctx = &pipe};
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;

    if (argc != 2 || uv_pipe_init(loop, &pipe, 0) != 0 ||
        uv_pipe_open(&pipe, 1) != 0 ||
        uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 2;
    signal(SIGPIPE, SIG_IGN); /* the write returns an error instead */
    s = integers_stream(rt, strtoul(argv[1], NULL, 10), 8192);
    if (uva_stream_for_each(s, &to, &error) != 0)
        return tell(&error);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL); /* once it has ended */
    (void)uv_run(loop, UV_RUN_DEFAULT);             /* and all is written */
    const int code = uva_stream_status(s, &error);
    uva_stream_release(s);
    return code != 0 ? tell(&error) : 0;
}
