/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of several databases as one table, CSV on standard output. All are
 * read at once, and none of them may keep the others waiting for ever. The
 * types of the first one count: the others are cast to them.
 *
 *     $ cc merge_databases.c database.c print.c \
 *          $(pkg-config --cflags --libs uvarrow-adbc uvarrow-io libuv)
 *     $ ./a.out "$SQLITE" :memory: "SELECT 1.5 AS price, 'apple' AS name" \
 *          :memory: "SELECT 'pear' AS name, 2 AS price" | sort
 *     1.5,apple
 *     2.0,pear
 *     price,name
 */
#include <stdio.h>
#include <uv.h>

#include "database.h"
#include "print.h"

enum { MOST = 16 };

int main(int argc, char **argv)
{
    const struct uva_timeout limits = {.first_ms = 30000, .between_ms = 10000};
    const int count = (argc - 2) / 2;
    struct uva_stream *streams[MOST];
    struct uva_runtime *rt;

    if (count < 1 || count > MOST || argc != 2 + 2 * count ||
        uva_runtime_open(uv_default_loop(), NULL, &rt, NULL) != 0)
        return fprintf(stderr, "usage: %s DRIVER URI SQL ...\n", argv[0]), 2;
    for (int i = 0; i < count; i++) {
        const char *uri = argv[2 + 2 * i], *sql = argv[3 + 2 * i];

        streams[i] = database_query(rt, argv[1], uri,
                                    &(struct uva_adbc_query){.sql = sql});
        uva_stream_set_name(streams[i], uri); /* in the text of errors */
        uva_stream_timeout(streams[i], &limits);
    }
    uva_stream_merge(streams[0], &streams[1], (size_t)count - 1,
                     &(struct uva_merge){.cast = true});
    return print_to_end(rt, streams[0], UVA_FORMAT_CSV);
}
