/* SPDX-License-Identifier: Apache-2.0 */
/* The body of the answer is written into a pair of sockets, which the library
 * reads as it reads any socket.
 *
 * Happy path:  names resolved -> connected -> request written -> (part of the
 *              body -> feed)* -> the answer is complete -> the feed has ended
 *              -> the stream has ended, and releases its socket -> all closed.
 * Failures:    each of these. The reason is in `error` before the feed ends
 *              without its last byte, which fails the stream after its rows.
 * Back-pressure: the feed is full: the connection is not read.
 * On cancel:   the stream releases its socket: all is closed. */
#include "client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "address.h"
#include "ask.h"
#include "feed.h"
#include "loop.h"
#include "reply.h"
#include "transport.h"
#include "uvarrow/io.h"
#include "uvarrow/runtime.h"
#include "uvarrow/sources.h"

/* The pair of sockets, and the connection with all steps that precede it. */
enum { USERS = 3 };

struct client {
    struct uva__transport transport; /* first */
    struct uva__address address;     /* owns */
    struct uva__tls *tls;            /* owns; NULL: plain */
    struct uva__bytes request;       /* owns */
    uv_getaddrinfo_t resolve;        /* of the host */
    struct addrinfo *found;          /* owns: its addresses */
    const struct addrinfo *next;     /* borrows: the next one to be tried */
    struct uva__reply reply;         /* the answer of the server */
    struct uva__feed feed;           /* where its body goes */
    uv_pipe_t socket;                /* where the stream reads that */
    uv_loop_t *loop;                 /* of all these */
    struct uva_error *error;         /* borrows */
    int users;                       /* of USERS that are not closed */
    bool is_open;                    /* the transport */
    bool is_over;                    /* no more is wanted of the server */
};

/* ---- the end ------------------------------------------------------------- */

static void client_release(struct client *c)
{
    if (--c->users > 0)
        return;
    uv_freeaddrinfo(c->found);
    uva__address_fini(&c->address);
    uva__tls_free(c->tls);
    uva__bytes_clear(&c->request, 0);
    uva__reply_fini(&c->reply);
    free(c);
}

/* Leaves the server. */
static void client_leave(struct client *c)
{
    if (c->is_over)
        return;
    c->is_over = true;
    if (c->is_open)
        uva__transport_close(&c->transport, false);
    else
        (void)uv_cancel((uv_req_t *)&c->resolve); /* or it ends by itself */
}

/* Reports why the stream fails. */
static void client_fail(struct client *c, int code, const char *format, ...)
    UVA_PRINTF(3, 4);

static void client_fail(struct client *c, int code, const char *format, ...)
{
    char text[sizeof(c->error->message)];
    va_list args;

    if (c->is_over)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (c->error->code == 0)
        (void)uva_error_set(c->error, code, "%s", text);
    uva__feed_end(&c->feed, false);
    client_leave(c);
}

static void on_socket_closed(uv_handle_t *handle)
{
    client_release(handle->data);
}

static void feed_on_closed(void *ctx)
{
    client_release(ctx);
}

/* The stream has ended, or never began. */
static void client_on_released(void *ctx, struct uv_stream_s *socket)
{
    struct client *c = ctx;

    client_leave(c);
    uva__feed_close(&c->feed);
    socket->data = c;
    uv_close((uv_handle_t *)socket, on_socket_closed);
}

/* ---- the answer ---------------------------------------------------------- */

static int reply_on_body(void *ctx, const char *data, size_t size)
{
    struct client *c = ctx;

    return uva__feed_write(&c->feed, data, size);
}

/* Acts on the input. */
static void client_look(struct client *c)
{
    const struct uva__reply *reply = &c->reply;

    if (reply->phase == UVA__REPLY_FAILED) {
        client_fail(c, reply->error.code, "%s", reply->error.message);
    } else if (reply->phase == UVA__REPLY_COMPLETE) {
        uva__feed_end(&c->feed, true);
        client_leave(c);
    } else if (uva__feed_is_full(&c->feed)) {
        uva__transport_read(&c->transport, false);
    }
}

static void transport_on_data(struct uva__transport *transport,
                              const char *data, size_t size)
{
    struct client *c = (struct client *)transport;

    if (c->is_over)
        return;
    uva__reply_feed(&c->reply, data, size);
    client_look(c);
}

static void transport_on_end(struct uva__transport *transport, int code)
{
    struct client *c = (struct client *)transport;

    if (c->is_over)
        return;
    if (transport->is_connecting) {
        client_fail(c, EPROTO, "cannot connect to %s by TLS: %s",
                    c->address.host, uva__tls_session_why(transport->tls));
        return;
    }
    uva__reply_end(&c->reply, code == 0 ? NULL : uv_strerror(-code));
    client_look(c);
}

/* A write that fails leaves the answer that has come before. */
static void transport_on_written(struct uva__transport *transport, int code)
{
    (void)transport;
    (void)code;
}

static void feed_on_room(void *ctx)
{
    struct client *c = ctx;

    if (!c->is_over)
        uva__transport_read(&c->transport, true);
}

