/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of a listener: each has a block of memory, and is read. */
#ifndef EXAMPLES_CLIENTS_H
#define EXAMPLES_CLIENTS_H

#include "listener.h"

/* Accepts the connection that `server` has reported; with 256 clients, later,
 * when one of them is closed. Borrows `listener`, as long as the loop runs. */
void clients_accept(const struct listener *listener, uv_stream_t *server);

#endif
