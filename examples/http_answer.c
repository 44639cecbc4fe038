/* SPDX-License-Identifier: Apache-2.0 */
/* The head is the first write, so the system has room for it. */
#include "http_answer.h"

#include <stdio.h>

#include "uvarrow/io.h"

static int send_head(struct http_client *c, const char *status,
                     const char *fields, const char *text)
{
    char head[1600];
    uv_buf_t buffer = {.base = head};

    c->has_head = true;
    buffer.len = (size_t)snprintf(
        head, sizeof(head), "HTTP/1.1 %s\r\nConnection: close\r\n%s\r\n\r\n%s",
        status, fields, text);
    return uv_try_write((uv_stream_t *)&c->tcp, &buffer, 1) < 0 ? EPIPE : 0;
}

/* The query has rows, or has ended well without one. */
static int on_begin(void *ctx, const struct uva_stream_info *info)
{
    struct http_client *c = ctx;
    char fields[120];

    (void)info;
    (void)snprintf(fields, sizeof(fields),
                   "Transfer-Encoding: chunked\r\nContent-Type: %s", c->type);
    return send_head(c, "200 OK", fields, "");
}

static const char *status_of(int code)
{
    return code == ETIMEDOUT   ? "504 Gateway Timeout"
           : code == ESHUTDOWN ? "503 Service Unavailable"
                               : "400 Bad Request";
}

/* A query that fails before on_begin is answered with the failure; one that
 * fails later has no last chunk, so that the client notices it. */
static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    struct http_client *c = ctx;

    (void)bytes;
    if (outcome->end == UVA_END_FAILED)
        fprintf(stderr, "query: %s\n", outcome->error.message);
    if (!c->has_head)
        (void)send_head(c, status_of(outcome->error.code),
                        "Content-Type: text/plain", outcome->error.message);
    uva_stream_release(c->rows);
    listener_close(&c->tcp);
}

void http_answer(struct http_client *c, struct uva_stream *rows, bool as_csv)
{
    const struct uva_write to = {.encode.format =
                                     as_csv ? UVA_FORMAT_CSV : UVA_FORMAT_ARROW,
                                 .http_chunked = true,
                                 .on_begin = on_begin,
                                 .on_done = on_done,
                                 .ctx = c};
    struct uva_outcome failed = {.end = UVA_END_FAILED};

    c->type = as_csv ? "text/csv" : "application/vnd.apache.arrow.stream";
    c->rows = rows;
    if (uva_stream_write(rows, (uv_stream_t *)&c->tcp, &to, &failed.error) != 0)
        on_done(c, &failed, 0);
}

void http_left(uv_tcp_t *client)
{
    uva_stream_drop(((struct http_client *)client)->rows);
    listener_close(client);
}
