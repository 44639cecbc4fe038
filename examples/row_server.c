/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP server: each connection receives the rows of a query as text.
 *
 *     example_row_server DRIVER URI SQL PORT        then: nc localhost PORT
 *
 * A client that reads slowly slows its query down, up to the database. If a
 * client disconnects, its query is cancelled at once. SIGTERM ends the server
 * gracefully: it accepts no more clients, and its clients get their remaining
 * rows, if they take them within half a minute. Ctrl-C ends it at once.
 *
 * Port 0 lets the system choose; the server prints the port. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "rows.h"
#include "uvarrow/adbc.h"

#define HIGH_BYTES ((size_t)1 << 20) /* pause the query at so many bytes */
#define LOW_BYTES  ((size_t)1 << 18) /* and resume it at so many */

enum { DRAIN_MS = 30000, FLUSH_MS = 5000 }; /* limits of a graceful end */
enum { CONNECTIONS = 64 };                  /* to the database, at most */
enum { PAUSE_MS = 100 };                    /* after an error that lasts */

static struct uva_runtime *rt;
static struct uva_adbc_pool *pool;
static const char *sql;
static uv_tcp_t server;
static uv_signal_t interrupt, terminate;
static uv_timer_t flush, pause_end;
static struct sockaddr_in address; /* of the server */
static int connections;            /* sockets that are not closed */
static bool drained;               /* no query runs, and no further one will */

static void server_end(void);

/* ---- a connection ------------------------------------------------------- */

struct conn {
    uv_tcp_t tcp;
    struct uva_stream *stream; /* owns a reference, while the query runs */
};

struct message {
    uv_write_t write;
    char *bytes; /* owns */
};

static void conn_closed(uv_handle_t *handle)
{
    free(handle->data);
    if (--connections == 0 && drained)
        server_end();
}

/* Called when the client has disconnected or the connection is finished: no
 * callback of the stream is made after this, so the connection may be freed. */
static void conn_close(struct conn *c)
{
    if (uv_is_closing((uv_handle_t *)&c->tcp))
        return;
    uva_stream_drop(c->stream);
    c->stream = NULL;
    uv_close((uv_handle_t *)&c->tcp, conn_closed);
}

static void conn_written(uv_write_t *write, int status)
{
    struct conn *c = write->handle->data;

    free(((struct message *)write)->bytes);
    free(write);
    if (status < 0)
        conn_close(c);
    else if (c->stream == NULL && c->tcp.write_queue_size == 0)
        conn_close(c); /* all data was sent */
    else if (c->stream != NULL && c->tcp.write_queue_size < LOW_BYTES)
        uva_stream_resume(c->stream);
}

/* Sends `bytes`, and takes them. */
static int conn_send(struct conn *c, char *bytes, size_t size)
{
    struct message *m = malloc(sizeof(*m));
    uv_buf_t buffer = uv_buf_init(bytes, (unsigned)size);
    int code = m == NULL ? UV_ENOMEM : 0;

    if (code == 0) {
        m->bytes = bytes;
        code = uv_write(&m->write, (uv_stream_t *)&c->tcp, &buffer, 1,
                        conn_written);
    }
    if (code != 0) {
        free(bytes);
        free(m);
    }
    return code; /* negative codes of libuv are valid, too */
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&bytes, &size);

    if (text == NULL)
        return ENOMEM;
    rows_write_names(text, info->schema);
    (void)fclose(text);
    return conn_send(ctx, bytes, size);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct conn *c = ctx;
    char *bytes = NULL;
    size_t size = 0;
    FILE *text;
    int code;

    text = open_memstream(&bytes, &size);
    if (text == NULL)
        return ENOMEM;
    code = rows_write(text, batch->schema, &batch->data.array);
    if (fclose(text) != 0 && code == 0)
        code = ENOMEM;
    if (code != 0)
        free(bytes);
    else
        code = conn_send(c, bytes, size);
    if (code == 0 && c->tcp.write_queue_size > HIGH_BYTES)
        code = EAGAIN; /* no more now: conn_written() resumes */
    return code;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct conn *c = ctx;

    if (outcome->end != UVA_END_COMPLETE)
        fprintf(stderr, "query: %s\n", outcome->error.message);
    uva_stream_release(c->stream);
    c->stream = NULL;
    if (c->tcp.write_queue_size == 0)
        conn_close(c); /* otherwise conn_written() closes it */
}

static int conn_query(struct conn *c)
{
    struct uva_error error;
    int code;

    c->stream =
        uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    code = uva_stream_for_each(c->stream,
                               &(struct uva_consumer){.on_schema = on_schema,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = c},
                               &error);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    return code;
}

