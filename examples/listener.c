/* SPDX-License-Identifier: Apache-2.0 */
/* One listener for the program, and a block of memory for each client. libuv
 * reports no further connection until the one that it has reported is accepted,
 * so a connection above the limit waits until a client is closed. */
#include "listener.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 256 }; /* at one time */

enum { PAUSE_MS = 100 }; /* without a listener, after an error that lasts */

static const struct listener *events;
static uv_tcp_t server;
static uv_timer_t pause_end;
static struct sockaddr_in address; /* of the server */
static int clients;                /* that are not closed */
static bool is_full; /* a connection waits for the end of a client */

static void on_read(uv_stream_t *tcp, ssize_t size, const uv_buf_t *buffer)
{
    if (size > 0)
        events->on_bytes((uv_tcp_t *)tcp, buffer->base, (size_t)size);
    else if (size < 0)
        events->on_left((uv_tcp_t *)tcp);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buffer)
{
    static char room[4096];

    (void)handle;
    (void)hint;
    *buffer = uv_buf_init(room, sizeof(room));
}

static void server_listen(uv_timer_t *timer);

static void on_server_closed(uv_handle_t *handle)
{
    (void)handle;
    uv_timer_start(&pause_end, server_listen, PAUSE_MS, 0);
}

/* An error that lasts, such as no descriptor, would be reported for ever, and
 * no other code would run: the server closes, and listens anew later. */
static void on_connection(uv_stream_t *listener, int status)
{
    uv_tcp_t *client;

    if (status != 0) {
        if (!uv_is_closing((uv_handle_t *)listener))
            uv_close((uv_handle_t *)listener, on_server_closed);
        return;
    }
    is_full = clients == CLIENTS;
    if (is_full)
        return;
    client = calloc(1, events->client_size);
    if (client == NULL)
        abort(); /* there is no way to accept anything more */
    clients++;
    uv_tcp_init(listener->loop, client);
    if (uv_accept(listener, (uv_stream_t *)client) != 0 ||
        uv_read_start((uv_stream_t *)client, on_alloc, on_read) != 0)
        listener_close(client);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
    clients--;
    if (is_full && !uv_is_closing((uv_handle_t *)&server))
        on_connection((uv_stream_t *)&server, 0);
}

void listener_close(uv_tcp_t *client)
{
    uv_close((uv_handle_t *)client, on_closed);
}

static int server_open(uv_loop_t *loop)
{
    int code;

    uv_tcp_init(loop, &server);
    code = uv_tcp_bind(&server, (struct sockaddr *)&address, 0);
    return code != 0 ? code
                     : uv_listen((uv_stream_t *)&server, 128, on_connection);
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
    if (code != 0)
        return code;
    uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return 0;
}
