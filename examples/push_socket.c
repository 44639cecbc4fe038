/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes what arrives on a pipe or a socket into a stream. It is read on the
 * loop, directly into the memory of the next batch. When the window is full,
 * push returns EAGAIN and the program stops reading, so that the sender waits.
 *
 *     $ cc push_socket.c filling.c integers.c integers_sum.c \
 *          $(pkg-config --cflags --libs uvarrow libuv)
 *     $ head -c 16000000 /dev/zero | ./a.out
 *     2000000 numbers
 */
#include <stdio.h>

#include "filling.h"

static uv_pipe_t input; /* a uv_tcp_t is read in the same way */
static struct filling next;
static struct uva_pusher *pusher; /* owns, until it is closed */

static void input_end(int code)
{
    struct uva_error error;

    if (code != 0)
        uva_error_set(&error, -code, "the input: %s", uv_strerror(code));
    uv_close((uv_handle_t *)&input, NULL);
    uva_array_release(&next.batch);
    uva_pusher_close(pusher, code != 0 ? &error : NULL, NULL);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buffer)
{
    (void)handle, (void)hint;
    *buffer = filling_room(&next);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    int code = 0;

    (void)buffer;
    if (filling_add(&next, size)) /* the pusher takes the batch */
        code = uva_pusher_push(pusher, &next.batch, NULL, 0);
    if (size < 0)
        input_end(size == UV_EOF ? 0 : (int)size);
    else if (code == EAGAIN) /* it was pushed, and the window is full now */
        uv_read_stop(stream);
    else if (code != 0)
        input_end(-code);
}

static void on_writable(void *ctx, struct uva_pusher *writable)
{
    (void)ctx, (void)writable; /* or closed: the next push tells it */
    uv_read_start((uv_stream_t *)&input, on_alloc, on_read);
}

int main(int argc, char **argv)
{
    const struct uva_push_source source = {.on_writable = on_writable,
                                           .on_closed = on_writable};
    uv_loop_t *loop = uv_default_loop();
    struct integers_sum sum;
    struct ArrowSchema schema;
    struct uva_runtime *rt;

    if (argc != 1 || uv_guess_handle(0) != UV_NAMED_PIPE ||
        uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        uv_pipe_init(loop, &input, 0) != 0 || uv_pipe_open(&input, 0) != 0)
        return fprintf(stderr, "usage: SENDER | %s\n", argv[0]), 1;
    integers_add_up(uva_stream_from_pusher(rt, &source, &pusher), &sum);
    if (integers_schema(NULL, &schema, NULL) != 0 ||
        uva_pusher_set_schema(pusher, &schema) != 0)
        return 1;
    on_writable(NULL, pusher);
    uv_run(loop, UV_RUN_DEFAULT);
    uva_runtime_close(rt, 0, NULL, NULL);
    if (uv_run(loop, UV_RUN_DEFAULT) == 0 && sum.code == 0)
        printf("%lld numbers\n", (long long)sum.rows);
    return sum.code != 0;
}
