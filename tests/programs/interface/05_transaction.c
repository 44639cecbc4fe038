/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters and a transaction: an amount moves from one account to another,
 * and is committed only if both updates have changed a row.
 *
 *     $ ./05_transaction sqlite accounts.db
 *     1 to 2: committed
 *     1 to 9: there is no account 9
 *     1: 90
 *     2: 10
 */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "data.h"
#include "uvarrow/adbc.h"

static struct uva_runtime *runtime;
static struct uva_adbc_pool *pool;

struct transfer {
    struct uva_adbc_pool *session; /* counts, until the end */
    int64_t accounts[2];
    int step;
};

static void transfer_step(struct transfer *t);
static void run_next(void);

/* Runs a query, or a commit, to its end. */
static void run(struct uva_stream *s, uva_collected_fn *fn, void *ctx)
{
    struct uva_error error;

    if (uva_stream_collect(s, 0, fn, ctx, &error) != 0)
        fprintf(stderr, "%s\n", error.message);
    uva_stream_release(s);
}

static void transfer_end(struct transfer *t, const char *text)
{
    printf("%d to %d: %s\n", (int)t->accounts[0], (int)t->accounts[1], text);
    uva_adbc_pool_release(t->session); /* rolls back without a commit */
    free(t);
    run_next();
}

static void on_step(void *ctx, const struct uva_stream_info *info,
                    struct ArrowDeviceArray *batches, size_t count,
                    const struct uva_outcome *outcome)
{
    struct transfer *t = ctx;
    char text[60];

    (void)batches;
    (void)count;
    if (outcome->error.code != 0) {
        transfer_end(t, outcome->error.message);
    } else if (t->step == 3) {
        transfer_end(t, "committed");
    } else if (uva_adbc_rows_changed(info) == 0) {
        (void)snprintf(text, sizeof(text), "there is no account %d",
                       (int)t->accounts[t->step - 1]);
        transfer_end(t, text);
    } else {
        transfer_step(t);
    }
}

static void transfer_step(struct transfer *t)
{
    const int step = t->step++;
    const struct uva_value values[] = {
        {.type = UVA_VALUE_INT, .integer = step == 0 ? -10 : 10},
        {.type = UVA_VALUE_INT, .integer = t->accounts[step % 2]},
        {0}};
    const struct uva_adbc_query update = {
        .sql = "UPDATE accounts SET amount = amount + ? WHERE id = ?",
        .result = UVA_ADBC_CHANGES,
        .values = values};

    run(step < 2 ? uva_stream_from_query(t->session, &update)
                 : uva_stream_from_commit(t->session),
        on_step, t);
}

static void transfer_begin(int64_t from, int64_t to)
{
    struct transfer *t = calloc(1, sizeof(*t));
    struct uva_error error;

    if (t == NULL ||
        uva_adbc_pool_session(pool, NULL, &t->session, &error) != 0) {
        free(t);
        return;
    }
    t->accounts[0] = from;
    t->accounts[1] = to;
    transfer_step(t);
}

/* ---- the program: one thing after the other -------------------------------
 */

static void on_ready(void *ctx, const struct uva_stream_info *info,
                     struct ArrowDeviceArray *batches, size_t count,
                     const struct uva_outcome *outcome)
{
    (void)ctx;
    (void)info;
    if (outcome->error.code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    for (size_t i = 0; i < count; i++)
        for (int64_t row = 0; row < batches[i].array.length; row++)
            printf("%" PRId64 ": %" PRId64 "\n",
                   ((const int64_t *)batches[i]
                        .array.children[0]
                        ->buffers[1])[row],
                   ((const int64_t *)batches[i]
                        .array.children[1]
                        ->buffers[1])[row]);
    run_next();
}

static void run_next(void)
{
    static const char *const SQL[] = {
        "DROP TABLE IF EXISTS accounts",
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, amount INTEGER)",
        "INSERT INTO accounts VALUES (1, 100), (2, 0)"};
    static int step;
    const int now = step++;
    struct uva_adbc_query query = {.result = UVA_ADBC_CHANGES};

    if (now == 3)
        transfer_begin(1, 2);
    else if (now == 4)
        transfer_begin(1, 9);
    else if (now < 6) {
        query.sql = now < 3 ? SQL[now] : "SELECT id, amount FROM accounts";
        query.result = now < 3 ? UVA_ADBC_CHANGES : UVA_ADBC_ROWS;
        run(uva_stream_from_query(pool, &query), on_ready, NULL);
    } else {
        uva_adbc_pool_release(pool);
        (void)uva_runtime_close(runtime, 0, NULL, NULL);
    }
}

int main(int argc, char **argv)
{
    const struct uva_pair options[] = {
        {.key = "uri", .value = argc == 3 ? argv[2] : ""}, {0}};
    struct uva_error error;

    if (argc != 3)
        return fprintf(stderr, "usage: %s DRIVER URI\n", argv[0]), 2;
    if (uva_runtime_open(uv_default_loop(), NULL, &runtime, &error) != 0 ||
        uva_adbc_pool_new(runtime,
                          &(struct uva_adbc_pool_options){.driver = argv[1],
                                                          .options = options},
                          &pool, &error) != 0)
        return fprintf(stderr, "%s\n", error.message), 1;
    run_next();
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
