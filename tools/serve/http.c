/* SPDX-License-Identifier: Apache-2.0 */
/* The listener and the list of connections. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define BACKLOG 1024

static void http_check_closed(struct uva__http *http)
{
    if (http->is_closed && http->stats.connections == 0 && !http->is_refusing)
        http->handler.on_closed(http->handler.ctx);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct uva__http *http = handle->data;

    http->is_closed = true;
    http_check_closed(http);
}

static void http_accept(struct uva__http *http);

static void on_refused(uv_handle_t *handle)
{
    struct uva__http *http = handle->data;
    const bool has_next = http->has_next;

    http->is_refusing = http->has_next = false;
    if (has_next && !http->is_draining)
        http_accept(http);
    http_check_closed(http);
}

/* Too many connections, or no memory for this one: answers 503 before it was
 * asked. What is reported must be accepted, or nothing more is; so it takes no
 * memory, and one at a time. */
static void http_refuse(struct uva__http *http)
{
    static char text[] = "HTTP/1.1 503 Service Unavailable\r\n"
                         "Retry-After: 1\r\nContent-Length: 0\r\n"
                         "Connection: close\r\n\r\n";
    uv_stream_t *stream = (uv_stream_t *)&http->refused;
    uv_buf_t buffer = uv_buf_init(text, sizeof(text) - 1);

    if (http->is_refusing) {
        http->has_next = true;
        return;
    }
    http->is_refusing = true;
    http->stats.accepted++;
    http->stats.refused++;
    (void)uv_tcp_init(http->listener.loop, &http->refused);
    http->refused.data = http;
    if (uv_accept((uv_stream_t *)&http->listener, stream) == 0 &&
        http->tls == NULL)
        (void)uv_try_write(stream, &buffer, 1);
    uv_close((uv_handle_t *)stream, on_refused);
}

/* Accepts the connection that waits. */
static void http_accept(struct uva__http *http)
{
    if (http->stats.connections >= http->limits->connections) {
        http_refuse(http);
        return;
    }
    http->stats.connections++;
    if (uva__connection_accept(http, (uv_stream_t *)&http->listener) == 0) {
        http->stats.accepted++;
        return;
    }
    http->stats.connections--;
    http_refuse(http);
}

static void on_connection(uv_stream_t *listener, int status)
{
    if (status == 0) /* or the client has left, or the system lacks something */
        http_accept(listener->data);
}

int uva__http_open(struct uva__http *http, uv_loop_t *loop,
                   const struct sockaddr *address, struct uva__tls *tls,
                   const struct uva__limits *limits,
                   const struct uva__http_handler *handler,
                   struct uva_error *error)
{
    int code = uv_tcp_init(loop, &http->listener);

    if (code != 0)
        return uva_error_set(error, -code, "no socket: %s", uv_strerror(code));
    http->handler = *handler;
    http->limits = limits;
    http->tls = tls;
    http->listener.data = http;
    code = uv_tcp_bind(&http->listener, address, 0);
    if (code == 0)
        code =
            uv_listen((uv_stream_t *)&http->listener, BACKLOG, on_connection);
    if (code == 0)
        return 0;
    uv_close((uv_handle_t *)&http->listener, NULL);
    return uva_error_set(error, -code, "cannot listen: %s", uv_strerror(code));
}

int uva__http_port(const struct uva__http *http)
{
    struct sockaddr_storage address;
    int size = sizeof(address);

    memset(&address, 0, sizeof(address));
    (void)uv_tcp_getsockname(&http->listener, (struct sockaddr *)&address,
                             &size);
    return ntohs(address.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&address)->sin6_port
                     : ((struct sockaddr_in *)&address)->sin_port);
}

void uva__http_drain(struct uva__http *http)
{
    struct uva__connection *connection, *next;

    if (http->is_draining)
        return;
    http->is_draining = true;
    uv_close((uv_handle_t *)&http->listener, on_listener_closed);
    for (connection = http->first; connection != NULL; connection = next) {
        next = connection->next;
        uva__connection_drain(connection);
    }
}

void uva__http_close(struct uva__http *http)
{
    uva__http_drain(http);
    while (http->first != NULL)
        uva__connection_abort(http->first);
}

void uva__http_forget(struct uva__http *http)
{
    http->stats.connections--;
    http_check_closed(http);
}
