/* SPDX-License-Identifier: Apache-2.0 */
/* The stream keeps the pool, which is not used again. A program with many
 * queries keeps it, too: see row_server.c. */
#include "database.h"

struct uva_stream *database_query(struct uva_runtime *rt, const char *driver,
                                  const char *uri,
                                  const struct uva_adbc_query *query)
{
    const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};
    struct uva_adbc_pool *pool;
    struct uva_stream *s;
    struct uva_error error;

    if (uva_adbc_pool_new(rt,
                          &(struct uva_adbc_pool_options){.driver = driver,
                                                          .options = options,
                                                          .connections = 1},
                          &pool, &error) != 0)
        return uva_stream_from_error(rt, &error);
    s = uva_stream_from_query(pool, query);
    uva_adbc_pool_release(pool);
    return s;
}
