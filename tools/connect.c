/* SPDX-License-Identifier: Apache-2.0 */
/* A query of a command line as a stream: a pool of one connection, which the
 * stream keeps. */
#include "connect.h"

#include "sql.h"
#include "uvarrow/adbc.h"
#include "uvarrow/sources.h"

/* All settings of one place, the URI, and the end. */
struct pairs {
    struct uva_pair all[UVA__OPTIONS_SETTINGS + 2];
};

static struct pairs pairs_of(const struct uva__options *options,
                             enum uva__setting_place place)
{
    struct pairs pairs = {{{0}}};
    size_t count = 0;

    if (place == UVA__SETTING_DATABASE && options->uri != NULL)
        pairs.all[count++] =
            (struct uva_pair){.key = "uri", .value = options->uri};
    for (size_t i = 0; i < options->n_settings; i++)
        if (options->settings[i].place == place)
            pairs.all[count++] =
                (struct uva_pair){.key = options->settings[i].key,
                                  .value = options->settings[i].value};
    return pairs;
}

struct uva_stream *uva__connect(struct uva_runtime *runtime,
                                const struct uva__options *options)
{
    const struct pairs database = pairs_of(options, UVA__SETTING_DATABASE),
                       connection = pairs_of(options, UVA__SETTING_CONNECTION),
                       statement = pairs_of(options, UVA__SETTING_STATEMENT);
    struct uva_adbc_query query = {.sql = options->sql,
                                   .values = options->params,
                                   .options = statement.all,
                                   .batch_bytes = options->batch_bytes};
    struct uva_adbc_pool *pool;
    struct uva_stream *stream;
    struct uva_error error = {0};

    if (uva_adbc_pool_new(runtime,
                          &(struct uva_adbc_pool_options){
                              .driver = options->driver,
                              .entrypoint = options->entrypoint,
                              .options = database.all,
                              .connection_options = connection.all,
                              .connections = 1},
                          &pool, &error) != 0)
        return uva_stream_from_error(runtime, &error);
    if (uva__sql_is_update(options->sql))
        query.result = UVA_ADBC_CHANGES;
    stream = uva_stream_from_query(pool, &query);
    uva_adbc_pool_release(pool);
    return stream;
}
