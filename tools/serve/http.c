/* SPDX-License-Identifier: Apache-2.0 */
/* The listener and the list of connections. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

/* Connections taken in one callback: other ones have their turn, too. */
#define TAKEN_MOST 64

/* Time after which an error of accept() that lasts is looked at again. */
#define RETRY_MS 100

static void on_pause_over(uv_timer_t *timer);

static void http_check_closed(struct uva__http *http)
{
    if (http->handles == 0 && http->all.stats.connections == 0)
        http->handler.on_closed(http->handler.ctx);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct uva__http *http = handle->data;

    http->handles--;
    http_check_closed(http);
}

/* ---- accepting ----------------------------------------------------------- */

/* Too many connections (503), or too many of this client (429), or no memory
 * for this one: answers before it was asked. Received bytes are read: a close
 * with unread bytes is a reset, which can destroy the answer. */
static void http_refuse(struct uva__http *http, int fd, bool is_limited)
{
    static const char rest[] = "Retry-After: 1\r\nContent-Length: 0\r\n"
                               "Connection: close\r\n\r\n";
    char nowhere[4096], text[256];
    const int size = snprintf(
        text, sizeof(text), "HTTP/1.1 %s\r\n%s",
        is_limited ? "429 Too Many Requests" : "503 Service Unavailable", rest);

    http->all.stats.accepted++;
    http->all.stats.refused += !is_limited;
    http->all.stats.limited += is_limited;
    if (http->all.tls == NULL) {
        (void)send(fd, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)recv(fd, nowhere, sizeof(nowhere), MSG_DONTWAIT);
    }
    (void)close(fd);
}

/* Takes the descriptor of a connection. Of too many connections, one at a time
 * is read, so that the server shows its state. */
static void http_take(struct uva__http *http, int fd, bool is_spare)
{
    const int64_t normal = http->all.stats.connections - (http->spare != NULL);
    int code;

    is_spare = is_spare || normal >= http->all.limits->connections;
    if (is_spare && http->spare != NULL &&
        !uva__connection_yield(http->spare)) {
        http_refuse(http, fd, false);
        return;
    }
    http->all.stats.connections++;
    code =
        uva__connection_accept(&http->all, http->listener.loop, fd, is_spare);
    if (code == 0) {
        http->all.stats.accepted++;
        if (is_spare && http->all.first != NULL && http->all.first->is_spare)
            http->spare = http->all.first;
        return;
    }
    http->all.stats.connections--;
    http_refuse(http, fd, code == EDQUOT);
}

/* Accepts one connection by the descriptor in reserve, or by the descriptor of
 * a spare connection that is silent. */
static void http_accept_spare(struct uva__http *http)
{
    int fd;

    if (http->spare != NULL && !uva__connection_yield(http->spare))
        return;
    if (http->reserve >= 0)
        (void)close(http->reserve);
    http->reserve = -1;
    fd = accept(http->fd, NULL, NULL);
    if (fd >= 0)
        http_take(http, fd, true);
}

/* A lasting error is an error of the process or the system. It would be
 * reported again at once, so the server does not listen until a timer ends, or
 * the spare connection does. */
static void http_pause(struct uva__http *http, int code)
{
    if (!http->is_starved)
        http->handler.on_starved(http->handler.ctx, code);
    http->is_starved = true;
    http_accept_spare(http);
    (void)uv_poll_stop(&http->listener);
    (void)uv_timer_start(&http->pause, on_pause_over, RETRY_MS, 0);
}

/* Whether the error belongs to the waiting connection, which is gone: Linux
 * reports errors of its network in this way. */
static bool is_passing(int code)
{
    static const int CODES[] = {
        EINTR,     ECONNABORTED, ENETDOWN,    EPROTO,     ENOPROTOOPT,
        EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, EOPNOTSUPP, ETIMEDOUT,
#ifdef ENONET
        ENONET,
#endif
    };
    size_t i;

    for (i = 0; i < sizeof(CODES) / sizeof(*CODES); i++)
        if (code == CODES[i])
            return true;
    return false;
}

