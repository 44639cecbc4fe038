/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a stream to code that reads and blocks: an old program that takes an
 * ArrowArrayStream. The rows are read ahead, on a worker, while it works. With
 * DuckDB and its read_parquet() they are those of a Parquet file.
 *
 *     $ cc blocking_reader.c database.c tell.c \
 *         $(pkg-config --cflags --libs uvarrow-adbc)
 *     $ ./a.out $SQLITE :memory: "SELECT 1 AS a UNION SELECT 2"
 *     2 rows of 1 columns
 */
#include <inttypes.h>
#include <stdio.h>

#include "database.h"
#include "tell.h"

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

int main(int argc, char **argv)
{
    struct ArrowArrayStream rows;
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;
    int code;

    if (argc != 4)
        return fprintf(stderr, "usage: %s DRIVER URI SQL\n", argv[0]), 2;
    if (uva_runtime_open(NULL, NULL, &rt, &error) != 0)
        return tell(&error);
    s = database_query(rt, argv[1], argv[2],
                       &(struct uva_adbc_query){.sql = argv[3]});
    code = uva_stream_to_arrow_stream(s, NULL, &rows, &error);
    uva_stream_release(s); /* `rows` keeps it */
    code = code != 0 ? tell(&error) : count(&rows);
    uva_runtime_join(rt, 0);
    return code != 0;
}
