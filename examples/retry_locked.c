/* SPDX-License-Identifier: Apache-2.0 */
/* A query of a database that another program may have locked: it is opened
 * again after a while, up to eight times. Other failures would only be
 * repeated, and end it.
 *
 *     $ cc retry_locked.c database.c print.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc uvarrow-io libuv)
 *     $ ./a.out "$SQLITE" :memory: "SELECT 'apple' AS name, 2 AS price"
 *     name,price
 *     apple,2
 */
#include <stdio.h>
#include <uv.h>

#include "database.h"
#include "print.h"

struct query {
    struct uva_runtime *rt;
    char **argv; /* program, driver, URI, SQL */
};

static struct uva_stream *query_stream(const struct query *q)
{
    struct uva_stream *s =
        database_query(q->rt, q->argv[1], q->argv[2],
                       &(struct uva_adbc_query){.sql = q->argv[3]});

    uva_stream_timeout(s, &(struct uva_timeout){.first_ms = 30000});
    return s;
}

/* `passed` and `rows` are 0: without `resume` only a failure before the first
 * batch is tried again. */
static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    (void)passed, (void)rows;
    if (strstr(failed->error.message, "locked") == NULL)
        return NULL; /* gives up: the failure is passed on */
    fprintf(stderr, "attempt %d, as this failed: %s\n", (int)attempt + 1,
            failed->error.message);
    return query_stream(ctx);
}

int main(int argc, char **argv)
{
    struct query q = {.argv = argv};
    const struct uva_retry retry = {.again = again, .ctx = &q, .times = 8};
    struct uva_stream *s;

    if (argc != 4 ||
        uva_runtime_open(uv_default_loop(), NULL, &q.rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL\n", argv[0]), 2;
    s = query_stream(&q);
    uva_stream_retry(s, &retry);
    return print_to_end(q.rt, s, UVA_FORMAT_CSV);
}
