/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a Parquet file without blocking the loop. DuckDB reads it, through its
 * ADBC driver: opening, decoding and waiting for the disk happen on a worker,
 * and the rows arrive on the loop, where a timer keeps running.
 *
 * $DUCKDB is libduckdb.so; or the library of Python's package duckdb,
 * _duckdb*.so, with $LIBPYTHON, libpython3.*.so, which it needs. $ADBC is the
 * folder of arrow-adbc/adbc.h, as in Python's package adbc_driver_manager.
 *
 *     $ cc read_parquet.c $(pkg-config --cflags --libs uvarrow libuv) -I"$ADBC"
 *     $ ./a.out flights.parquet distance "$DUCKDB" $LIBPYTHON 2>beats
 *     336776 rows, distance is 350217607 in all
 *
 * Then `beats` has the number of ticks of the timer, of 1 ms, during the
 * query. */
#include <arrow-adbc/adbc.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "uvarrow/uvarrow.h"

/* ---- DuckDB, as the hooks of a blocking source -------------------------- */

struct duck {
    const char *library, *sql;        /* borrows */
    struct AdbcDriver driver;         /* owns what duck_open() sets */
    struct AdbcDatabase database;     /* owns what duck_open() sets */
    struct AdbcConnection connection; /* owns what duck_open() sets */
    struct AdbcStatement statement;   /* owns what duck_open() sets */
    atomic_bool executing;            /* `statement` may be cancelled */
};

/* Converts an error of ADBC. */
static int duck_check(AdbcStatusCode status, struct AdbcError *said,
                      struct uva_error *error)
{
    int code = 0;

    if (status != ADBC_STATUS_OK)
        code = uva_error_set(
            error, status == ADBC_STATUS_CANCELLED ? ECANCELED : EIO, "%s",
            said->message != NULL ? said->message : "no reason given");
    if (said->release != NULL)
        said->release(said);
    return code;
}

static int duck_load(struct duck *d, struct uva_error *error)
{
    void *library = dlopen(d->library, RTLD_NOW | RTLD_LOCAL); /* kept */
    struct AdbcError said = {0};
    AdbcDriverInitFunc init;
    void *function;

    if (library == NULL)
        return uva_error_set(error, ENOENT, "%s", dlerror());
    function = dlsym(library, "duckdb_adbc_init");
    if (function == NULL)
        return uva_error_set(error, EINVAL, "%s is not DuckDB", d->library);
    memcpy(&init, &function, sizeof(init)); /* C has no cast for that */
    return duck_check(init(ADBC_VERSION_1_1_0, &d->driver, &said), &said,
                      error);
}

/* Slow: runs on a worker. The fields that duck_interrupt() uses are set before
 * `executing`. */
static int duck_open(void *ctx, struct ArrowArrayStream *out,
                     struct uva_error *error)
{
    struct AdbcError said = {0};
    struct duck *d = ctx;
    AdbcStatusCode status;
    int code = duck_load(d, error);

    if (code != 0)
        return code;
    status = d->driver.DatabaseNew(&d->database, &said);
    if (status == ADBC_STATUS_OK)
        status = d->driver.DatabaseInit(&d->database, &said);
    if (status == ADBC_STATUS_OK)
        status = d->driver.ConnectionNew(&d->connection, &said);
    if (status == ADBC_STATUS_OK)
        status = d->driver.ConnectionInit(&d->connection, &d->database, &said);
    if (status == ADBC_STATUS_OK)
        status = d->driver.StatementNew(&d->connection, &d->statement, &said);
    if (status == ADBC_STATUS_OK)
        status = d->driver.StatementSetSqlQuery(&d->statement, d->sql, &said);
    if (status == ADBC_STATUS_OK) {
        atomic_store(&d->executing, true);
        status =
            d->driver.StatementExecuteQuery(&d->statement, out, NULL, &said);
    }
    return duck_check(status, &said, error);
}

/* Called because of a cancel, while open or get_next runs. */
static void duck_interrupt(void *ctx)
{
    struct AdbcError said = {0};
    struct duck *d = ctx;

    if (atomic_load(&d->executing))
        (void)d->driver.StatementCancel(&d->statement, &said);
    if (said.release != NULL)
        said.release(&said);
}

/* The last call, after the rows were released. */
static void duck_close(void *ctx)
{
    struct AdbcError said = {0};
    struct duck *d = ctx;

    if (d->statement.private_data != NULL)
        (void)d->driver.StatementRelease(&d->statement, &said);
    if (d->connection.private_data != NULL)
        (void)d->driver.ConnectionRelease(&d->connection, &said);
    if (d->database.private_data != NULL)
        (void)d->driver.DatabaseRelease(&d->database, &said);
    if (d->driver.release != NULL)
        (void)d->driver.release(&d->driver, &said);
    if (said.release != NULL)
        said.release(&said);
}

/* ---- the rows, on the loop ---------------------------------------------- */

struct app {
    struct duck duck;
    uv_timer_t heart;
    const char *name; /* of the column to be summed */
    int64_t column;   /* number of the column; -1: none, or not int64 */
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

static int start(struct uva_runtime *rt, struct app *app)
{
    struct uva_stream *s = uva_stream_from_blocking_cpu(
        rt, NULL,
        &(struct uva_blocking_source){.open = duck_open,
                                      .interrupt = duck_interrupt,
                                      .free_ctx = duck_close,
                                      .ctx = &app->duck});
    const int code =
        uva_stream_for_each(s,
                            &(struct uva_consumer){.on_schema = on_schema,
                                                   .on_batch = on_batch,
                                                   .on_done = on_done,
                                                   .ctx = app},
                            NULL);

    uva_stream_release(s);
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
    app.duck.sql = sql;
    app.duck.library = argv[3];

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0 || start(rt, &app) != 0)
        return 1;
    uv_timer_init(loop, &app.heart);
    uv_timer_start(&app.heart, on_heart, 1, 1);
    uv_run(loop, UV_RUN_DEFAULT);

    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    fprintf(stderr, "%" PRId64 " beats\n", app.beats);
    return uv_loop_close(loop) != 0 || app.code != 0;
}
