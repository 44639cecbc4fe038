/* SPDX-License-Identifier: Apache-2.0 */
/* A pool, and a query with a pool of its own, which the stream keeps. */
#include "database.h"

#include <stdio.h>

static int pool_open(struct uva_runtime *rt, const char *driver,
                     const char *uri, struct uva_adbc_pool **out,
                     struct uva_error *error)
{
    const struct uva_pair options[] = {{.key = "uri", .value = uri}, {0}};

    return uva_adbc_pool_new(
        rt,
        &(struct uva_adbc_pool_options){.driver = driver, .options = options},
        out, error);
}

struct uva_adbc_pool *database_open(struct uva_runtime *rt, const char *driver,
                                    const char *uri)
{
    struct uva_adbc_pool *pool;
    struct uva_error error;

    if (pool_open(rt, driver, uri, &pool, &error) == 0)
        return pool;
    fprintf(stderr, "%s\n", error.message);
    return NULL;
}

struct uva_stream *database_query(struct uva_runtime *rt, const char *driver,
                                  const char *uri,
                                  const struct uva_adbc_query *query)
{
    struct uva_adbc_pool *pool;
    struct uva_stream *s;
    struct uva_error error;

    if (pool_open(rt, driver, uri, &pool, &error) != 0)
        return uva_stream_from_error(rt, &error);
    s = uva_stream_from_query(pool, query);
    uva_adbc_pool_release(pool);
    return s;
}
