/* SPDX-License-Identifier: Apache-2.0 */
/* Plain buffers go to libuv as they are, and are released when it has written
 * them. Under TLS they are encrypted into a text of our own, and released at
 * once. */
#define _GNU_SOURCE
#include "transport.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define READ_SIZE   65536
#define KEEPALIVE_S 60

/* The buffer of one callback: it is empty again when the callback returns. */
static char read_room[READ_SIZE];
static char plain_room[READ_SIZE];

/* A write under way. */
struct write {
    uv_write_t request;
    struct uva__transport *transport; /* borrows */
    struct uva__transport_part part;  /* owns; without a release under TLS */
    struct uva__bytes text;           /* owns: records of TLS */
    char *tail;                       /* borrows from `head` */
    char head[];                      /* copies of head and tail */
};

/* Memory of a write beside its bytes: of many small ones it is the most. */
#define WRITE_COST (sizeof(struct write) + 64)

/* ---- writing ------------------------------------------------------------- */

static void part_release(const struct uva__transport_part *part)
{
    if (part != NULL && part->release != NULL)
        part->release(part->owner);
}

static void write_free(struct write *w)
{
    part_release(&w->part);
    uva__bytes_clear(&w->text, 0);
    free(w);
}

static void on_written(uv_write_t *request, int status)
{
    struct write *w = request->data;
    struct uva__transport *transport = w->transport;

    write_free(w);
    transport->writes--;
    if (!transport->is_closing)
        transport->events->on_written(transport, -status);
}

static struct write *write_new(struct uva__transport *transport,
                               const char *head, size_t head_size,
                               const char *tail, size_t tail_size)
{
    struct write *w = malloc(sizeof(*w) + head_size + tail_size);

    if (w == NULL)
        return NULL;
    memset(w, 0, sizeof(*w));
    w->transport = transport;
    w->request.data = w;
    w->tail = w->head + head_size;
    if (head_size > 0)
        memcpy(w->head, head, head_size);
    if (tail_size > 0)
        memcpy(w->tail, tail, tail_size);
    return w;
}

static int write_start(struct write *w, const uv_buf_t *buffers, unsigned count)
{
    const int code = uv_write(&w->request, (uv_stream_t *)&w->transport->tcp,
                              buffers, count, on_written);

    if (code == 0)
        w->transport->writes++;
    else
        write_free(w);
    return -code;
}

/* Sends the records of a write, or frees it if that is not possible or it is
 * empty. */
static int tls_send(struct write *w, int code)
{
    uv_buf_t buffer;

    if (code != 0 || w->text.size == 0) {
        write_free(w);
        return code;
    }
    uva__bytes_fit(&w->text);
    buffer = (uv_buf_t){.base = w->text.data, .len = w->text.size};
    return write_start(w, &buffer, 1);
}

/* Sends the bytes that the session has to send. */
static int tls_flush(struct uva__transport *transport)
{
    struct write *w = write_new(transport, NULL, 0, NULL, 0);

    if (w == NULL)
        return ENOMEM;
    return tls_send(w, uva__tls_session_take(transport->tls, &w->text));
}

static int tls_write(struct uva__transport *transport, const char *head,
                     size_t head_size, const struct uva__transport_part *part,
                     const char *tail, size_t tail_size)
{
    struct uva__tls_session *session = transport->tls;
    struct write *w = write_new(transport, NULL, 0, NULL, 0);
    int code = 0;
    size_t i;

    if (w == NULL) {
        part_release(part);
        return ENOMEM;
    }
    code = uva__tls_session_write(session, head, head_size, &w->text);
    for (i = 0; part != NULL && code == 0 && i < part->count; i++)
        code = uva__tls_session_write(session, part->buffers[i].base,
                                      part->buffers[i].len, &w->text);
    part_release(part);
    if (code == 0)
        code = uva__tls_session_write(session, tail, tail_size, &w->text);
    return tls_send(w, code);
}

