/* SPDX-License-Identifier: Apache-2.0 */
/* The most frequent values of a column of a Parquet file. DuckDB reads it,
 * through its ADBC driver: opening, decoding and waiting for the disk happen on
 * a worker, and the rows arrive on the loop, which is never blocked.
 *
 * $DUCKDB is libduckdb.so; or the library of Python's package duckdb,
 * _duckdb*.so, with $LIBPYTHON, libpython3.*.so, which it needs.
 *
 *     $ cc read_parquet.c print.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc uvarrow-io libuv)
 *     $ ./a.out flights.parquet carrier "$DUCKDB" $LIBPYTHON
 *     value,rows
 *     UA,58665
 *     B6,54635
 *     EV,54173
 */
#include <dlfcn.h>
#include <stdio.h>
#include <uv.h>

#include "print.h"
#include "uvarrow/adbc.h"

/* A query of a database in memory, which DuckDB makes. */
static struct uva_stream *query_stream(struct uva_runtime *rt,
                                       const char *library, const char *sql)
{
    struct uva_adbc_pool *pool;
    struct uva_error error;
    struct uva_stream *s;

    if (uva_adbc_pool_new(rt,
                          &(struct uva_adbc_pool_options){.driver = library},
                          &pool, &error) != 0)
        return uva_stream_from_error(rt, &error);
    s = uva_stream_from_query(pool, &(struct uva_adbc_query){.sql = sql});
    uva_adbc_pool_release(pool); /* the stream keeps it */
    return s;
}

int main(int argc, char **argv)
{
    struct uva_runtime *rt;
    char sql[5000];

    if (argc < 4 || strchr(argv[1], '\'') != NULL || strchr(argv[2], '"'))
        return fprintf(stderr,
                       "usage: %s FILE COLUMN DUCKDB [WHAT-THAT-NEEDS]\n",
                       argv[0]),
               2;
    if (argc > 4 && dlopen(argv[4], RTLD_NOW | RTLD_GLOBAL) == NULL)
        fprintf(stderr, "%s\n", dlerror());
    (void)snprintf(sql, sizeof(sql),
                   "SELECT \"%.200s\" AS value, count(*) AS rows "
                   "FROM read_parquet('%.4096s') "
                   "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3",
                   argv[2], argv[1]);
    if (uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return 1;
    return print_to_end(rt, query_stream(rt, argv[3], sql), UVA_FORMAT_CSV);
}
