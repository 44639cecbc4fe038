/* SPDX-License-Identifier: Apache-2.0 */
/* A server of HTTP on a loop: it listens, counts its connections, and ends
 * them. The answer is up to its handler.
 *
 * Too many:    one connection beyond the limit at a time is the spare one: it
 *              has a moment for one request, so that /health can be asked. The
 *              next one takes its place if that one has sent no byte so far, or
 *              has its answer, and is answered 503 unread otherwise.
 * Failures:    an error of accept() that is no connection's own, such as no
 *              descriptor, stops the listening for a moment; the spare
 *              connection is then accepted by a descriptor in reserve. */
#ifndef UVA_SERVE_HTTP_H
#define UVA_SERVE_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "connection.h"
#include "server_limits.h"
#include "tls.h"

/* All on the loop thread. */
struct uva__http_handler {
    struct uva__connection_handler requests; /* takes the requests */
    /* No connection can be accepted, by an errno; called once until one can be
     * again. */
    void (*on_starved)(void *ctx, int code);
    /* The last call, after uva__http_drain(): no handle is open. */
    void (*on_closed)(void *ctx);
    void *ctx; /* borrows, until on_closed: of these two */
};

/* A server. */
struct uva__http {
    struct uva__connections all;      /* first */
    uv_poll_t listener;               /* open from init to close, as `pause` */
    uv_timer_t pause;                 /* until it listens again */
    struct uva__http_handler handler; /* of the user */
    struct uva__connection *spare;    /* borrows: one too many; or NULL */
    int handles;                      /* of these two, until closed */
    int fd;                           /* owns: of the listener */
    int reserve;                      /* owns: for the spare one; or -1 */
    bool is_starved;                  /* on_starved was called for it */
};

/* Listens at an address. Returns 0: to be closed; otherwise an errno with an
 * error, without anything to undo once the loop has run. Thread: loop, as all
 * here. */
UVA_MUST_CHECK int uva__http_open(struct uva__http *http, uv_loop_t *loop,
                                  const struct sockaddr *address,
                                  struct uva__tls *tls,
                                  const struct uva__limits *limits,
                                  const struct uva__http_handler *handler,
                                  struct uva_error *error);

/* Returns the port that it listens at. */
int uva__http_port(const struct uva__http *http);

/* Accepts nothing more, and closes each connection after its running answer.
 * on_closed follows, later. */
void uva__http_drain(struct uva__http *http);

/* Closes everything at once; on_closed follows, later. */
void uva__http_close(struct uva__http *http);

#endif
