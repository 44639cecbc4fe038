/* SPDX-License-Identifier: Apache-2.0 */
/* TCP clients of a program, on this machine: the common part of every server on
 * libuv. This file does not use uvarrow. */
#ifndef EXAMPLES_LISTENER_H
#define EXAMPLES_LISTENER_H

#include <stddef.h>
#include <uv.h>

/* The program's functions for its clients. */
struct listener {
    size_t client_size; /* of its struct for one, which begins with a uv_tcp_t
                           and is zeroed for the rest */
    void (*on_bytes)(uv_tcp_t *client, const char *bytes, size_t size);
    void (*on_left)(uv_tcp_t *client); /* has ended its side, or failed */
};

/* Listens on 127.0.0.1, and prints the port; port 0 lets the system choose one.
 * `listener` is borrowed as long as the loop runs. Once 256 clients are
 * connected, more of them wait. Returns 0 or a code of libuv. */
int listener_open(const struct listener *listener, uv_loop_t *loop, int port);

/* Closes the connection, and frees the client after its last write. */
void listener_close(uv_tcp_t *client);

#endif
