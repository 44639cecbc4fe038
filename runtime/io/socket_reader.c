/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_from_socket(): the loop thread cuts what arrives into messages and
 * pushes them; a transform after the pusher makes batches of them.
 *
 * Happy path:  (read -> message -> push)* -> the end's marker -> the socket is
 *              released -> the pusher is closed.
 *              First message: the schema, in front of all batches.
 *
 * Failures:    the socket, the framer: the pusher is closed with the error. The
 *              decoder: the stream fails, and closes the pusher.
 *
 * Back-pressure: after the message that fills the pusher's window reading
 *              stops, until there is room.
 *
 * On cancel:   the pusher reports that it is closed: the socket is released. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

#include "io/ipc_decoder.h"
#include "io/ipc_source.h"
#include "io/pushed_message.h"
#include "uvarrow/arrow.h"
#include "uvarrow/runtime.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"

/* Batches that wait after the transform. */
enum { BATCHES_AHEAD = 2 };

struct socket_reader {
    atomic_int users; /* the pusher, the transform, and calls */

    /* the loop thread's alone */
    struct {
        uv_stream_t *socket;       /* borrows; NULL: released */
        void *data;                /* of the socket, before it was used */
        struct uva_pusher *pusher; /* owns; NULL: closed */
        struct uva__ipc_framer framer;
        bool has_schema;             /* the pusher has one */
        struct uva_runtime *runtime; /* borrows */
        bool need_end_mark; /* see struct uva_ipc_source, as for the rest */
        void (*on_released)(void *ctx, struct uv_stream_s *socket);
        void *ctx;
    } loop;

    struct uva__message first; /* owns: the schema; set before the pusher has
                                  one */
    struct uva__ipc_decoder *decoder; /* owns: the transform's */
};

static void reader_release(struct socket_reader *r)
{
    if (atomic_fetch_sub_explicit(&r->users, 1, memory_order_acq_rel) != 1)
        return;
    uva__ipc_framer_fini(&r->loop.framer);
    uva__message_fini(&r->first);
    uva__ipc_decoder_free(r->decoder);
    free(r);
}

static void reader_free(void *ctx)
{
    reader_release(ctx);
}

/* ---- the end ------------------------------------------------------------ */

/* Stops reading, once. Returns the socket. */
static uv_stream_t *reader_detach(struct socket_reader *r)
{
    uv_stream_t *socket = r->loop.socket;

    r->loop.socket = NULL;
    (void)uv_read_stop(socket);
    socket->data = r->loop.data;
    return socket;
}

/* Closes the pusher; `error` NULL: the stream is complete. The last use of the
 * reader by its caller. */
static void reader_finish(struct socket_reader *r,
                          const struct uva_error *error)
{
    struct uva_pusher *pusher = r->loop.pusher;
    uv_stream_t *socket = reader_detach(r);
    void (*on_released)(void *ctx, struct uv_stream_s *) = r->loop.on_released;
    void *ctx = r->loop.ctx;

    r->loop.pusher = NULL;
    uva_pusher_close(pusher, error, NULL); /* may free the reader */
    if (on_released != NULL)
        on_released(ctx, socket);
}

static void reader_on_closed(void *ctx, struct uva_pusher *pusher)
{
    (void)pusher;
    reader_finish(ctx, NULL);
}

/* ---- messages ----------------------------------------------------------- */

/* Keeps the schema, and lets the stream begin. */
static int reader_begin(struct socket_reader *r)
{
    struct ArrowSchema schema;
    int code = uva__pushed_message_schema(&schema);

    if (code != 0)
        return code;
    uva__ipc_framer_take(&r->loop.framer, &r->first);
    r->loop.has_schema = true;
    return uva_pusher_set_schema(r->loop.pusher, &schema);
}

/* Pushes a message. EAGAIN: no further message, until there is room. */
static int reader_push(struct socket_reader *r)
{
    struct uva__ipc_framer *framer = &r->loop.framer;
    struct ArrowDeviceArray batch;
    struct uva__message message;
    int code;

    uva__ipc_framer_take(framer, &message);
    code = uva__pushed_message_new(&message, &batch);
    if (code != 0) {
        uva__message_fini(&message);
        return code;
    }
    return uva_pusher_push(r->loop.pusher, &batch, NULL, 0);
}

