/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a pool's driver: well, or in trouble for a while. It dies, and
 * all sessions with it, and is started again; or it does not answer, as in a
 * network that swallows all data, and goes on later. */
#ifndef SIM_FAKE_SERVER_H
#define SIM_FAKE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct fake_server {
    int64_t starts;   /* sessions of an earlier start are dead */
    bool has_trouble; /* has, had or will have it */
    bool is_down;     /* connections are refused */
    bool hangs;       /* no call returns */
    int *fibers;      /* borrows: counts the fibers that make its trouble */
};

/* Starts a server. `fibers` counts while it is, or will be, in trouble. */
void fake_server_begin(struct fake_server *server, int *fibers);

/* Trouble begins some time later, once or twice, and ends by itself. */
void fake_server_trouble(struct fake_server *server);

/* Waits for an answer, which takes as long as the trouble. Returns whether a
 * session of that start is alive. */
bool fake_server_reach(const struct fake_server *server, int64_t start);

/* As fake_server_reach(), for a connect: whether it is accepted. */
bool fake_server_accepts(const struct fake_server *server);

#endif
