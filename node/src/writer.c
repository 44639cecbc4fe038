/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that JavaScript has, as a stream of the batches in them. They pass
 * through a pair of sockets on the runtime's own loop: one end is read by
 * uva_stream_from_socket(), which stops while its window is full, and the other
 * end is full then, so that JavaScript waits.
 *
 * Happy path:  open -> stream -> write, which gives whether all was written; if
 *              not, JavaScript is told when it is -> end -> both are closed.
 *
 * On drop of the stream: its end is closed, so that a write fails with EPIPE,
 *              which JavaScript takes as the end. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "addon.h"

struct writer {
    struct host *host;         /* counts */
    struct uva_stream *stream; /* counts; NULL: given */
    struct uva_window window;
    uv_pipe_t pipe, reader;
    uv_write_t request;
    napi_ref bytes; /* that are being written; NULL: none */
    struct news news;
    struct writer *next, **link; /* in host->writers, while it is open */
    int users;                   /* the external, and each handle */
    bool is_failed;              /* EPIPE from now on */
};

static void writer_release(struct writer *writer)
{
    if (--writer->users > 0)
        return;
    host_release(writer->host);
    free(writer);
}

static void writer_closed(uv_handle_t *handle)
{
    writer_release(handle->data);
}

static void handle_close(uv_pipe_t *pipe)
{
    if (!uv_is_closing((uv_handle_t *)pipe))
        uv_close((uv_handle_t *)pipe, writer_closed);
}

static void writer_close(struct writer *writer)
{
    if (writer->link == NULL)
        return;
    *writer->link = writer->next;
    if (writer->next != NULL)
        writer->next->link = writer->link;
    writer->link = NULL;
    (void)uva_runtime_loop(writer->host->runtime);
    handle_close(&writer->pipe);
}

void writer_close_all(struct host *host)
{
    while (host->writers != NULL) {
        struct writer *writer = host->writers;

        uva_stream_release(writer->stream);
        writer->stream = NULL;
        writer_close(writer);
    }
}

static void writer_finalize(napi_env env, void *data, void *hint)
{
    struct writer *writer = data;

    (void)env;
    (void)hint;
    host_forget(writer->host, &writer->news);
    uva_stream_release(writer->stream);
    writer->stream = NULL;
    if (!writer->host->is_closing)
        writer_close(writer);
    writer_release(writer);
}

/* ---- opening ------------------------------------------------------------- */

/* The reading end is the stream's until then. */
static void reader_released(void *ctx, uv_stream_t *socket)
{
    (void)ctx;
    handle_close((uv_pipe_t *)socket);
}

static int handle_open(struct writer *writer, uv_pipe_t *pipe, int fd)
{
    int code;

    code = uv_pipe_init(uva_runtime_loop(writer->host->runtime), pipe, 0);
    if (code == 0) {
        pipe->data = writer;
        writer->users++;
        code = uv_pipe_open(pipe, fd);
        if (code == 0)
            return 0;
        handle_close(pipe);
    }
    (void)close(fd);
    return -code;
}

static int writer_connect(struct writer *writer)
{
    const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int pair[2], code;

    if (socketpair(AF_UNIX, type, 0, pair) != 0)
        return errno;
    code = handle_open(writer, &writer->reader, pair[0]);
    if (code != 0) {
        (void)close(pair[1]);
        return code;
    }
    code = handle_open(writer, &writer->pipe, pair[1]);
    if (code != 0)
        handle_close(&writer->reader);
    return code;
}

static void writer_link(struct writer *writer)
{
    struct host *host = writer->host;

    writer->next = host->writers;
    writer->link = &host->writers;
    if (host->writers != NULL)
        host->writers->link = &writer->next;
    host->writers = writer;
}

static int writer_begin(struct writer *writer, const struct uva_window *window)
{
    struct uva_runtime *runtime = writer->host->runtime;
    int code;

    code = writer_connect(writer);
    if (code != 0)
        return code;
    writer_link(writer);
    writer->stream = uva_stream_from_socket(
        runtime, (uv_stream_t *)&writer->reader,
        &(struct uva_ipc_source){.window = *window,
                                 .on_released = reader_released});
    if (uva_stream_status(writer->stream, NULL) != 0) /* it is not used */
        handle_close(&writer->reader);
    return 0;
}