/* Passes on the message that is complete. Returns 0; EAGAIN: no further one for
 * now; EPIPE if no more are wanted; or an error. */
static int reader_pass(struct socket_reader *r, struct uva_error *error)
{
    const int code = r->loop.has_schema ? reader_push(r) : reader_begin(r);

    if (code == 0 || code == EAGAIN || code == EPIPE)
        return code;
    return uva_error_set(error, code, "cannot pass on a message: %s",
                         uv_strerror(-code));
}

/* ---- the socket --------------------------------------------------------- */

static void reader_on_alloc(uv_handle_t *handle, size_t suggested,
                            uv_buf_t *buffer)
{
    struct socket_reader *r = handle->data;
    uint8_t *to;
    size_t size;

    (void)suggested;
    uva__ipc_framer_want(&r->loop.framer, &to, &size);
    buffer->base = (char *)to;
    buffer->len = size;
}

/* The input ends, or the connection has failed. */
static void reader_on_end(struct socket_reader *r, int status)
{
    struct uva_error error = {0};
    int code = -status;

    if (status == UV_EOF)
        code = uva__ipc_source_end(r->loop.runtime, &r->loop.framer,
                                   r->loop.need_end_mark, &error);
    else
        (void)uva_error_set(&error, code, "cannot read at byte %" PRId64 ": %s",
                            r->loop.framer.offset, uv_strerror(status));
    reader_finish(r, code == 0 ? NULL : &error);
}

static void reader_on_read(uv_stream_t *socket, ssize_t size,
                           const uv_buf_t *buffer)
{
    struct socket_reader *r = socket->data;
    struct uva__ipc_framer *framer = &r->loop.framer;
    struct uva_error error = {0};
    int code;

    (void)buffer;
    if (size == 0)
        return;
    if (size < 0) {
        reader_on_end(r, (int)size);
        return;
    }
    code = uva__ipc_framer_add(framer, (size_t)size, &error);
    if (code == 0 && framer->state == UVA__IPC_FRAMER_FULL)
        code = reader_pass(r, &error);
    if (code == 0 && framer->state == UVA__IPC_FRAMER_OVER &&
        !r->loop.has_schema)
        code = uva_error_set(&error, EPROTO, "Arrow IPC: there is no schema");
    if (code == EAGAIN)
        (void)uv_read_stop(socket);
    else if (code != 0 || framer->state == UVA__IPC_FRAMER_OVER)
        reader_finish(r, error.code == 0 ? NULL : &error);
}

static int reader_start(struct socket_reader *r)
{
    return -uv_read_start(r->loop.socket, reader_on_alloc, reader_on_read);
}

/* There is room for further messages. */
static void reader_on_writable(void *ctx, struct uva_pusher *pusher)
{
    struct socket_reader *r = ctx;
    struct uva_error error = {0};
    const int code = reader_start(r);

    (void)pusher;
    if (code == 0)
        return;
    (void)uva_error_set(&error, code, "cannot read: %s", uv_strerror(-code));
    reader_finish(r, &error);
}

/* ---- the transform ------------------------------------------------------ */

static int reader_schema(void *ctx, const struct ArrowSchema *in,
                         struct ArrowSchema *out, struct uva_error *error)
{
    struct socket_reader *r = ctx;
    const int code = uva__ipc_decoder_begin(r->decoder, &r->first, error);

    (void)in;
    uva__message_fini(&r->first);
    return code == 0 ? uva__ipc_decoder_schema(r->decoder, out, error) : code;
}

static int reader_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct socket_reader *r = ctx;
    struct uva_batch out = {0};
    struct uva__ipc_item *item = NULL;
    char *metadata = NULL;
    int code = uva__ipc_decoder_take(
        r->decoder, uva__pushed_message_of(&in->data), &item, error);

    if (item == NULL)
        return code;
    metadata = uva__ipc_item_take_metadata(item);
    code = uva__ipc_item_decode(item, &out.data, error);
    uva__ipc_item_free(item);
    out.metadata = metadata;
    if (code == 0)
        code = emit(emitter, &out);
    free(metadata);
    return code == EAGAIN ? 0 : code;
}