/* Clients send no data: reading only detects that they disconnect. */
static void on_read(uv_stream_t *tcp, ssize_t size, const uv_buf_t *buffer)
{
    (void)buffer;
    if (size < 0)
        conn_close(tcp->data);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buffer)
{
    static char nowhere[64];

    (void)handle;
    (void)hint;
    *buffer = uv_buf_init(nowhere, sizeof(nowhere));
}

static void server_listen(uv_timer_t *timer);

static void on_server_closed(uv_handle_t *handle)
{
    (void)handle;
    if (!uv_is_closing((uv_handle_t *)&pause_end))
        uv_timer_start(&pause_end, server_listen, PAUSE_MS, 0);
}

static void server_pause(void)
{
    if (!uv_is_closing((uv_handle_t *)&server))
        uv_close((uv_handle_t *)&server, on_server_closed);
}

/* libuv would report an error that lasts, such as no descriptor, for ever. */
static void on_connection(uv_stream_t *listener, int status)
{
    struct conn *c = status < 0 ? NULL : calloc(1, sizeof(*c));

    if (c == NULL) {
        server_pause();
        return;
    }
    uv_tcp_init(listener->loop, &c->tcp);
    c->tcp.data = c;
    connections++;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0 ||
        uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0 ||
        conn_query(c) != 0)
        conn_close(c);
}

/* ---- the server --------------------------------------------------------- */

static void close_each(uv_handle_t *handle, void *ctx)
{
    (void)ctx;
    if (handle->type == UV_TCP && handle->data != NULL)
        conn_close(handle->data);
}

static void close_once(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Closes the handles that keep the loop alive. */
static void server_end(void)
{
    close_once((uv_handle_t *)&server);
    close_once((uv_handle_t *)&interrupt);
    close_once((uv_handle_t *)&terminate);
    close_once((uv_handle_t *)&flush);
    close_once((uv_handle_t *)&pause_end);
    uva_runtime_close(rt, 0, NULL, NULL);
}

static void server_stop(void)
{
    uv_walk(server.loop, close_each, NULL);
    server_end();
}

static void on_interrupt(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    server_stop();
}

static void on_flush_late(uv_timer_t *timer)
{
    (void)timer;
    server_stop();
}

/* Every query has ended, but slow clients have not received all rows: the last
 * socket that is closed ends the server. */
static void on_drained(void *ctx)
{
    (void)ctx;
    drained = true;
    if (connections == 0)
        server_end();
    else
        uv_timer_start(&flush, on_flush_late, FLUSH_MS, 0);
}

static void on_terminate(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    if (uva_runtime_drain(rt, DRAIN_MS, on_drained, NULL) != 0)
        return; /* it was called before, or the server ends already */
    close_once((uv_handle_t *)&server);
    close_once((uv_handle_t *)&pause_end);
    printf("draining\n");
    (void)fflush(stdout);
}

static int server_open(uv_loop_t *loop)
{
    int code;

    uv_tcp_init(loop, &server);
    code = uv_tcp_bind(&server, (const struct sockaddr *)&address, 0);
    return code != 0 ? code
                     : uv_listen((uv_stream_t *)&server, 128, on_connection);
}

static void server_listen(uv_timer_t *timer)
{
    if (server_open(timer->loop) != 0)
        server_pause();
}

static int listen_on(uv_loop_t *loop, int port)
{
    int size = sizeof(address);
    int code;

    uv_ip4_addr("127.0.0.1", port, &address);
    code = server_open(loop);
    if (code == 0)
        code = uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
    if (code == 0) {
        printf("listening on port %d\n", ntohs(address.sin_port));
        (void)fflush(stdout);
    }
    return code;
}

/* More clients than connections wait for one. */
static int pool_open(const char *driver, const char *uri,
                     struct uva_error *error)
{
    const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};

    return uva_adbc_pool_new(
        rt,
        &(struct uva_adbc_pool_options){
            .driver = driver, .options = options, .connections = CONNECTIONS},
        &pool, error);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct uva_error error;
    int code;

    if (argc != 5) {
        fprintf(stderr, "usage: %s DRIVER URI SQL PORT\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* for writes to a closed connection */
    if (uva_runtime_open(loop, NULL, &rt, &error) != 0 ||
        pool_open(argv[1], argv[2], &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    sql = argv[3];
    uv_signal_init(loop, &interrupt);
    uv_signal_start(&interrupt, on_interrupt, SIGINT);
    uv_signal_init(loop, &terminate);
    uv_signal_start(&terminate, on_terminate, SIGTERM);
    uv_timer_init(loop, &flush);
    uv_timer_init(loop, &pause_end);
    code = listen_on(loop, atoi(argv[4]));
    if (code != 0) {
        fprintf(stderr, "%s\n", uv_strerror(code));
        server_stop();
    }
    uv_run(loop, UV_RUN_DEFAULT);
    uva_adbc_pool_release(pool); /* closes its idle connections */
    return uv_loop_close(loop) != 0 || code != 0;
}
