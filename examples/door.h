/* SPDX-License-Identifier: Apache-2.0 */
/* A server without a protocol: each client that connects to a socket is
 * answered, and its connection closed. */
#ifndef EXAMPLES_DOOR_H
#define EXAMPLES_DOOR_H

#include <uv.h>

/* Listens on the socket `path`, and calls `answer` for each client, which ends
 * in door_part(). Returns 0, or a negative code of libuv. */
int door_open(uv_loop_t *loop, const char *path,
              void (*answer)(uv_stream_t *client));

/* Closes the connection of a client. */
void door_part(uv_stream_t *client);

/* Lets no client in any more. `closed` is called when the last one has parted.
 */
void door_close(void (*closed)(void));

#endif
