/* SPDX-License-Identifier: Apache-2.0 */
/* One listener for the program. An error that lasts, such as no descriptor,
 * would be reported for ever, and no other code would run: the server closes,
 * and listens anew later. Accepted clients are in clients.c. */
#include "listener.h"

#include <stdio.h>

#include "clients.h"

enum { PAUSE_MS = 100 }; /* without a listener, after such an error */

static const struct listener *events;
static uv_tcp_t server;
static uv_timer_t pause_end;
static struct sockaddr_in address; /* of the server */

static void server_listen(uv_timer_t *timer);

static void on_server_closed(uv_handle_t *handle)
{
    (void)handle;
    uv_timer_start(&pause_end, server_listen, PAUSE_MS, 0);
}

static void on_connection(uv_stream_t *listener, int status)
{
    if (status == 0)
        clients_accept(events, listener);
    else if (!uv_is_closing((uv_handle_t *)listener))
        uv_close((uv_handle_t *)listener, on_server_closed);
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
