/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of an HTTP server: 200 and the rows once the query is known to
 * work, otherwise a status of its own. A client that leaves ends its query, one
 * that reads slowly slows it down, and SIGTERM ends the server gracefully.
 *
 * tests/programs/test_interface_server.py asks it:
 *
 *     ./02_server sqlite :memory: 8080 &
 *     curl -i http://127.0.0.1:8080/3       200, the numbers 1 to 3
 *     curl -i http://127.0.0.1:8080/nope    400, the text of the database
 *     curl -i http://127.0.0.1:8080/slow    504, after two seconds
 *     curl -i http://127.0.0.1:8080/health  200 or 503
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "uvarrow/adbc.h"
#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

#define NUMBERS                                                                \
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "

struct client {
    uv_tcp_t tcp;            /* first */
    struct uva_stream *rows; /* counts; NULL: no query runs */
    bool has_head;           /* the status is decided */
    char request[1024];
};

static uv_tcp_t listener;
static uv_signal_t term;
static struct uva_runtime *runtime;
static struct uva_adbc_pool *pool;

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void client_close(struct client *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->tcp))
        uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* The system has room for a head, as no byte was written before. */
static int client_begin(struct client *c, const char *status, const char *more)
{
    char head[1400];
    uv_buf_t buffer = uv_buf_init(head, 0);

    c->has_head = true;
    buffer.len = (size_t)snprintf(head, sizeof(head),
                                  "HTTP/1.1 %s\r\nConnection: close\r\n%s",
                                  status, more);
    return uv_try_write((uv_stream_t *)&c->tcp, &buffer, 1) < 0 ? EPIPE : 0;
}

/* The first batch is there. */
static int on_begin(void *ctx, const struct uva_stream_info *info)
{
    (void)info;
    return client_begin(ctx, "200 OK",
                        "Content-Type: text/csv\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n");
}

static const char *status_of(int code)
{
    return code == ETIMEDOUT   ? "504 Gateway Timeout"
           : code == ESHUTDOWN ? "503 Service Unavailable"
                               : "400 Bad Request";
}

static void on_done(void *ctx, const struct uva_outcome *outcome, int64_t bytes)
{
    struct client *c = ctx;
    char text[1100];

    (void)bytes;
    (void)snprintf(text, sizeof(text), "\r\n%s\n", outcome->error.message);
    if (!c->has_head) /* it failed before: the answer is the failure */
        (void)client_begin(c, status_of(outcome->error.code), text);
    uva_stream_release(c->rows);
    c->rows = NULL;
    client_close(c);
}

static void client_ask(struct client *c, const char *path)
{
    const bool is_number = strspn(path, "0123456789") == strlen(path);
    const struct uva_value values[] = {
        {.type = UVA_VALUE_INT, .integer = strtoll(path, NULL, 10)}, {0}};
    const struct uva_write to = {.encode = {.format = UVA_FORMAT_CSV},
                                 .http_chunked = true,
                                 .on_begin = on_begin,
                                 .on_done = on_done,
                                 .ctx = c};
    struct uva_outcome failed = {.end = UVA_END_FAILED};

    c->rows = uva_stream_from_query(
        pool,
        &(struct uva_adbc_query){
            .sql = is_number ? NUMBERS "SELECT n FROM c LIMIT ?"
                   : strcmp(path, "slow") == 0 ? NUMBERS "SELECT max(n) FROM c"
                                               : "SELECT nope",
            .values = is_number ? values : NULL,
            .busy_ms = 2000});
    (void)uva_stream_timeout(c->rows, &(struct uva_timeout){.first_ms = 5000});
    if (uva_stream_write(c->rows, (uv_stream_t *)&c->tcp, &to, &failed.error) !=
        0)
        on_done(c, &failed, 0);
}

static void client_health(struct client *c)
{
    struct uva_adbc_pool_stats stats;
    char text[100];

    uva_adbc_pool_get_stats(pool, &stats);
    (void)snprintf(text, sizeof(text), "\r\n%d of %d connections are stuck\n",
                   (int)stats.connections_stuck, (int)stats.connections_max);
    (void)client_begin(c,
                       stats.connections_stuck < stats.connections_max
                           ? "200 OK"
                           : "503 Service Unavailable",
                       text);
    client_close(c);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
    struct client *c = (struct client *)handle;

    (void)size;
    *buffer = uv_buf_init(c->request, sizeof(c->request) - 1);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct client *c = (struct client *)stream;
    char path[100] = "";

    (void)buffer;
    if (size < 0) { /* the client has left: no callback comes any more */
        uva_stream_drop(c->rows);
        client_close(c);
    } else if (size > 0 && c->rows == NULL && !c->has_head) {
        c->request[size] = '\0';
        (void)sscanf(c->request, "GET /%99s", path);
        if (strcmp(path, "health") == 0)
            client_health(c);
        else
            client_ask(c, path);
    }
}

static void on_connection(uv_stream_t *from, int status)
{
    struct client *c = calloc(1, sizeof(*c));

    if (status != 0 || c == NULL || uv_tcp_init(from->loop, &c->tcp) != 0) {
        free(c);
        return;
    }
    if (uv_accept(from, (uv_stream_t *)&c->tcp) != 0 ||
        uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0)
        client_close(c);
}

/* Every stream has ended; sockets that still write close by themselves. */
static void on_drained(void *ctx)
{
    uva_adbc_pool_release(pool);
    (void)uva_runtime_close(ctx, 0, NULL, NULL);
}

static void on_sigterm(uv_signal_t *handle, int number)
{
    (void)number;
    if (uva_runtime_drain(runtime, 30000, on_drained, runtime) != 0)
        on_drained(runtime);
    uv_close((uv_handle_t *)&listener, NULL);
    uv_close((uv_handle_t *)handle, NULL);
}

int main(int argc, char **argv)
{
    const struct uva_pair options[] = {
        {.key = "uri", .value = argc == 4 ? argv[2] : ""}, {0}};
    struct sockaddr_in address;
    struct uva_error error;

    if (argc != 4)
        return fprintf(stderr, "usage: %s DRIVER URI PORT\n", argv[0]), 2;
    (void)signal(SIGPIPE, SIG_IGN);
    if (uva_runtime_open(uv_default_loop(), NULL, &runtime, &error) != 0 ||
        uva_adbc_pool_new(runtime,
                          &(struct uva_adbc_pool_options){.driver = argv[1],
                                                          .options = options},
                          &pool, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    if (uv_ip4_addr("127.0.0.1", atoi(argv[3]), &address) != 0 ||
        uv_tcp_init(uv_default_loop(), &listener) != 0 ||
        uv_tcp_bind(&listener, (struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)&listener, 128, on_connection) != 0 ||
        uv_signal_init(uv_default_loop(), &term) != 0 ||
        uv_signal_start(&term, on_sigterm, SIGTERM) != 0)
        return fprintf(stderr, "cannot listen\n"), 1;
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
