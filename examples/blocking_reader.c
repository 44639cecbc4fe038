/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a stream to code that reads and blocks: an old program that takes an
 * ArrowArrayStream, here of a Parquet file, which DuckDB reads ahead on a
 * worker while the program works.
 *
 *     $ cc blocking_reader.c $(pkg-config --cflags --libs uvarrow-adbc)
 *     $ LD_PRELOAD=$LIBPYTHON ./a.out flights.parquet $DUCKDB
 *     336776 rows of 19 columns
 *
 * DuckDB's library is loaded by its name. The one of its Python package needs
 * the library of Python. */
#include <inttypes.h>
#include <stdio.h>

#include "uvarrow/adbc.h"

/* The old program: it knows no runtime. Takes `rows`. */
static int count(struct ArrowArrayStream *rows)
{
    struct ArrowSchema schema;
    struct ArrowArray batch = {0};
    int64_t total = 0, columns;
    int code = rows->get_schema(rows, &schema);

    if (code == 0) {
        columns = schema.n_children;
        schema.release(&schema);
        while ((code = rows->get_next(rows, &batch)) == 0 &&
               batch.release != NULL) {
            total += batch.length;
            batch.release(&batch);
        }
    }
    if (code == 0)
        printf("%" PRId64 " rows of %" PRId64 " columns\n", total, columns);
    else
        fprintf(stderr, "%s\n", rows->get_last_error(rows));
    rows->release(rows);
    return code;
}

/* Gives the rows of a query. */
static int query(struct uva_runtime *rt, const char *driver, const char *sql,
                 struct ArrowArrayStream *out, struct uva_error *error)
{
    const struct uva_adbc_pool_options options = {.driver = driver};
    struct uva_adbc_pool *pool;
    struct uva_stream *s;
    int code = uva_adbc_pool_new(rt, &options, &pool, error);

    if (code != 0)
        return code;
    s = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    uva_adbc_pool_release(pool); /* the stream keeps it */
    code = uva_stream_to_arrow_stream(s, NULL, out, error);
    uva_stream_release(s); /* `out` keeps it */
    return code;
}

int main(int argc, char **argv)
{
    struct ArrowArrayStream rows;
    struct uva_runtime *rt;
    struct uva_error error;
    char sql[4200];
    int code;

    if (argc != 3 || uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 2;
    (void)snprintf(sql, sizeof(sql), "SELECT * FROM read_parquet('%.4096s')",
                   argv[1]);
    code = query(rt, argv[2], sql, &rows, &error);
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    else
        code = count(&rows);
    uva_runtime_join(rt, 0);
    return code != 0;
}
