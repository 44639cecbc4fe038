/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a table, without a query of it.
 *
 *     $ cc table_schema.c database.c run.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc)
 *     $ ./a.out "$SQLITE" :memory: pragma_collation_list
 *     seq: type l
 *     name: type u
 */
#include <stdio.h>

#include "database.h"
#include "run.h"

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    for (int64_t i = 0; i < info->schema->n_children; i++) {
        const struct ArrowSchema *column = info->schema->children[i];

        printf("%s: type %s%s\n", column->name, column->format,
               column->flags & ARROW_FLAG_NULLABLE ? "" : ", never null");
    }
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx, (void)batch;
    return 0; /* never called: the stream has no rows */
}

int main(int argc, char **argv)
{
    const struct uva_consumer consumer = {.on_schema = on_schema,
                                          .on_batch = on_batch};
    struct uva_adbc_pool *pool;
    struct uva_runtime *rt;
    struct uva_stream *s;

    if (argc != 4 || uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI TABLE\n", argv[0]), 2;
    pool = database_open(rt, argv[1], argv[2]);
    if (pool == NULL)
        return 1;
    s = uva_stream_from_table_schema(pool, NULL, NULL, argv[3]);
    uva_adbc_pool_release(pool); /* the stream keeps it */
    return run_to_end(rt, s, &consumer);
}
