/* SPDX-License-Identifier: Apache-2.0 */
/* libuv reports no further connection until the one that it has reported is
 * accepted, so a connection above the limit waits until a client is closed. */
#include "clients.h"

#include <stdlib.h>

enum { CLIENTS = 256 }; /* at one time */

static const struct listener *events;
static int clients;          /* that are not closed */
static uv_stream_t *waiting; /* has a connection that waits; or NULL */

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

void clients_accept(const struct listener *listener, uv_stream_t *server)
{
    uv_tcp_t *client;

    events = listener;
    waiting = clients == CLIENTS ? server : NULL;
    if (waiting != NULL)
        return;
    client = calloc(1, events->client_size);
    if (client == NULL)
        abort(); /* there is no way to accept anything more */
    clients++;
    uv_tcp_init(server->loop, client);
    if (uv_accept(server, (uv_stream_t *)client) != 0 ||
        uv_read_start((uv_stream_t *)client, on_alloc, on_read) != 0)
        listener_close(client);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
    clients--;
    if (waiting != NULL && !uv_is_closing((uv_handle_t *)waiting))
        clients_accept(events, waiting);
}

void listener_close(uv_tcp_t *client)
{
    uv_close((uv_handle_t *)client, on_closed);
}
