/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_write(): the destination is a libuv stream, which queues the bytes
 * that the system does not take at once. */
#include <stdlib.h>

#include "io/writer.h"
#include "uvarrow/runtime.h"

struct socket_writer {
    struct uva__writer writer; /* first */
    uv_stream_t *socket;       /* borrows, until the last op is written */
};

static void socket_on_written(uv_write_t *request, int status)
{
    uva__writer_written(request->data, -status);
}

static int socket_write(struct uva__writer *writer, struct uva__write_op *op)
{
    struct socket_writer *w = (struct socket_writer *)writer;

    op->request.data = op;
    return -uv_write(&op->request, w->socket, op->buffers, op->count,
                     socket_on_written);
}

static void socket_free(struct uva__writer *writer)
{
    free(writer);
}

static const struct uva__writer_ops socket_ops = {
    .write = socket_write,
    .free = socket_free,
};

/* Whether the calling thread and the socket belong to the stream's loop. */
static int socket_check(const struct uva_stream *stream,
                        const struct uv_stream_s *socket,
                        struct uva_error *error)
{
    struct uva_runtime *runtime = uva_stream_get_runtime(stream);

    if (socket == NULL)
        return uva_error_set(error, EINVAL, "uva_stream_write: no socket");
    if (runtime == NULL)
        return 0; /* the start returns why */
    if (!uva_runtime_on_loop(runtime))
        return uva_error_set(error, EPERM,
                             "uva_stream_write: not on the loop thread");
    if (socket->loop != uva_runtime_loop(runtime))
        return uva_error_set(error, EINVAL,
                             "uva_stream_write: the socket is not on the "
                             "runtime's loop");
    return 0;
}

int uva_stream_write(struct uva_stream *stream, struct uv_stream_s *socket,
                     const struct uva_write *options, struct uva_error *error)
{
    struct socket_writer *w;
    int code;

    if (options == NULL)
        return uva_error_set(error, EINVAL, "uva_stream_write: no options");
    code = uva__writer_check(options, error);
    if (code == 0)
        code = socket_check(stream, socket, error);
    if (code != 0)
        return code;
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    w->writer.ops = &socket_ops;
    w->socket = socket;
    return uva__writer_start(&w->writer, stream, options, error);
}
