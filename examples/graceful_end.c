/* SPDX-License-Identifier: Apache-2.0 */
/* The server of server.c, with a graceful end. SIGTERM: it accepts no more
 * clients, and the others get their remaining rows, if they take them within
 * half a minute. SIGINT ends it at once, also after a SIGTERM. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "database.h"
#include "http_answer.h"

enum { DRAIN_MS = 30000, FLUSH_MS = 5000 };

static struct uva_runtime *rt;
static struct uva_adbc_pool *pool;
static const char *sql;
static uv_signal_t terminate, interrupt;

static void on_bytes(uv_tcp_t *client, const char *bytes, size_t size)
{
    struct http_client *c = (struct http_client *)client;
    const struct uva_adbc_query query = {.sql = sql};

    (void)bytes, (void)size;
    if (c->rows == NULL)
        http_answer(c, uva_stream_from_query(pool, &query), true);
}

/* The last client is closed. */
static void on_all_left(void)
{
    uv_close((uv_handle_t *)&terminate, NULL);
    uv_close((uv_handle_t *)&interrupt, NULL);
    uva_runtime_close(rt, 0, NULL, NULL);
}

/* Every query has ended; slow clients have not received all rows. */
static void on_drained(void *ctx)
{
    (void)ctx;
    listener_cut(FLUSH_MS);
}

static void on_signal(uv_signal_t *signal, int number)
{
    const int64_t deadline_ms = number == SIGTERM ? DRAIN_MS : 0;

    /* A second call makes the deadline shorter, and returns EALREADY. */
    if (uva_runtime_drain(rt, deadline_ms, on_drained, NULL) == 0)
        listener_end(signal->loop, on_all_left);
    if (number == SIGINT)
        listener_cut(0);
}

int main(int argc, char **argv)
{
    const struct listener clients = {.client_size = sizeof(struct http_client),
                                     .on_bytes = on_bytes,
                                     .on_left = http_left};
    uv_loop_t *loop = uv_default_loop();
    int code;

    if (argc != 5 || uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL PORT\n", argv[0]), 2;
    sql = argv[3];
    pool = database_open(rt, argv[1], argv[2]);
    if (pool == NULL)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    uv_signal_init(loop, &terminate);
    uv_signal_start(&terminate, on_signal, SIGTERM);
    uv_signal_init(loop, &interrupt);
    uv_signal_start(&interrupt, on_signal, SIGINT);
    code = listener_open(&clients, loop, atoi(argv[4]));
    if (code != 0)
        return fprintf(stderr, "%s\n", uv_strerror(code)), 1;
    uv_run(loop, UV_RUN_DEFAULT);
    uva_adbc_pool_release(pool); /* closes its idle connections */
    return uv_loop_close(loop) != 0;
}
