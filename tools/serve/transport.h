/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection, with TLS or without: bytes in, buffers out. */
#ifndef UVA_SERVE_TRANSPORT_H
#define UVA_SERVE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "tls.h"

struct uva__transport;

/* Callbacks, on the loop thread. Each may close the transport. */
struct uva__transport_events {
    /* both sides are ready, or the errno; of uva__transport_connect() alone */
    void (*on_connected)(struct uva__transport *transport, int code);
    /* bytes have come; they are valid during the call */
    void (*on_data)(struct uva__transport *transport, const char *data,
                    size_t size);
    /* no more will come: the peer has closed its side, or `code` */
    void (*on_end)(struct uva__transport *transport, int code);
    /* buffers were taken by the system; after an error, the last call but
     * on_closed */
    void (*on_written)(struct uva__transport *transport, int code);
    /* the last call, after uva__transport_close() */
    void (*on_closed)(struct uva__transport *transport);
};

/* Zeroes, then uva__transport_accept() or uva__transport_connect(). */
struct uva__transport {
    uv_tcp_t tcp;                               /* first */
    const struct uva__transport_events *events; /* static */
    struct uva__tls_session *tls;               /* owns; NULL: plain */
    uv_shutdown_t shutdown;                     /* of our side */
    uv_connect_t connect;                       /* to a server */
    size_t writes;                              /* that were not reported */
    bool is_connecting;                         /* on_connected follows */
    bool is_reading;                            /* the socket is read */
    bool is_shut;                               /* our side has ended */
    bool is_closing;                            /* or closed */
};

/* Buffers that are written together. */
struct uva__transport_part {
    const uv_buf_t *buffers;      /* borrows, until `release` */
    size_t count;                 /* number of these */
    void (*release)(void *owner); /* called once, when all is written or
                                     cannot be; may be NULL */
    void *owner;                  /* its argument */
};

/* Takes the socket of an accepted connection. Returns 0 or an errno; it must be
 * closed in both cases. Thread: loop, as all here. */
UVA_MUST_CHECK int
uva__transport_accept(struct uva__transport *transport, uv_loop_t *loop, int fd,
                      struct uva__tls *tls,
                      const struct uva__transport_events *events);

/* Connects to the server at `address`; with `tls`, its certificate must be for
 * `host`. While it connects, on_end means that TLS has failed. Returns 0, and
 * on_connected follows; an errno. It must be closed in both cases. */
UVA_MUST_CHECK int
uva__transport_connect(struct uva__transport *transport, uv_loop_t *loop,
                       const struct sockaddr *address, struct uva__tls *tls,
                       const char *host,
                       const struct uva__transport_events *events);

/* Starts or stops reading. While it does not read, the peer is held up, and
 * its close is not reported. */
void uva__transport_read(struct uva__transport *transport, bool wanted);

/* Returns whether the peer has ended its side, also while it is not read. */
bool uva__transport_has_left(const struct uva__transport *transport);

/* Writes `head` (copied; may be empty), the buffers of `part` (may be NULL) and
 * `tail` (copied). Takes `part` in every case. Returns 0, or an errno: the
 * connection is of no use any more. */
UVA_MUST_CHECK int uva__transport_write(struct uva__transport *transport,
                                        const char *head, size_t head_size,
                                        const struct uva__transport_part *part,
                                        const char *tail, size_t tail_size);

/* Returns how many bytes the system has not taken. */
size_t uva__transport_queued(const struct uva__transport *transport);

/* Returns the memory of writes: these bytes, and the writes themselves, also
 * those that are about to be reported. */
size_t uva__transport_held(const struct uva__transport *transport);

/* Returns how many bytes the system has taken and the peer has not confirmed; 0
 * where that is not known. It changes while the peer reads. */
int uva__transport_unconfirmed(const struct uva__transport *transport);

/* Ends our side after the written bytes. If `cut`, the peer notices under TLS
 * that something is missing. */
void uva__transport_shutdown(struct uva__transport *transport, bool cut);

/* Closes both sides; on_closed follows. With `reset` the peer sees an error. */
void uva__transport_close(struct uva__transport *transport, bool reset);

#endif
