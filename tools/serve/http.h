/* SPDX-License-Identifier: Apache-2.0 */
/* A server of HTTP on a loop: it listens, counts its connections, and ends
 * them. What is answered is up to its handler.
 *
 * Too many:    one connection beyond the limit at a time is the spare one: it
 *              has a moment for one request, so that /health can be asked. The
 *              next one takes its place if that one has sent nothing so far, or
 *              has its answer, and is answered 503 unread otherwise.
 * What fails:  an error of accept() that is no connection's own, such as no
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

/* What was answered, for an access log. */
struct uva__http_entry {
    const struct uva__connection *connection; /* its peer and request */
    int status;                               /* of the answer */
    int64_t bytes;                            /* of its body */
    int64_t ns;    /* from the first byte of the request */
    bool is_whole; /* all of the answer was handed to the system or its queue */
    int64_t query; /* the number of the query that it answers; 0: none */
    const char *why; /* borrows: what cut it; NULL: the client, or nothing */
};

/* All on the loop thread. */
struct uva__http_handler {
    /* The head of a request with a body is there. May refuse it by answering
     * it; then on_request does not follow. NULL: all are accepted. */
    void (*on_head)(void *ctx, struct uva__connection *connection);
    /* A request is there: answer it, now or later. */
    void (*on_request)(void *ctx, struct uva__connection *connection);
    /* Returns another site that may read the answer to a request that is
     * malformed or late, or NULL. NULL: none may. */
    const char *(*origin_of)(void *ctx,
                             const struct uva__connection *connection);
    /* A request was answered, wholly or in part. NULL: no call. */
    void (*on_answered)(void *ctx, const struct uva__http_entry *entry);
    /* No connection can be accepted, by an errno; called once until one can be
     * again. */
    void (*on_starved)(void *ctx, int code);
    /* The last call, after uva__http_drain(): nothing is open. */
    void (*on_closed)(void *ctx);
    void *ctx; /* borrows, until on_closed */
};

/* Counts since the start. */
struct uva__http_stats {
    int64_t connections; /* open now */
    int64_t accepted;    /* in all */
    int64_t refused;     /* for there were too many */
    int64_t requests;    /* whole ones */
    int64_t malformed;   /* requests that were refused by the parser or a limit
                          */
    int64_t timed_out;   /* connections that were too slow */
};

/* A server. */
struct uva__http {
    uv_poll_t listener;               /* open from init to close, as `pause` */
    uv_timer_t pause;                 /* until it listens again */
    struct uva__http_handler handler; /* of the user */
    const struct uva__limits *limits; /* borrows */
    struct uva__tls *tls;             /* borrows; NULL: plain */
    struct uva__connection *first;    /* list of open connections */
    struct uva__http_stats stats;     /* as above */
    struct uva__connection *spare;    /* borrows: one too many; or NULL */
    int handles;                      /* of the two above, until closed */
    int fd;                           /* owns: of the listener */
    int reserve;                      /* owns: for the spare one; or -1 */
    bool is_starved;                  /* on_starved was called for it */
    bool is_draining;                 /* no new connection, no next request */
};

/* Listens at an address. Returns 0: to be closed; otherwise an errno with an
 * error, and there is nothing to undo once the loop has run. Thread: loop, as
 * all here. */
UVA_MUST_CHECK int uva__http_open(struct uva__http *http, uv_loop_t *loop,
                                  const struct sockaddr *address,
                                  struct uva__tls *tls,
                                  const struct uva__limits *limits,
                                  const struct uva__http_handler *handler,
                                  struct uva_error *error);

/* Returns the port that it listens at. */
int uva__http_port(const struct uva__http *http);

/* Accepts nothing more, and closes each connection behind its running answer.
 * on_closed follows, later. */
void uva__http_drain(struct uva__http *http);

/* Closes everything at once; on_closed follows, later. */
void uva__http_close(struct uva__http *http);

/* For connection.c: a connection has been closed and freed. */
void uva__http_forget(struct uva__http *http);

/* For connection.c: a spare connection has been closed. */
void uva__http_spare_closed(struct uva__http *http,
                            const struct uva__connection *connection);

#endif
