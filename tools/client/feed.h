/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a body, framing removed, for a stream that reads a socket: one end
 * of a pair of sockets, the other of which the stream reads.
 *
 * The last byte is held back until the others have come: so a stream is not
 * complete before the answer is. */
#ifndef UVA_CLIENT_FEED_H
#define UVA_CLIENT_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "uvarrow/base.h"

/* Callbacks, on the loop thread. */
struct uva__feed_events {
    void (*on_room)(void *ctx);   /* little waits, after it was full */
    void (*on_closed)(void *ctx); /* the last call */
    void *ctx;
};

struct uva__feed {
    uv_pipe_t pipe;                 /* writes to the other end */
    struct uva__feed_events events; /* copied */
    uv_shutdown_t shutdown;         /* of the pipe */
    size_t queued;                  /* bytes that wait */
    char held;                      /* the last byte so far, if any */
    bool has_held;
    bool is_full;  /* on_room follows */
    bool is_ended; /* no more is written */
};

/* Makes a pair, with `other` for the stream. Returns 0, and both must be
 * closed; an errno, and both are closed. Thread: loop, as all here. */
UVA_MUST_CHECK int uva__feed_open(struct uva__feed *feed, uv_pipe_t *other,
                                  uv_loop_t *loop,
                                  const struct uva__feed_events *events);

/* Writes bytes, which are copied. Returns 0 or an errno. */
UVA_MUST_CHECK int uva__feed_write(struct uva__feed *feed, const char *data,
                                   size_t size);

/* Returns whether no more should be written before on_room. */
bool uva__feed_is_full(struct uva__feed *feed);

/* Ends the bytes after those that wait. If they are not `whole`, the last one
 * is left out. */
void uva__feed_end(struct uva__feed *feed, bool whole);

/* Drops the bytes that wait; on_closed follows. */
void uva__feed_close(struct uva__feed *feed);

#endif
