/* SPDX-License-Identifier: Apache-2.0 */
/* A query of a command line as a stream: a pool of one connection, or of one
 * for each partition that is read at one time, which the stream keeps. */
#include "connect.h"

#include "script.h"
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

static int session_open(struct uva_adbc_pool *pool, struct uva_adbc_pool **out,
                        struct uva_error *error)
{
    const struct uva_adbc_session options = {.autocommit = true};
    const int code = uva_adbc_pool_session(pool, &options, out, error);

    uva_adbc_pool_release(pool);
    return code;
}

int uva__connect_open(struct uva_runtime *runtime,
                      const struct uva__options *options, bool is_session,
                      struct uva_adbc_pool **out, struct uva_error *error)
{
    const struct pairs database = pairs_of(options, UVA__SETTING_DATABASE),
                       connection = pairs_of(options, UVA__SETTING_CONNECTION);
    struct uva_adbc_pool *pool;
    const int code = uva_adbc_pool_new(
        runtime,
        &(struct uva_adbc_pool_options){
            .driver = options->driver,
            .entrypoint = options->entrypoint,
            .options = database.all,
            .connection_options = connection.all,
            .connections = options->partitions > 0 ? options->partitions : 1},
        &pool, error);

    if (code != 0)
        return code;
    if (is_session)
        return session_open(pool, out, error);
    *out = pool;
    return 0;
}

struct uva_stream *uva__connect_ask(struct uva_adbc_pool *pool,
                                    const struct uva__options *options,
                                    const char *sql, bool for_changes)
{
    struct pairs statement = pairs_of(options, UVA__SETTING_STATEMENT);
    const struct uva_pair *more = uva__script_explains_with(options);
    struct uva_adbc_query query = {.sql = sql,
                                   .values = options->params,
                                   .options = statement.all,
                                   .batch_bytes = options->batch_bytes};
    size_t count = 0;

    while (statement.all[count].key != NULL)
        count++;
    if (more != NULL)
        statement.all[count] = *more; /* there is room for the URI */
    if (options->partitions > 0)
        query.result = UVA_ADBC_PARTITIONS;
    else if (for_changes || uva__sql_is_update(sql))
        query.result = UVA_ADBC_CHANGES;
    return uva_stream_from_query(pool, &query);
}

struct uva_stream *uva__connect(struct uva_runtime *runtime,
                                const struct uva__options *options)
{
    struct uva_adbc_pool *pool;
    struct uva_stream *stream;
    struct uva_error error = {0};

    if (uva__connect_open(runtime, options, false, &pool, &error) != 0)
        return uva_stream_from_error(runtime, &error);
    stream = uva__connect_ask(pool, options, options->sql, false);
    uva_adbc_pool_release(pool);
    return stream;
}