/* openWriter(batches, bytes): the external of a writer, and its number in
 * `numbers` */
napi_value writer_open(napi_env env, napi_callback_info info)
{
    struct host *host = host_of(env);
    struct uva_window window;
    struct writer *writer;
    napi_value args[2], out;
    int code;

    if (host == NULL || !value_args(env, info, 2, args) ||
        !source_window(env, args, &window))
        return NULL;
    writer = calloc(1, sizeof(*writer));
    if (writer == NULL)
        return value_no_memory(env);
    writer->host = host_acquire(host);
    writer->users = 1;
    writer->window = window;
    writer->news = (struct news){.kind = NEWS_WRITTEN, .id = host_new_id(host)};
    code = writer_begin(writer, &window);
    out = value_external(env, writer, writer_finalize);
    if (out != NULL && code != 0)
        return value_fail(env, code, "a pair of sockets cannot be made", NULL);
    host->numbers[NUMBER_ID] = (double)writer->news.id;
    return out;
}

/* writerStream(writer) -> stream, once */
napi_value writer_stream(napi_env env, napi_callback_info info)
{
    struct writer *writer = NULL;
    struct uva_stream *stream;
    napi_value arg = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &writer))
        return NULL;
    stream = writer->stream;
    writer->stream = NULL;
    return rows_new(env, stream, &writer->window);
}

/* ---- writing ------------------------------------------------------------- */

static void writer_written(uv_write_t *request, int status)
{
    struct writer *writer = request->data;
    struct host *host = writer->host;

    if (host->env != NULL)
        (void)napi_delete_reference(host->env, writer->bytes);
    writer->bytes = NULL;
    writer->is_failed = writer->is_failed || status != 0;
    if (!host->is_closing)
        host_note(host, &writer->news);
    writer_release(writer);
}

/* Writes the bytes that are left, and keeps their object meanwhile. */
static bool writer_queue(napi_env env, struct writer *writer, napi_value object,
                         const uv_buf_t *rest)
{
    if (!value_ok(env, napi_create_reference(env, object, 1, &writer->bytes)))
        return false;
    writer->request.data = writer;
    writer->users++;
    (void)uva_runtime_loop(writer->host->runtime);
    if (uv_write(&writer->request, (uv_stream_t *)&writer->pipe, rest, 1,
                 writer_written) == 0)
        return true;
    writer->users--;
    (void)napi_delete_reference(env, writer->bytes);
    writer->bytes = NULL;
    writer->is_failed = true;
    return true;
}

/* Gives the bytes that the socket has not taken at once. */
static uv_buf_t writer_try(struct writer *writer, void *data, size_t size)
{
    uv_buf_t rest = uv_buf_init(data, (unsigned)size);
    const int written =
        size == 0 ? 0 : uv_try_write((uv_stream_t *)&writer->pipe, &rest, 1);

    if (written >= 0) {
        rest.base += written;
        rest.len -= (size_t)written;
    } else if (written != UV_EAGAIN) {
        writer->is_failed = true;
    }
    return rest;
}

/* write(writer, Uint8Array of at most 1 GiB): true: written; false: that is
 * told later; null: no one reads any more */
napi_value writer_write(napi_env env, napi_callback_info info)
{
    struct writer *writer = NULL;
    napi_value args[2];
    void *data = NULL;
    size_t size = 0;
    uv_buf_t rest;

    if (!value_args(env, info, 2, args) ||
        !value_object(env, args[0], &writer) ||
        !value_ok(env, napi_get_typedarray_info(env, args[1], NULL, &size,
                                                &data, NULL, NULL)))
        return NULL;
    if (writer->is_failed || writer->link == NULL || writer->bytes != NULL)
        return value_null(env);
    rest = writer_try(writer, data, size);
    if (!writer->is_failed && rest.len > 0 &&
        !writer_queue(env, writer, args[1], &rest))
        return NULL;
    if (writer->is_failed)
        return value_null(env);
    return value_truth(env, writer->bytes == NULL);
}

/* end(writer): after the last byte */
napi_value writer_end(napi_env env, napi_callback_info info)
{
    struct writer *writer = NULL;
    napi_value arg = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &writer))
        return NULL;
    writer_close(writer);
    return value_truth(env, true);
}
