/* SPDX-License-Identifier: Apache-2.0 */
/* Step 6 of docs/tutorial.md: the server of step 5, which at SIGTERM lets no
 * client in any more, serves those that are there, and closes down.
 *
 *     $ cc step6_close.c door.c database.c \
 *         $(pkg-config --cflags --libs uvarrow-adbc uvarrow-io libuv)
 *     $ ./a.out "$SQLITE" & until [ -S readings.sock ]; do :; done; \
 *         python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); \
 *         s.connect("readings.sock"); print(*s.makefile(), sep="", end="")'; \
 *         kill $!; wait $!
 *     degrees
 *     20.1
 *     every client has its rows
 */
#include <signal.h>
#include <stdio.h>

#include "database.h"
#include "door.h"
#include "uvarrow/io.h"

static struct uva_adbc_pool *pool;
static struct uva_runtime *rt;
static uv_signal_t term;

static void on_written(void *client, const struct uva_outcome *outcome,
                       int64_t bytes)
{
    (void)bytes, (void)outcome;
    door_part(client);
}

static void answer(uv_stream_t *client)
{
    const struct uva_write csv = {
        .encode.format = UVA_FORMAT_CSV, .on_done = on_written, .ctx = client};
    struct uva_stream *s = uva_stream_from_query(
        pool, &(struct uva_adbc_query){.sql = "SELECT 20.1 AS degrees"});

    if (uva_stream_write(s, client, &csv, NULL) != 0)
        door_part(client);
    uva_stream_release(s);
}

static void on_door_closed(void)
{
    printf("every client has its rows\n");
    uva_adbc_pool_release(pool);
    uva_runtime_close(rt, 0, NULL, NULL); /* connections end on a worker */
}

static void on_term(uv_signal_t *signal, int number)
{
    (void)number;
    uv_close((uv_handle_t *)signal, NULL);
    door_close(on_door_closed);
}

int main(int argc, char **argv)
{
    if (argc != 2 || uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER\n", argv[0]), 2;
    (void)signal(SIGPIPE, SIG_IGN);
    uv_signal_init(uv_default_loop(), &term);
    uv_signal_start(&term, on_term, SIGTERM);
    pool = database_open(rt, argv[1], ":memory:");
    if (pool == NULL || door_open(uv_default_loop(), "readings.sock", answer))
        return fprintf(stderr, "cannot listen on readings.sock\n"), 1;
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
