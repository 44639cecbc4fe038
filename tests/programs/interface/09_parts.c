/* SPDX-License-Identifier: Apache-2.0 */
/* An output of one's own: the parts of an encoded stream become frames of a
 * protocol (a length of four bytes, then the bytes), which are written without
 * copying, and no faster than the peer reads.
 *
 *     $ ./09_parts
 *     sent 100000 rows; the peer has read as many bytes as were sent
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <uv.h>

#include "data.h"
#include "uvarrow/io.h"

#define HIGH (1 << 16) /* bytes that wait in the socket */

static struct {
    struct uva_runtime *rt;
    struct uva_stream *stream; /* counts */
    uv_pipe_t ends[2];         /* of a pair of sockets */
    int64_t rows, sent, read;
} app;

struct frame {
    uv_write_t requests[2];
    struct uva_part part; /* owns */
    uint32_t length;      /* in network order */
};

static void on_written(uv_write_t *request, int status)
{
    struct frame *frame = request->data;

    uva_part_release(&frame->part); /* and the batch that it is of */
    free(frame);
    if (status != 0)
        uva_stream_cancel(app.stream, -status, "the peer is gone");
    else if (app.ends[0].write_queue_size < HIGH / 4)
        uva_stream_resume(app.stream);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    uv_stream_t *const socket = (uv_stream_t *)&app.ends[0];
    struct frame *frame = calloc(1, sizeof(*frame));
    uv_buf_t head;
    int code;

    (void)ctx;
    if (frame == NULL || uva_part_take(&batch->data, &frame->part) != 0) {
        free(frame);
        return ENOMEM;
    }
    app.rows += frame->part.rows;
    app.sent += 4 + frame->part.bytes;
    frame->length = htonl((uint32_t)frame->part.bytes);
    frame->requests[1].data = frame;
    head = uv_buf_init((char *)&frame->length, 4);
    code = uv_write(&frame->requests[0], socket, &head, 1, NULL);
    if (code == 0)
        code = uv_write(&frame->requests[1], socket, frame->part.buffers,
                        (unsigned)frame->part.count, on_written);
    if (code != 0)
        return code; /* the program ends; a server would close the socket */
    return socket->write_queue_size < HIGH ? 0 : EAGAIN;
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    (void)request;
    (void)status;
    uva_stream_release(app.stream);
    uv_close((uv_handle_t *)&app.ends[0], NULL);
    (void)uva_runtime_close(app.rt, 0, NULL, NULL);
}

/* The last frames may still wait in the socket. */
static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    static uv_shutdown_t request;

    (void)ctx;
    if (outcome->error.code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    (void)uv_shutdown(&request, (uv_stream_t *)&app.ends[0], on_shutdown);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
    static char bytes[65536];

    (void)handle;
    (void)size;
    *buffer = uv_buf_init(bytes, sizeof(bytes));
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    (void)buffer;
    if (size >= 0) {
        app.read += size;
        return;
    }
    uv_close((uv_handle_t *)stream, NULL);
    printf("sent %" PRId64 " rows; the peer has read %s\n", app.rows,
           app.read == app.sent ? "as many bytes as were sent" : "less");
}

int main(void)
{
    uv_loop_t *const loop = uv_default_loop();
    struct uva_error error;
    int pair[2];
    int code = uva_runtime_open(loop, NULL, &app.rt, &error);

    if (code != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        if (uv_pipe_init(loop, &app.ends[i], 0) != 0 ||
            uv_pipe_open(&app.ends[i], pair[i]) != 0)
            return 1;
    app.stream = data_stream(app.rt, 8, 100, 1000);
    (void)uva_stream_encode(app.stream,
                            &(struct uva_encode){.format = UVA_FORMAT_JSON});
    code = uva_stream_for_each(
        app.stream,
        &(struct uva_consumer){.on_batch = on_batch, .on_done = on_done},
        &error);
    if (code != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    (void)uv_read_start((uv_stream_t *)&app.ends[1], on_alloc, on_read);
    return uv_run(loop, UV_RUN_DEFAULT);
}
