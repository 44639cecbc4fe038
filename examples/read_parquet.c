/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a Parquet file without blocking the loop. DuckDB reads it, through its
 * ADBC driver: opening, decoding and waiting for the disk happen on a worker,
 * and the rows arrive on the loop, where a timer keeps running.
 *
 * $DUCKDB is libduckdb.so; or the library of Python's package duckdb,
 * _duckdb*.so, with $LIBPYTHON, libpython3.*.so, which it needs.
 *
 *     $ cc read_parquet.c $(pkg-config --cflags --libs uvarrow-adbc libuv)
 *     $ ./a.out flights.parquet distance "$DUCKDB" $LIBPYTHON 2>beats
 *     336776 rows, distance is 350217607 in all
 *
 * Then `beats` has the number of ticks of the timer, of 1 ms, during the
 * query. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/adbc.h"
#include "uvarrow/uvarrow.h"

/* ---- the rows, on the loop ---------------------------------------------- */

struct app {
    uv_timer_t heart;
    const char *name; /* of the column to be summed */
    int64_t column;   /* number of the column; -1: missing, or not int64 */
    int64_t rows, sum;
    int64_t beats; /* ticks of the timer while the file was read */
    int code;      /* code of the outcome */
};

static void on_heart(uv_timer_t *timer)
{
    ((struct app *)timer->data)->beats++;
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    struct app *app = ctx;

    for (int64_t i = 0; i < info->schema->n_children; i++) {
        if (strcmp(info->schema->children[i]->name, app->name) == 0 &&
            strcmp(info->schema->children[i]->format, "l") == 0)
            app->column = i;
    }
    if (app->column < 0)
        fprintf(stderr, "there is no column %s of int64\n", app->name);
    return app->column < 0 ? ENOENT : 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *rows = &batch->data.array;
    struct app *app = ctx;
    const struct ArrowArray *column = rows->children[app->column];
    const int64_t at = rows->offset + column->offset;
    const uint8_t *valid = column->buffers[0];
    const int64_t *values = column->buffers[1];

    for (int64_t i = at; i < at + rows->length; i++) {
        if (valid == NULL || (valid[i / 8] >> (i % 8) & 1) != 0)
            app->sum += values[i];
    }
    app->rows += rows->length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct app *app = ctx;

    app->code = outcome->error.code;
    if (app->code != 0)
        fprintf(stderr, "%s\n", outcome->error.message);
    else
        printf("%" PRId64 " rows, %s is %" PRId64 " in all\n", app->rows,
               app->name, app->sum);
    uv_close((uv_handle_t *)&app->heart, NULL);
}

/* ---- the program -------------------------------------------------------- */

/* A pool of connections to a database in memory, which DuckDB makes. */
static int start(struct uva_runtime *rt, struct app *app, const char *library,
                 const char *sql)
{
    struct uva_adbc_pool *pool;
    struct uva_error error;
    struct uva_stream *s;
    int code = uva_adbc_pool_new(
        rt, &(struct uva_adbc_pool_options){.driver = library}, &pool, &error);

    if (code != 0) {
        fprintf(stderr, "%s\n", error.message);
        return code;
    }
    s = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    code = uva_stream_for_each(s,
                               &(struct uva_consumer){.on_schema = on_schema,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = app},
                               NULL);
    uva_stream_release(s);
    uva_adbc_pool_release(pool); /* the stream keeps it */
    return code;
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct app app = {.column = -1, .heart = {.data = &app}};
    struct uva_runtime *rt;
    char sql[4200];

    if (argc < 4 || strchr(argv[1], '\'') != NULL) {
        fprintf(stderr, "usage: %s FILE COLUMN DUCKDB [WHAT-THAT-NEEDS]\n",
                argv[0]);
        return 2;
    }
    if (argc > 4 && dlopen(argv[4], RTLD_NOW | RTLD_GLOBAL) == NULL)
        fprintf(stderr, "%s\n", dlerror());
    (void)snprintf(sql, sizeof(sql), "SELECT * FROM read_parquet('%.4096s')",
                   argv[1]);
    app.name = argv[2];

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0 ||
        start(rt, &app, argv[3], sql) != 0)
        return 1;
    uv_timer_init(loop, &app.heart);
    uv_timer_start(&app.heart, on_heart, 1, 1);
    uv_run(loop, UV_RUN_DEFAULT);

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    fprintf(stderr, "%" PRId64 " beats\n", app.beats);
    return uv_loop_close(loop) != 0 || app.code != 0;
}
