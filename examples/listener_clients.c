/* SPDX-License-Identifier: Apache-2.0 */
/* A block of memory for each client. */
#include <stdlib.h>

#include "listener.h"

enum { CLIENTS = 256 }; /* at one time */

static const struct listener *events;
static int clients; /* that are not closed */

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

    (void)handle, (void)hint;
    *buffer = uv_buf_init(room, sizeof(room));
}

bool clients_accept(uv_stream_t *server, const struct listener *listener)
{
    uv_tcp_t *client;

    events = listener;
    if (clients == CLIENTS)
        return false;
    client = calloc(1, events->client_size);
    if (client == NULL)
        abort(); /* there is no way to accept anything more */
    clients++;
    uv_tcp_init(server->loop, client);
    client->data = client; /* marks a client */
    if (uv_accept(server, (uv_stream_t *)client) != 0 ||
        uv_read_start((uv_stream_t *)client, on_alloc, on_read) != 0)
        listener_close(client);
    return true;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
    clients--;
    listener_room();
    listener_check_end();
}

void listener_close(uv_tcp_t *client)
{
    uv_close((uv_handle_t *)client, on_closed);
}

int clients_count(void)
{
    return clients;
}

static void cut(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    if (handle->type == UV_TCP && handle->data == handle &&
        !uv_is_closing(handle))
        events->on_left((uv_tcp_t *)handle);
}

void clients_cut(uv_loop_t *loop)
{
    uv_walk(loop, cut, NULL);
}
