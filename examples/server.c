/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server: each request receives the rows of a query, as Arrow IPC,
 * which is written without copying, or as CSV, for the path /csv:
 *
 *     example_server DRIVER URI SQL PORT       then
 *     curl http://127.0.0.1:PORT/csv           or, in Python with pyarrow:
 *
 *     with urllib.request.urlopen("http://127.0.0.1:PORT") as rows:
 *         table = pyarrow.ipc.open_stream(rows).read_all()
 *
 * A client that reads slowly slows its query down, up to the database, and a
 * client that leaves cancels it. The first bytes of a request are enough for an
 * answer; `uvarrow serve` is a server that parses requests and limits its
 * clients, and graceful_end.c shows how to end one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "http_answer.h"

enum { FIRST_MS = 2000 }; /* the most time until the first rows */

static struct uva_adbc_pool *pool;
static const char *sql;

static void on_bytes(uv_tcp_t *client, const char *bytes, size_t size)
{
    struct http_client *c = (struct http_client *)client;
    struct uva_stream *s;

    if (c->rows != NULL)
        return; /* the rest of a request */
    s = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    uva_stream_timeout(s, &(struct uva_timeout){.first_ms = FIRST_MS});
    http_answer(c, s, size >= 8 && memcmp(bytes, "GET /csv", 8) == 0);
}

int main(int argc, char **argv)
{
    const struct listener clients = {.client_size = sizeof(struct http_client),
                                     .on_bytes = on_bytes,
                                     .on_left = http_left};
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;
    int code;

    if (argc != 5 || uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL PORT\n", argv[0]), 2;
    sql = argv[3];
    signal(SIGPIPE, SIG_IGN); /* the write returns an error instead */
    pool = database_open(rt, argv[1], argv[2]);
    code = pool != NULL ? listener_open(&clients, loop, atoi(argv[4])) : 0;
    if (code != 0)
        fprintf(stderr, "%s\n", uv_strerror(code));
    return pool == NULL || code != 0 || uv_run(loop, UV_RUN_DEFAULT) != 0;
}
