/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server in a hundred lines: each request receives the rows of a query,
 * as a stream of Arrow IPC, which is written without copying, or as CSV. The
 * answer is 200 once the query is known to work, 400 with the database's text
 * if it is refused, and 504 if it has no row for two seconds.
 *
 *     example_server DRIVER URI SQL PORT       then
 *     curl http://127.0.0.1:PORT/csv           or, in Python with pyarrow:
 *
 *     with urllib.request.urlopen("http://127.0.0.1:PORT") as rows:
 *         table = pyarrow.ipc.open_stream(rows).read_all()
 *
 * A client that reads slowly slows its query down, up to the database, and a
 * client that leaves cancels it. Port 0 lets the system choose; the server
 * prints the port. listener.c accepts the clients. The first bytes of a request
 * are enough for an answer; `uvarrow serve` is a server that parses requests
 * and limits its clients, and row_server.c shows how to end one gracefully. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "listener.h"
#include "uvarrow/adbc.h"
#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

enum { FIRST_MS = 2000 }; /* the most time until the first rows */

struct client {
    uv_tcp_t tcp;            /* first */
    struct uva_stream *rows; /* counts, while they are written */
    const char *type;        /* of the rows */
    bool has_head;           /* the status was sent */
};

static struct uva_adbc_pool *pool;
static const char *sql;

/* The system has room for a head, as it is the first write. */
static int send_head(struct client *c, const char *status, const char *fields,
                     const char *text)
{
    char head[1600];
    uv_buf_t buffer = {.base = head};

    c->has_head = true;
    buffer.len = (size_t)snprintf(head, sizeof(head),
                                  "HTTP/1.1 %s\r\nConnection: close\r\n"
                                  "Content-Type: %s\r\n\r\n%s",
                                  status, fields, text);
    return uv_try_write((uv_stream_t *)&c->tcp, &buffer, 1) < 0 ? EPIPE : 0;
}

/* The query has rows, or has ended well without one. */
static int on_begin(void *ctx, const struct uva_stream_info *info)
{
    struct client *c = ctx;
    char fields[100];

    (void)info;
    (void)snprintf(fields, sizeof(fields), "%s\r\nTransfer-Encoding: chunked",
                   c->type);
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
    struct client *c = ctx;

    (void)bytes;
    if (outcome->end != UVA_END_COMPLETE)
        fprintf(stderr, "query: %s\n", outcome->error.message);
    if (!c->has_head)
        (void)send_head(c, status_of(outcome->error.code), "text/plain",
                        outcome->error.message);
    uva_stream_release(c->rows);
    listener_close(&c->tcp);
}

static void answer(struct client *c, enum uva_format format, const char *type)
{
    const struct uva_write to = {.encode.format = format,
                                 .http_chunked = true,
                                 .on_begin = on_begin,
                                 .on_done = on_done,
                                 .ctx = c};
    struct uva_outcome outcome = {.end = UVA_END_FAILED};

    c->type = type;
    c->rows = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    (void)uva_stream_timeout(c->rows,
                             &(struct uva_timeout){.first_ms = FIRST_MS});
    if (uva_stream_write(c->rows, (uv_stream_t *)&c->tcp, &to,
                         &outcome.error) != 0)
        on_done(c, &outcome, 0);
}

static void on_bytes(uv_tcp_t *client, const char *bytes, size_t size)
{
    struct client *c = (struct client *)client;

    if (c->rows == NULL && size >= 8 && memcmp(bytes, "GET /csv", 8) == 0)
        answer(c, UVA_FORMAT_CSV, "text/csv");
    else if (c->rows == NULL)
        answer(c, UVA_FORMAT_ARROW, "application/vnd.apache.arrow.stream");
}

static void on_left(uv_tcp_t *client) /* so its query ends, too */
{
    uva_stream_drop(((struct client *)client)->rows);
    listener_close(client);
}

int main(int argc, char **argv)
{
    const struct listener clients = {sizeof(struct client), on_bytes, on_left};
    const struct uva_pair uri[] = {
        {.key = "uri", .value = argc == 5 ? argv[2] : ""}, {0}};
    struct uva_adbc_pool_options database = {.driver = argv[1], .options = uri};
    struct uva_error error;
    struct uva_runtime *rt;

    if (argc != 5)
        return fprintf(stderr, "usage: %s DRIVER URI SQL PORT\n", argv[0]), 2;
    sql = argv[3];
    signal(SIGPIPE, SIG_IGN); /* the write returns an error instead */
    if (uva_runtime_open(uv_default_loop(), NULL, &rt, &error) != 0 ||
        uva_adbc_pool_new(rt, &database, &pool, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    if (listener_open(&clients, uv_default_loop(), atoi(argv[4])) != 0)
        return fprintf(stderr, "cannot listen\n"), 1;
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