static int plain_write(struct write *w, size_t head_size, size_t tail_size)
{
    const size_t count = w->part.count + 2;
    uv_buf_t few[8], *buffers = few;
    unsigned n = 0;
    size_t i;
    int code;

    if (count > sizeof(few) / sizeof(*few))
        buffers = calloc(count, sizeof(*buffers));
    if (buffers == NULL) {
        write_free(w);
        return ENOMEM;
    }
    if (head_size > 0)
        buffers[n++] = uv_buf_init(w->head, (unsigned)head_size);
    for (i = 0; i < w->part.count; i++)
        buffers[n++] = w->part.buffers[i];
    if (tail_size > 0)
        buffers[n++] = uv_buf_init(w->tail, (unsigned)tail_size);
    code = write_start(w, buffers, n);
    if (buffers != few)
        free(buffers);
    return code;
}

int uva__transport_write(struct uva__transport *transport, const char *head,
                         size_t head_size,
                         const struct uva__transport_part *part,
                         const char *tail, size_t tail_size)
{
    struct write *w;

    assert(!transport->is_shut && !transport->is_closing);
    if (transport->tls != NULL)
        return tls_write(transport, head, head_size, part, tail, tail_size);
    w = write_new(transport, head, head_size, tail, tail_size);
    if (w == NULL) {
        part_release(part);
        return ENOMEM;
    }
    if (part != NULL)
        w->part = *part;
    return plain_write(w, head_size, tail_size);
}

size_t uva__transport_queued(const struct uva__transport *transport)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&transport->tcp);
}

size_t uva__transport_held(const struct uva__transport *transport)
{
    return uva__transport_queued(transport) + transport->writes * WRITE_COST;
}

int uva__transport_unconfirmed(const struct uva__transport *transport)
{
    uv_os_fd_t fd;
    int bytes = 0;

    if (uv_fileno((const uv_handle_t *)&transport->tcp, &fd) != 0 ||
        ioctl(fd, TIOCOUTQ, &bytes) != 0)
        return 0;
    return bytes;
}

/* ---- reading ------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *out)
{
    (void)handle;
    (void)size;
    *out = uv_buf_init(read_room, sizeof(read_room));
}

/* Reports that a client may write. */
static void tls_announce(struct uva__transport *transport)
{
    if (!transport->is_connecting || !uva__tls_session_is_ready(transport->tls))
        return;
    transport->is_connecting = false;
    transport->events->on_connected(transport, 0);
}

/* Decrypts the received bytes. The callbacks may stop reading: decrypted bytes
 * are delivered nevertheless, at most the bytes of one read. */
static void tls_receive(struct uva__transport *transport, const char *data,
                        size_t size)
{
    int code = uva__tls_session_put(transport->tls, data, size), got = 0;

    while (code == 0 && !transport->is_closing) {
        got = uva__tls_session_read(transport->tls, plain_room,
                                    sizeof(plain_room));
        if (got >= 0)
            tls_announce(transport);
        if (got <= 0)
            break;
        transport->events->on_data(transport, plain_room, (size_t)got);
    }
    if (transport->is_closing)
        return;
    if (code == 0 && !transport->is_shut)
        code = tls_flush(transport);
    if (code != 0 || got < 0)
        transport->events->on_end(transport, code);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct uva__transport *transport = (struct uva__transport *)stream;

    if (size < 0) {
        transport->is_reading = false;
        (void)uv_read_stop(stream);
        transport->events->on_end(transport, size == UV_EOF ? 0 : (int)-size);
    } else if (size > 0 && transport->tls != NULL) {
        tls_receive(transport, buffer->base, (size_t)size);
    } else if (size > 0) {
        transport->events->on_data(transport, buffer->base, (size_t)size);
    }
}

void uva__transport_read(struct uva__transport *transport, bool wanted)
{
    uv_stream_t *stream = (uv_stream_t *)&transport->tcp;

    if (transport->is_closing || wanted == transport->is_reading)
        return;
    transport->is_reading = wanted;
    if (wanted)
        (void)uv_read_start(stream, on_alloc, on_read);
    else
        (void)uv_read_stop(stream);
}

