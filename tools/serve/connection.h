/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a client: requests are read one after the other, each is
 * answered before the next is looked at, and every wait has a limit.
 *
 * Happy path:  open -> (head -> on_head -> body -> on_request -> answer)* ->
 *              the client closes -> closed.
 * Failures:    a malformed request and a request above a limit get an error and
 *              a close; a client that leaves during an answer, or does not read
 *              it, is closed at once, and the answer's on_gone is called.
 * At the end:  a connection that we close ends our side first, and reads on
 *              for a moment: a close with unread bytes would be a reset, which
 *              can destroy the last answer. */
#ifndef UVA_SERVE_CONNECTION_H
#define UVA_SERVE_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "clients.h"
#include "proxies.h"
#include "request.h"
#include "response.h"
#include "transport.h"

struct uva__connection;
struct uva__connections;
struct uva__limits;
struct uva__tls;

/* An answer, for an access log. */
struct uva__answered {
    const struct uva__connection *connection; /* its client and request */
    int status;                               /* of the answer */
    int64_t bytes;                            /* of its body */
    int64_t ns;    /* from the first byte of the request */
    bool is_whole; /* the whole answer was handed to the system or its queue */
    int64_t query; /* the number of its query; 0: no query */
    const char
        *why; /* borrows: the cause of a cut; NULL: the client, or none */
};

/* Takes the requests. */
struct uva__connection_handler {
    /* The head of a request with a body is there. May refuse it by answering
     * it; then on_request does not follow. NULL: all are accepted. */
    void (*on_head)(void *ctx, struct uva__connection *connection);
    /* A request is there: answer it, now or later. */
    void (*on_request)(void *ctx, struct uva__connection *connection);
    /* Returns another site that may read the answer to a request that is
     * malformed or late, or NULL. NULL: no one may. */
    const char *(*origin_of)(void *ctx,
                             const struct uva__connection *connection);
    /* A request was answered, wholly or in part. NULL: no call. */
    void (*on_answered)(void *ctx, const struct uva__answered *entry);
    void *ctx; /* borrows, as long as there are connections */
};

/* Counts since the start. */
struct uva__connection_stats {
    int64_t connections; /* open now */
    int64_t accepted;    /* in all */
    int64_t refused;     /* for there were too many */
    int64_t requests;    /* whole ones */
    int64_t malformed;   /* requests that were refused by the parser or a limit
                          */
    int64_t timed_out;   /* connections that were too slow */
    int64_t limited;     /* connections and queries that were refused, as their
                            client had as many as one may */
};

/* The common state of the connections of a server. */
struct uva__connections {
    const struct uva__limits *limits; /* borrows */
    struct uva__tls *tls;             /* borrows; NULL: plain */
    struct uva__connection_handler handler;
    struct uva__proxies proxies;        /* that state clients */
    struct uva__clients clients;        /* and what each has */
    struct uva__connection *first;      /* list of the open ones */
    struct uva__connection_stats stats; /* as above */
    bool is_draining;                   /* no next request */
    /* a connection has left the list; and has been freed */
    void (*on_closed)(struct uva__connections *all,
                      const struct uva__connection *connection);
    void (*on_freed)(struct uva__connections *all);
};

/* The calls for an answer that is not given at once. They are not called after
 * uva__connection_end() or uva__connection_cut(). */
struct uva__answer_events {
    /* more can be sent */
    void (*on_writable)(void *ctx);
    /* the connection has ended: no byte can be sent. The last call. */
    void (*on_gone)(void *ctx);
    void *ctx; /* borrows, until the end, the cut or on_gone */
};

enum uva__connection_phase {
    UVA__CONNECTION_READING = 0, /* a request, or waits for one */
    UVA__CONNECTION_ANSWERING,   /* it; more input waits */
    UVA__CONNECTION_LINGERING,   /* our side has ended; input is dropped */
    UVA__CONNECTION_CLOSED       /* on_closed is due */
};

/* The form of an answer's body. */
enum uva__connection_body {
    UVA__BODY_PLAIN = 0, /* of a stated length, or until the close */
    UVA__BODY_CHUNKED,
    UVA__BODY_OMITTED /* the request was HEAD */
};

