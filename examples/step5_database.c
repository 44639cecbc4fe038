/* SPDX-License-Identifier: Apache-2.0 */
/* Step 5 of docs/tutorial.md: a server that answers each client with the rows
 * of a query.
 *
 *     $ cc step5_database.c door.c database.c \
 *         $(pkg-config --cflags --libs uvarrow-adbc uvarrow-io libuv)
 *     $ ./a.out "$SQLITE" & until [ -S readings.sock ]; do :; done; \
 *         python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); \
 *         s.connect("readings.sock"); print(*s.makefile(), sep="", end="")'; \
 *         kill $!; wait || true; rm readings.sock
 *     degrees
 *     20.1
 *     20.5
 */
#include <signal.h>
#include <stdio.h>

#include "database.h"
#include "door.h"
#include "uvarrow/io.h"

static struct uva_adbc_pool *pool;

static void on_written(void *client, const struct uva_outcome *outcome,
                       int64_t bytes)
{
    (void)bytes;
    if (outcome->error.code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    door_part(client);
}

static void answer(uv_stream_t *client)
{
    const struct uva_adbc_query query = {
        .sql = "SELECT 20.1 AS degrees UNION SELECT 20.5"};
    const struct uva_write csv = {
        .encode.format = UVA_FORMAT_CSV, .on_done = on_written, .ctx = client};
    struct uva_stream *s = uva_stream_from_query(pool, &query);

    if (uva_stream_write(s, client, &csv, NULL) != 0)
        door_part(client);
    uva_stream_release(s);
}

int main(int argc, char **argv)
{
    struct uva_runtime *rt;

    (void)signal(SIGPIPE, SIG_IGN); /* clients may leave */
    if (argc != 2 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER\n", argv[0]), 2;
    pool = database_open(rt, argv[1], ":memory:");
    if (pool == NULL || door_open(uv_default_loop(), "readings.sock", answer))
        return fprintf(stderr, "cannot listen on readings.sock\n"), 1;
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