static void on_listener(uv_poll_t *listener, int status, int events)
{
    struct uva__http *http = listener->data;
    int i, fd = -1;

    (void)status; /* accept() reports it, too */
    (void)events;
    for (i = 0; i < TAKEN_MOST; i++) {
        fd = accept(http->fd, NULL, NULL);
        if (fd < 0 && !is_passing(errno))
            break;
        if (fd < 0)
            continue;
        http->is_starved = false;
        http_take(http, fd, false);
    }
    if (fd < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        http_pause(http, errno);
}

static void http_listen(struct uva__http *http)
{
    if (http->reserve < 0)
        http->reserve = fcntl(http->fd, F_DUPFD_CLOEXEC, 0);
    (void)uv_poll_start(&http->listener, UV_READABLE, on_listener);
}

static void on_pause_over(uv_timer_t *timer)
{
    http_listen(timer->data);
}

/* ---- connections that end ------------------------------------------------ */

static void http_on_closed(struct uva__connections *all,
                           const struct uva__connection *connection)
{
    struct uva__http *http = (struct uva__http *)all;

    if (http->spare != connection)
        return;
    http->spare = NULL;
    if (!all->is_draining)
        http_listen(http);
}

static void http_on_freed(struct uva__connections *all)
{
    all->stats.connections--;
    http_check_closed((struct uva__http *)all);
}

/* ---- begin and end ------------------------------------------------------- */

static int listener_open(const struct sockaddr *address)
{
    const int on = 1, family = address->sa_family;
    const socklen_t size = family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                              : sizeof(struct sockaddr_in);
    const int fd = socket(family, SOCK_STREAM, 0);
    int code;

    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
        fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, address, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    code = errno;
    if (fd >= 0)
        (void)close(fd);
    return -code;
}

int uva__http_open(struct uva__http *http, uv_loop_t *loop,
                   const struct sockaddr *address, struct uva__tls *tls,
                   const struct uva__limits *limits,
                   const struct uva__http_handler *handler,
                   struct uva_error *error)
{
    const int fd = listener_open(address);
    int code;

    if (fd < 0)
        return uva_error_set(error, -fd, "cannot listen: %s", uv_strerror(fd));
    code = uv_poll_init_socket(loop, &http->listener, fd);
    if (code != 0) {
        (void)close(fd);
        return uva_error_set(error, -code, "cannot listen: %s",
                             uv_strerror(code));
    }
    (void)uv_timer_init(loop, &http->pause);
    http->listener.data = http->pause.data = http;
    http->handles = 2;
    http->handler = *handler;
    http->all.handler = handler->requests;
    http->all.on_closed = http_on_closed;
    http->all.on_freed = http_on_freed;
    http->all.limits = limits;
    http->all.clients.most[UVA__CLIENTS_CONNECTION] =
        limits->client_connections;
    http->all.clients.most[UVA__CLIENTS_QUERY] = limits->client_queries;
    http->all.tls = tls;
    http->fd = fd;
    http->reserve = -1;
    http_listen(http);
    return 0;
}

int uva__http_port(const struct uva__http *http)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);

    memset(&address, 0, sizeof(address));
    (void)getsockname(http->fd, (struct sockaddr *)&address, &size);
    return ntohs(address.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&address)->sin6_port
                     : ((struct sockaddr_in *)&address)->sin_port);
}

void uva__http_drain(struct uva__http *http)
{
    struct uva__connection *connection, *next;

    if (http->all.is_draining)
        return;
    http->all.is_draining = true;
    uv_close((uv_handle_t *)&http->listener, on_handle_closed);
    uv_close((uv_handle_t *)&http->pause, on_handle_closed);
    (void)close(http->fd); /* no longer polled */
    if (http->reserve >= 0)
        (void)close(http->reserve);
    http->fd = http->reserve = -1;
    for (connection = http->all.first; connection != NULL; connection = next) {
        next = connection->next;
        uva__connection_drain(connection);
    }
}

void uva__http_close(struct uva__http *http)
{
    uva__http_drain(http);
    while (http->all.first != NULL)
        uva__connection_abort(http->all.first);
}