/* ---- the connection ------------------------------------------------------ */

static void client_connect(struct client *c);

static void transport_on_connected(struct uva__transport *transport, int code)
{
    struct client *c = (struct client *)transport;

    if (c->is_over)
        return;
    if (code != 0 && c->next != NULL) {
        uva__transport_close(transport, false); /* tries the next one */
        return;
    }
    if (code == 0)
        code = uva__transport_write(transport, c->request.data, c->request.size,
                                    NULL, NULL, 0);
    if (code != 0)
        client_fail(c, code, "cannot connect to %s, port %s: %s",
                    c->address.host, c->address.port, uv_strerror(-code));
    else
        uva__transport_read(transport, true);
}

static void transport_on_closed(struct uva__transport *transport)
{
    struct client *c = (struct client *)transport;

    c->is_open = false;
    if (c->is_over)
        client_release(c);
    else
        client_connect(c);
}

static const struct uva__transport_events TRANSPORT_EVENTS = {
    .on_connected = transport_on_connected,
    .on_data = transport_on_data,
    .on_end = transport_on_end,
    .on_written = transport_on_written,
    .on_closed = transport_on_closed,
};

/* Tries the next address. */
static void client_connect(struct client *c)
{
    const struct addrinfo *to = c->next;
    int code;

    c->next = to->ai_next;
    c->transport = (struct uva__transport){.tls = NULL};
    c->is_open = true;
    code = uva__transport_connect(&c->transport, c->loop, to->ai_addr, c->tls,
                                  c->address.host, &TRANSPORT_EVENTS);
    if (code != 0)
        transport_on_connected(&c->transport, code);
}

static void on_resolved(uv_getaddrinfo_t *request, int status,
                        struct addrinfo *found)
{
    struct client *c = request->data;

    c->found = c->found == NULL ? found : c->found;
    if (!c->is_over && status != 0) {
        client_fail(c, EIO, "cannot find the host %s: %s", c->address.host,
                    uv_strerror(status));
    }
    if (c->is_over) {
        client_release(c);
        return;
    }
    c->next = c->found;
    client_connect(c);
}

static int client_resolve(struct client *c)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV};

    c->resolve.data = c;
    return -uv_getaddrinfo(c->loop, &c->resolve, on_resolved, c->address.host,
                           c->address.port, &hints);
}

/* ---- the stream ---------------------------------------------------------- */

/* Makes the parts that need no loop. */
static int client_prepare(struct client *c, const struct uva__options *options,
                          struct uva_error *error)
{
    int code = uva__address_init(&c->address, options->from, error);

    if (code == 0)
        code = uva__ask_write(&c->address, options, &c->request, error);
    if (code == 0 && c->address.is_tls)
        code = uva__tls_new_client(options->tls_ca, &c->tls, error);
    else if (code == 0 && options->tls_ca != NULL)
        code = uva_error_set(error, EINVAL, "--tls-ca is for https");
    return code;
}

/* Opens the pair of sockets, and begins to resolve the name. */
static int client_open(struct client *c, struct uva_error *error)
{
    const struct uva__feed_events events = {
        .on_room = feed_on_room, .on_closed = feed_on_closed, .ctx = c};
    int code = uva__loop_threads(c->loop, error);

    if (code != 0)
        return code;
    code = client_resolve(c);
    if (code != 0)
        return uva_error_set(error, code, "cannot find the host %s: %s",
                             c->address.host, uv_strerror(-code));
    code = uva__feed_open(&c->feed, &c->socket, c->loop, &events);
    if (code == 0) {
        c->users = USERS;
        return 0;
    }
    c->users = 2; /* the name, and the caller */
    client_leave(c);
    return uva_error_set(error, code, "cannot make sockets: %s",
                         strerror(code));
}

static int client_new(uv_loop_t *loop, const struct uva__options *options,
                      struct client **out, struct uva_error *error)
{
    struct client *c = calloc(1, sizeof(*c));
    int code;

    if (c == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    c->users = 1;
    c->loop = loop;
    c->error = error;
    uva__reply_init(&c->reply, reply_on_body, c);
    code = client_prepare(c, options, error);
    if (code == 0)
        code = client_open(c, error);
    if (code != 0)
        client_release(c);
    else
        *out = c;
    return code;
}

struct uva_stream *uva__client_stream(struct uva_runtime *runtime,
                                      const struct uva__options *options,
                                      struct uva_error *error)
{
    struct uva_stream *stream;
    struct client *c = NULL;

    if (client_new(uva_runtime_loop(runtime), options, &c, error) != 0)
        return uva_stream_from_error(runtime, error);
    stream = uva_stream_from_socket(
        runtime, (uv_stream_t *)&c->socket,
        &(struct uva_ipc_source){.max_bytes = options->max_bytes,
                                 .need_end_mark = true,
                                 .on_released = client_on_released,
                                 .ctx = c});
    if (!uv_is_active((uv_handle_t *)&c->socket)) /* it does not read */
        client_on_released(c, (uv_stream_t *)&c->socket);
    return stream;
}
