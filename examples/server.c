/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server in a hundred lines: each request receives the rows of a
 * query as a stream of Arrow IPC, which is written without copying.
 *
 *     example_server DRIVER URI SQL PORT       then, in Python with pyarrow:
 *
 *     with urllib.request.urlopen("http://127.0.0.1:PORT") as rows:
 *         table = pyarrow.ipc.open_stream(rows).read_all()
 *
 * A client that reads slowly slows its query down, up to the database, and one
 * that leaves cancels it. Port 0 lets the system choose; the server prints the
 * port. The first bytes of a request are enough for an answer; `uvarrow serve`
 * is a server that parses requests, and row_server.c shows how to end one
 * gracefully. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/adbc.h"
#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

struct client {
    uv_tcp_t tcp;
    uv_write_t write;          /* of the head */
    struct uva_stream *stream; /* counts, while its rows are written */
};

static struct uva_adbc_pool *pool;
static const char *sql;

static void client_closed(uv_handle_t *tcp)
{
    free(tcp->data);
}

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    struct client *c = ctx;

    (void)bytes;
    if (outcome->end != UVA_END_COMPLETE)
        fprintf(stderr, "query: %s\n", outcome->error.message);
    uva_stream_release(c->stream);
    uv_close((uv_handle_t *)&c->tcp, client_closed);
}

/* After a failure no last chunk is sent, so that the client notices it. */
static void client_answer(struct client *c)
{
    static char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                         "Content-Type: application/vnd.apache.arrow.stream\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n";
    const struct uva_write to = {
        .http_chunked = true, .on_done = on_done, .ctx = c};
    const uv_buf_t buffer = uv_buf_init(head, sizeof(head) - 1);
    struct uva_outcome outcome = {.end = UVA_END_FAILED};

    c->stream =
        uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &buffer, 1, NULL) != 0 ||
        uva_stream_write(c->stream, (uv_stream_t *)&c->tcp, &to,
                         &outcome.error) != 0)
        on_done(c, &outcome, 0);
}

static void on_read(uv_stream_t *tcp, ssize_t size, const uv_buf_t *buffer)
{
    struct client *c = tcp->data;

    (void)buffer;
    if (size > 0 && c->stream == NULL) {
        client_answer(c);
    } else if (size < 0) { /* the client has left: so does its query */
        uva_stream_drop(c->stream);
        uv_close((uv_handle_t *)tcp, client_closed);
    }
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buffer)
{
    static char room[4096];

    (void)handle;
    (void)hint;
    *buffer = uv_buf_init(room, sizeof(room));
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct client *c = status < 0 ? NULL : calloc(1, sizeof(*c));

    if (c == NULL)
        return;
    uv_tcp_init(listener->loop, &c->tcp);
    c->tcp.data = c;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0 ||
        uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0)
        uv_close((uv_handle_t *)&c->tcp, client_closed);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    const char *database[] = {"uri", argc > 2 ? argv[2] : "", NULL};
    struct uva_adbc_pool_options options = {.driver = argc > 1 ? argv[1] : "",
                                            .options = database};
    struct sockaddr_in address;
    struct uva_runtime *rt;
    struct uva_error error;
    uv_tcp_t server;
    int size = sizeof(address);

    if (argc != 5)
        return 2;
    sql = argv[3];
    signal(SIGPIPE, SIG_IGN); /* the write returns an error instead */
    if (uva_runtime_open(loop, NULL, &rt, &error) != 0 ||
        uva_adbc_pool_new(rt, &options, &pool, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    uv_ip4_addr("127.0.0.1", atoi(argv[4]), &address);
    uv_tcp_init(loop, &server);
    uv_tcp_bind(&server, (struct sockaddr *)&address, 0);
    if (uv_listen((uv_stream_t *)&server, 128, on_connection) != 0)
        return fprintf(stderr, "cannot listen\n"), 1;
    uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return uv_run(loop, UV_RUN_DEFAULT);
}
