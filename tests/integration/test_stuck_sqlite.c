/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of the ADBC driver for SQLite that compute for long and ignore a
 * cancel, on all threads that there are: another query is answered beside
 * them. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/adbc_query.h"
#include "support/check_suite.h"
#include "uvarrow/uvarrow.h"

/* Computes for some seconds before its first row. */
#define CROSS_JOIN                                                             \
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT "    \
    "3500) SELECT count(*) FROM c a, c b WHERE a.x + b.x < 0"

enum { STUCK = 4, SKIP = 77 };

struct query {
    struct adbc_query driver;
    const char *sql;
    bool is_join;
    struct uva_stream *stream;
    sem_t opening, done, freed;
    enum uva_end end;
    int64_t rows;
};

static atomic_int joined; /* cross joins that have ended */

static void take(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        ;
}

static int query_open(void *ctx, struct ArrowArrayStream *out,
                      struct uva_error *error)
{
    struct query *query = ctx;

    (void)error;
    sem_post(&query->opening);
    adbc_query_open(&query->driver, ":memory:", query->sql, out);
    return 0;
}

static void query_free(void *ctx)
{
    struct query *query = ctx;

    joined += query->is_join;
    adbc_query_close(&query->driver);
    sem_post(&query->freed);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct query *query = ctx;

    query->rows += batch->data.array.length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct query *query = ctx;

    query->end = outcome->end;
    sem_post(&query->done);
}

static void start(struct query *query, const char *sql,
                  struct uva_runtime *runtime)
{
    const struct uva_arrow_source options = {
        .open = query_open, .free_ctx = query_free, .ctx = query};
    const struct uva_consumer consumer = {
        .on_batch = on_batch, .on_done = on_done, .ctx = query};

    *query = (struct query){.sql = sql, .is_join = sql[0] == 'W'};
    sem_init(&query->opening, 0, 0);
    sem_init(&query->done, 0, 0);
    sem_init(&query->freed, 0, 0);
    query->stream = uva_stream_from_arrow_stream(runtime, NULL, &options);
    ck_assert_int_eq(uva_stream_for_each(query->stream, &consumer, NULL), 0);
}

START_TEST(a_query_is_answered_beside_cross_joins_that_ignore_a_cancel)
{
    const struct uva_workers_options few = {.blocking_threads = STUCK};
    struct uva_runtime_options options = {0};
    struct query joins[STUCK], one;
    struct uva_runtime *runtime;

    ck_assert_int_eq(uva_workers_new(&few, &options.workers, NULL), 0);
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, NULL), 0);
    uva_workers_release(options.workers);
    for (int i = 0; i < STUCK; i++) {
        start(&joins[i], CROSS_JOIN, runtime);
        take(&joins[i].opening);
    }
    for (int i = 0; i < STUCK; i++) {
        uva_stream_cancel(joins[i].stream, ECANCELED, "too slow");
        take(&joins[i].done);
        ck_assert_int_eq(joins[i].end, UVA_END_CANCELLED);
        uva_stream_release(joins[i].stream);
    }
    start(&one, "SELECT 1", runtime);
    take(&one.done);
    ck_assert_int_eq(joined, 0);
    ck_assert_int_eq(one.end, UVA_END_COMPLETE);
    ck_assert_int_eq(one.rows, 1);
    uva_stream_release(one.stream);
    take(&one.freed);
    for (int i = 0; i < STUCK; i++)
        take(&joins[i].freed);
    ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
}
END_TEST

int main(void)
{
    if (!adbc_query_is_possible())
        return SKIP;
    return suite_main(
        "stuck_sqlite", NULL, NULL,
        suite_tests("queries",
                    a_query_is_answered_beside_cross_joins_that_ignore_a_cancel,
                    NULL),
        NULL);
}