/* ---- making one --------------------------------------------------------- */

static int reader_check(struct uva_runtime *runtime, struct uv_stream_s *socket,
                        struct uva_error *error)
{
    if (socket == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_stream_from_socket: no socket");
    if (runtime == NULL) /* the stream reports that */
        return uva_error_set(error, EINVAL, "no runtime");
    if (!uva_runtime_on_loop(runtime))
        return uva_error_set(error, EPERM,
                             "uva_stream_from_socket: not on the loop thread");
    if (socket->loop != uva_runtime_loop(runtime))
        return uva_error_set(error, EINVAL,
                             "uva_stream_from_socket: the socket is not on the "
                             "runtime's loop");
    return 0;
}

static struct socket_reader *reader_new(struct uva_runtime *runtime,
                                        struct uv_stream_s *socket,
                                        const struct uva_ipc_source *options)
{
    struct socket_reader *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    atomic_init(&r->users, 2);
    r->decoder = uva__ipc_decoder_new(options->max_bytes);
    if (r->decoder == NULL) {
        free(r);
        return NULL;
    }
    uva__ipc_framer_init(&r->loop.framer, uva__ipc_decoder_limit(r->decoder));
    r->loop.socket = socket;
    r->loop.runtime = runtime;
    r->loop.need_end_mark = options->need_end_mark;
    r->loop.on_released = options->on_released;
    r->loop.ctx = options->ctx;
    return r;
}

/* Begins to read. Old versions of libuv abort for a socket without a peer, so
 * they are not asked. */
static int reader_open(struct socket_reader *r, struct uva_error *error)
{
    uv_stream_t *socket = r->loop.socket;
    int code;

    r->loop.data = socket->data;
    socket->data = r;
    code = uv_is_readable(socket) || uv_is_closing((uv_handle_t *)socket)
               ? reader_start(r)
               : ENOTCONN;
    if (code == 0)
        return 0;
    socket->data = r->loop.data;
    return uva_error_set(error, code == EALREADY ? EINVAL : code,
                         "uva_stream_from_socket: cannot read: %s",
                         uv_strerror(-code));
}

/* Makes the reader, and begins to read. */
static int reader_make(struct uva_runtime *runtime, struct uv_stream_s *socket,
                       const struct uva_ipc_source *options,
                       struct socket_reader **out, struct uva_error *error)
{
    int code = uva__ipc_source_check(options, error);

    if (code == 0)
        code = reader_check(runtime, socket, error);
    if (code != 0)
        return code;
    *out = reader_new(runtime, socket, options);
    if (*out == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    code = reader_open(*out, error);
    if (code != 0) {
        reader_release(*out);
        reader_release(*out);
    }
    return code;
}

struct uva_stream *uva_stream_from_socket(struct uva_runtime *runtime,
                                          struct uv_stream_s *socket,
                                          const struct uva_ipc_source *options)
{
    static const struct uva_ipc_source none;
    struct uva_push_source source = {.on_writable = reader_on_writable,
                                     .on_closed = reader_on_closed,
                                     .free_ctx = reader_free};
    struct uva_transform transform = {.batch = reader_batch,
                                      .schema = reader_schema,
                                      .free_ctx = reader_free,
                                      .window.batches = BATCHES_AHEAD};
    struct uva_error error = {0};
    struct uva_pusher *pusher = NULL;
    struct socket_reader *r;
    struct uva_stream *stream;

    if (options == NULL)
        options = &none;
    if (reader_make(runtime, socket, options, &r, &error) != 0)
        return uva_stream_from_error(runtime, &error);
    source.window = options->window;
    source.ctx = transform.ctx = r;
    stream = uva_stream_from_pusher(runtime, &source, &pusher);
    r->loop.pusher = pusher; /* the transform's reference keeps the reader */
    if (pusher == NULL)
        (void)reader_detach(r);
    if (uva_stream_transform(stream, &transform) != 0 && pusher != NULL) {
        (void)reader_detach(r);
        uva_pusher_close(pusher, NULL, NULL);
    }
    return stream;
}
