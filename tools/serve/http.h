/* SPDX-License-Identifier: Apache-2.0 */
/* A server of HTTP on a loop: it listens, counts its connections, and ends
 * them. What is answered is up to its handler. */
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
    uv_tcp_t listener;                /* open from init to close */
    struct uva__http_handler handler; /* of the user */
    const struct uva__limits *limits; /* borrows */
    struct uva__tls *tls;             /* borrows; NULL: plain */
    struct uva__connection *first;    /* list of open connections */
    struct uva__http_stats stats;     /* as above */
    uv_tcp_t refused;                 /* a connection too many */
    bool is_refusing;                 /* that one is not closed */
    bool has_next;                    /* the next one waits for its close */
    bool is_draining;                 /* no new connection, no next request */
    bool is_closed;                   /* the listener is */
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

#endif
