/* SPDX-License-Identifier: Apache-2.0 */
/* The clients are counted, so that the last one is known. */
#include "door.h"

#include <stdlib.h>

static uv_pipe_t door;
static int open_sockets; /* the clients', and the door */
static void (*answer_client)(uv_stream_t *client);
static void (*on_closed)(void);

static void one_closed(uv_handle_t *handle)
{
    if (handle != (uv_handle_t *)&door)
        free(handle);
    if (--open_sockets == 0 && on_closed != NULL)
        on_closed();
}

static void on_knock(uv_stream_t *from, int status)
{
    uv_pipe_t *client = malloc(sizeof(*client));

    if (status != 0 || client == NULL) {
        free(client);
        return;
    }
    (void)uv_pipe_init(from->loop, client, 0);
    open_sockets++;
    if (uv_accept(from, (uv_stream_t *)client) == 0)
        answer_client((uv_stream_t *)client);
    else
        door_part((uv_stream_t *)client);
}

int door_open(uv_loop_t *loop, const char *path,
              void (*answer)(uv_stream_t *client))
{
    int code = uv_pipe_init(loop, &door, 0);

    answer_client = answer;
    open_sockets = 1;
    if (code == 0)
        code = uv_pipe_bind(&door, path);
    return code == 0 ? uv_listen((uv_stream_t *)&door, 128, on_knock) : code;
}

void door_part(uv_stream_t *client)
{
    uv_close((uv_handle_t *)client, one_closed);
}

void door_close(void (*closed)(void))
{
    on_closed = closed;
    uv_close((uv_handle_t *)&door, one_closed);
}
