/* SPDX-License-Identifier: Apache-2.0 */
/* The socket; listener_clients.c has the clients. libuv reports no further
 * connection until the one that it has reported is accepted. */
#include "listener.h"

#include <stdio.h>

enum { PAUSE_MS = 100 }; /* without a listener, after an error that lasts */

static const struct listener *events;
static uv_tcp_t server;
static struct sockaddr_in address; /* of the server */
static uv_timer_t pause_end;
static bool is_full;    /* a connection waits for the end of a client */
static bool is_stopped; /* by listener_stop() */

static void server_listen(uv_timer_t *timer);

static void on_server_closed(uv_handle_t *handle)
{
    (void)handle;
    if (!is_stopped)
        uv_timer_start(&pause_end, server_listen, PAUSE_MS, 0);
}

/* An error that lasts, such as no descriptor, would be reported for ever. */
static void on_connection(uv_stream_t *listener, int status)
{
    if (status == 0)
        is_full = !clients_accept(listener, events);
    else if (!uv_is_closing((uv_handle_t *)listener))
        uv_close((uv_handle_t *)listener, on_server_closed);
}

void listener_room(void)
{
    if (is_full && !uv_is_closing((uv_handle_t *)&server))
        on_connection((uv_stream_t *)&server, 0);
}

static int server_open(uv_loop_t *loop)
{
    int code = uv_tcp_init(loop, &server);

    if (code == 0)
        code = uv_tcp_bind(&server, (struct sockaddr *)&address, 0);
    if (code == 0)
        code = uv_listen((uv_stream_t *)&server, 128, on_connection);
    return code;
}

static void server_listen(uv_timer_t *timer)
{
    if (server_open(timer->loop) != 0)
        uv_close((uv_handle_t *)&server, on_server_closed);
}

int listener_open(const struct listener *listener, uv_loop_t *loop, int port)
{
    int size = sizeof(address), code;

    events = listener;
    uv_ip4_addr("127.0.0.1", port, &address);
    uv_timer_init(loop, &pause_end);
    code = server_open(loop);
    if (code == 0)
        code = uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
    if (code == 0)
        printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return code;
}

void listener_stop(void)
{
    is_stopped = true;
    if (!uv_is_closing((uv_handle_t *)&server))
        uv_close((uv_handle_t *)&server, on_server_closed);
    uv_close((uv_handle_t *)&pause_end, NULL);
}
