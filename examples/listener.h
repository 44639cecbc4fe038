/* SPDX-License-Identifier: Apache-2.0 */
/* TCP clients of a program, on this machine: the common part of every server on
 * libuv. It does not use uvarrow. */
#ifndef EXAMPLES_LISTENER_H
#define EXAMPLES_LISTENER_H

#include <stdbool.h>
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

/* Accepts no more clients, and calls `fn` when the last one is closed. Once. */
void listener_end(uv_loop_t *loop, void (*fn)(void));

/* After listener_end(): calls on_left for the clients that are there after
 * `wait_ms`. */
void listener_cut(uint64_t wait_ms);

/* ---- between listener.c, listener_clients.c and listener_end.c ------------
 */

/* Accepts a connection. Returns false if it has to wait for the end of a
 * client. */
bool clients_accept(uv_stream_t *server, const struct listener *listener);

/* Returns the number of clients that are not closed. */
int clients_count(void);

void clients_cut(uv_loop_t *loop);

/* A client was closed. */
void listener_room(void);
void listener_check_end(void);

void listener_stop(void);

#endif
