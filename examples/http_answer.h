/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as answers of an HTTP server: 200 once the rows are known to come,
 * otherwise a failure with its text. */
#ifndef EXAMPLES_HTTP_ANSWER_H
#define EXAMPLES_HTTP_ANSWER_H

#include "listener.h"
#include "uvarrow/uvarrow.h"

/* A client of listener.h. */
struct http_client {
    uv_tcp_t tcp;            /* first */
    struct uva_stream *rows; /* counts, while they are written; else NULL */
    const char *type;        /* of the rows */
    bool has_head;           /* the status was sent */
};

/* Answers with `rows`, which it takes, as Arrow IPC or CSV, and closes the
 * connection after them. */
void http_answer(struct http_client *client, struct uva_stream *rows,
                 bool as_csv);

/* The client has left: ends its answer. */
void http_left(uv_tcp_t *client);

#endif