bool uva__transport_has_left(const struct uva__transport *transport)
{
    struct pollfd watch = {.events = POLLRDHUP};

    return uv_fileno((const uv_handle_t *)&transport->tcp, &watch.fd) == 0 &&
           poll(&watch, 1, 0) > 0;
}

/* ---- begin and end ------------------------------------------------------- */

int uva__transport_accept(struct uva__transport *transport, uv_loop_t *loop,
                          int fd, struct uva__tls *tls,
                          const struct uva__transport_events *events)
{
    int code;

    transport->events = events;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)uv_tcp_init(loop, &transport->tcp); /* cannot fail */
    code = uv_tcp_open(&transport->tcp, fd);
    if (code != 0)
        (void)close(fd);
    if (code == 0)
        code = uv_tcp_nodelay(&transport->tcp, 1);
    if (code == 0) /* a peer may vanish while a query has no rows to send */
        code = uv_tcp_keepalive(&transport->tcp, 1, KEEPALIVE_S);
    if (code != 0)
        return -code;
    if (tls != NULL) {
        transport->tls = uva__tls_session_new(tls);
        if (transport->tls == NULL)
            return ENOMEM;
    }
    return 0;
}

/* Begins TLS, or reports that the connection is made. */
static void on_connect(uv_connect_t *request, int status)
{
    struct uva__transport *transport = request->data;
    int code = -status;

    if (transport->is_closing)
        return;
    if (code == 0 && transport->tls != NULL) {
        (void)uva__tls_session_read(transport->tls, plain_room,
                                    sizeof(plain_room));
        code = tls_flush(transport);
        if (code == 0) {
            uva__transport_read(transport, true);
            return;
        }
    }
    transport->is_connecting = false;
    transport->events->on_connected(transport, code);
}

int uva__transport_connect(struct uva__transport *transport, uv_loop_t *loop,
                           const struct sockaddr *address, struct uva__tls *tls,
                           const char *host,
                           const struct uva__transport_events *events)
{
    int code;

    transport->events = events;
    (void)uv_tcp_init(loop, &transport->tcp); /* cannot fail */
    if (tls != NULL) {
        transport->tls = uva__tls_session_connect(tls, host);
        if (transport->tls == NULL)
            return ENOMEM;
    }
    transport->connect.data = transport;
    code = uv_tcp_connect(&transport->connect, &transport->tcp, address,
                          on_connect);
    if (code != 0)
        return -code;
    transport->is_connecting = true;
    (void)uv_tcp_nodelay(&transport->tcp, 1);
    (void)uv_tcp_keepalive(&transport->tcp, 1, KEEPALIVE_S);
    return 0;
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct uva__transport *transport = request->data;

    if (!transport->is_closing && status != 0)
        transport->events->on_written(transport, -status);
}

void uva__transport_shutdown(struct uva__transport *transport, bool cut)
{
    int code = 0;

    if (transport->is_shut || transport->is_closing)
        return;
    if (transport->tls != NULL && !cut)
        uva__tls_session_end(transport->tls);
    if (transport->tls != NULL)
        code = tls_flush(transport);
    transport->is_shut = true;
    transport->shutdown.data = transport;
    if (code == 0)
        code = -uv_shutdown(&transport->shutdown,
                            (uv_stream_t *)&transport->tcp, on_shutdown);
    if (code != 0)
        transport->events->on_written(transport, code);
}

static void on_closed(uv_handle_t *handle)
{
    struct uva__transport *transport = (struct uva__transport *)handle;

    uva__tls_session_free(transport->tls);
    transport->tls = NULL;
    transport->events->on_closed(transport);
}

void uva__transport_close(struct uva__transport *transport, bool reset)
{
    if (transport->is_closing)
        return;
    transport->is_closing = true;
    if (reset && !transport->is_shut &&
        uv_tcp_close_reset(&transport->tcp, on_closed) == 0)
        return;
    uv_close((uv_handle_t *)&transport->tcp, on_closed);
}