/* A connection. */
struct uva__connection {
    struct uva__transport transport;   /* first */
    struct uva__connections *all;      /* borrows: the server's */
    struct uva__connection *next;      /* in its list */
    struct uva__connection **previous; /* the pointer to this one */
    uv_timer_t timer;                  /* limits the present wait */
    int handles;                       /* timer and socket, until closed */
    enum uva__connection_phase phase;  /* as above */
    struct uva__request request;       /* the present one */
    struct uva__bytes input;           /* bytes that were not looked at */
    size_t looked_at;                  /* bytes of it that were */
    struct uva__answer_events events;  /* of an answer under way; or NULLs */
    size_t queued;    /* bytes to write when the timer was set; or 0 */
    int unconfirmed;  /* the same of uva__transport_unconfirmed() */
    uint64_t begun;   /* time of the request's first byte */
    int64_t answered; /* requests so far */
    int64_t bytes;    /* of the present answer's body */
    int status;       /* of the present answer; 0: no answer */
    enum uva__connection_body body; /* of it */
    int64_t query;          /* of the answer, for the log; 0: no query */
    bool is_spare;          /* there are too many connections beside it */
    bool keeps_alive;       /* after the present answer */
    bool is_working;        /* inside the loop over the input */
    bool was_full;          /* on_writable is due */
    bool has_ended;         /* the client sends no more */
    struct in6_addr peer;   /* of the socket */
    struct in6_addr client; /* of the request; mostly that */
    char client_name[UVA__NETWORK_ROOM]; /* as a text */
    struct uva__clients_entry place;  /* counts this, unless it is a proxy's */
    struct uva__clients_entry asking; /* counts a query under way */
};

/* Begins the connection of a socket. A spare one has a moment for one request,
 * which can be no query. Returns 0, and has taken `fd`; EDQUOT: its client has
 * as many as it may; another errno. Thread: loop, as all here. */
UVA_MUST_CHECK int uva__connection_accept(struct uva__connections *all,
                                          uv_loop_t *loop, int fd,
                                          bool is_spare);

/* Counts the request as a query of its client, until it is answered; once.
 * Returns 0; EDQUOT: it has as many as it may; ENOMEM. */
UVA_MUST_CHECK int uva__connection_count(struct uva__connection *connection);

/* Answers the request with a whole body (copied; may be NULL). `more` are
 * further lines of the head, or NULL; `origin` is a site that may read it, or
 * NULL. */
void uva__connection_answer(struct uva__connection *connection, int status,
                            const char *type, const char *origin,
                            const char *more, const char *body, size_t size);

/* Answers with an error as JSON. `members` as in uva__response_error(). */
void uva__connection_fail(struct uva__connection *connection, int status,
                          const char *origin, const char *more,
                          const char *message, const char *const *members);

/* States that the answer comes later. */
void uva__connection_defer(struct uva__connection *connection,
                           const struct uva__answer_events *events);

/* Begins a body of unknown length, after a deferral. Returns 0, or an errno:
 * on_gone was called. */
UVA_MUST_CHECK int uva__connection_begin(struct uva__connection *connection,
                                         int status, const char *type,
                                         const char *origin, const char *more);

/* Sends a part of it, of `bytes` in all, which are more than 0. Takes `part`.
 * Returns 0, or an errno: on_gone was called. */
UVA_MUST_CHECK int uva__connection_send(struct uva__connection *connection,
                                        const struct uva__transport_part *part,
                                        int64_t bytes);

/* Returns whether enough waits to be written; if so, on_writable follows. */
bool uva__connection_is_full(struct uva__connection *connection);

/* Ends the body. */
void uva__connection_end(struct uva__connection *connection);

/* Ends it before it is complete: the client sees that something is missing. The
 * log states why. */
void uva__connection_cut(struct uva__connection *connection, const char *why);

/* Closes a spare connection that has not sent anything, which is refused, or
 * has its answer. Returns whether it was one. */
bool uva__connection_yield(struct uva__connection *connection);

/* Closes it after the present answer; at once if there is none. */
void uva__connection_drain(struct uva__connection *connection);

/* Closes it at once. */
void uva__connection_abort(struct uva__connection *connection);

#endif
