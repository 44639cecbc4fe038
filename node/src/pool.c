/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a database, their sessions, and queries. */
#include <stdlib.h>

#include "addon.h"

struct pool {
    struct host *host;          /* counts */
    struct uva_adbc_pool *pool; /* counts; NULL once it is closed */
};

static void pool_drop(struct pool *pool)
{
    uva_adbc_pool_release(pool->pool);
    pool->pool = NULL;
}

static void pool_finalize(napi_env env, void *data, void *hint)
{
    struct pool *pool = data;

    (void)env;
    (void)hint;
    pool_drop(pool);
    host_release(pool->host);
    free(pool);
}

/* Takes `opened`. */
static napi_value pool_value(napi_env env, struct host *host,
                             struct uva_adbc_pool *opened)
{
    struct pool *pool = calloc(1, sizeof(*pool));

    if (pool == NULL) {
        uva_adbc_pool_release(opened);
        return value_no_memory(env);
    }
    pool->host = host_acquire(host);
    pool->pool = opened;
    return value_external(env, pool, pool_finalize);
}

static struct pool *pool_of(napi_env env, napi_value value)
{
    struct pool *pool = NULL;

    if (!value_object(env, value, &pool))
        return NULL;
    if (pool->pool != NULL)
        return pool;
    (void)value_fail(env, EPIPE, "the pool is closed", NULL);
    return NULL;
}

static bool pool_read_count(napi_env env, napi_value value, int32_t *out)
{
    int64_t count = 0;

    if (!value_integer(env, value, &count))
        return false;
    *out = count > INT32_MAX ? INT32_MAX : (int32_t)count;
    return true;
}

/* ---- open and close ------------------------------------------------------ */

static void options_free(struct uva_adbc_pool_options *options)
{
    free((void *)options->driver);
    free((void *)options->entrypoint);
    value_pairs_free((struct uva_pair *)options->options);
    value_pairs_free((struct uva_pair *)options->connection_options);
}

static bool options_read(napi_env env, const napi_value *args,
                         struct uva_adbc_pool_options *out)
{
    return value_text(env, args[0], (char **)&out->driver) &&
           value_text(env, args[1], (char **)&out->entrypoint) &&
           value_pairs(env, args[2], (struct uva_pair **)&out->options) &&
           value_pairs(env, args[3],
                       (struct uva_pair **)&out->connection_options) &&
           pool_read_count(env, args[4], &out->connections) &&
           value_integer(env, args[5], &out->wait_ms) &&
           pool_read_count(env, args[6], &out->idle_ms) &&
           pool_read_count(env, args[7], &out->lock_ms) &&
           value_boolean(env, args[8], &out->keeps_session);
}

/* openPool(driver, entrypoint, options, connectionOptions, connections, waitMs,
 * idleMs, lockMs, keepsSession) */
napi_value pool_open(napi_env env, napi_callback_info info)
{
    struct uva_adbc_pool_options options = {0};
    struct uva_adbc_pool *opened = NULL;
    struct host *host = host_of(env);
    struct uva_error error;
    napi_value args[9];
    bool is_read;
    int code = 0;

    if (host == NULL || !value_args(env, info, 9, args))
        return NULL;
    is_read = options_read(env, args, &options);
    if (is_read)
        code = uva_adbc_pool_new(host->runtime, &options, &opened, &error);
    options_free(&options);
    if (!is_read)
        return NULL;
    return code != 0 ? value_fail(env, code, error.message, NULL)
                     : pool_value(env, host, opened);
}

/* closePool(pool) */
napi_value pool_close(napi_env env, napi_callback_info info)
{
    struct pool *pool = NULL;
    napi_value arg = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &pool))
        return NULL;
    pool_drop(pool);
    return value_truth(env, true);
}

/* session(pool, autocommit, options) */
napi_value pool_session(napi_env env, napi_callback_info info)
{
    struct uva_adbc_session how = {0};
    struct uva_adbc_pool *session = NULL;
    struct uva_pair *options = NULL;
    struct uva_error error;
    struct pool *pool;
    napi_value args[3];
    int code;

    if (!value_args(env, info, 3, args) ||
        (pool = pool_of(env, args[0])) == NULL ||
        !value_boolean(env, args[1], &how.autocommit) ||
        !value_pairs(env, args[2], &options))
        return NULL;
    how.options = options;
    code = uva_adbc_pool_session(pool->pool, &how, &session, &error);
    value_pairs_free(options);
    return code != 0 ? value_fail(env, code, error.message, NULL)
                     : pool_value(env, pool->host, session);
}

/* ---- queries ------------------------------------------------------------- */

struct query {
    struct uva_adbc_query query;
    struct ArrowArrayStream parameters; /* owns */
    char *sql;                          /* owns; of an ingest the table */
    struct uva_value *values;           /* owns */
    struct uva_pair *options;           /* owns */
};

static void query_free(struct query *q)
{
    if (q->parameters.release != NULL) /* the query was not made */
        q->parameters.release(&q->parameters);
    params_free(q->values);
    value_pairs_free(q->options);
    free(q->sql);
}

/* Starts the stream that gives the rows of parameters. */
static bool query_read_rows(napi_env env, napi_value value, struct query *q)
{
    napi_valuetype type = napi_undefined;
    struct uva_error error;
    struct rows *rows;
    int code;

    if (!value_ok(env, napi_typeof(env, value, &type)))
        return false;
    if (type != napi_external)
        return true;
    rows = rows_of(env, value);
    if (rows == NULL)
        return false;
    code = uva_stream_to_arrow_stream(rows->stream, &rows->window,
                                      &q->parameters, &error);
    if (code != 0)
        (void)value_fail(env, code, error.message, NULL);
    q->query.parameters = &q->parameters;
    return code == 0;
}

/* args: sql or table, values, stream of parameters, options, batches, bytes,
 * busyMs */
static bool query_read(napi_env env, const napi_value *args, struct query *q)
{
    *q = (struct query){0};
    return value_text(env, args[0], &q->sql) &&
           params_read(env, args[1], &q->values) &&
           value_pairs(env, args[3], &q->options) &&
           source_window(env, args + 4, &q->query.window) &&
           value_integer(env, args[6], &q->query.busy_ms) &&
           query_read_rows(env, args[2], q);
}

static napi_value query_stream(napi_env env, const struct pool *pool,
                               struct query *q)
{
    q->query.values = q->values;
    q->query.options = q->options;
    return rows_new(env, uva_stream_from_query(pool->pool, &q->query),
                    &q->query.window);
}

/* query(pool, ..., whether only the number of changes is wanted, by name) */
napi_value pool_query(napi_env env, napi_callback_info info)
{
    napi_value args[10], out = NULL;
    bool changes = false;
    struct pool *pool;
    struct query q;

    if (!value_args(env, info, 10, args) ||
        (pool = pool_of(env, args[0])) == NULL)
        return NULL;
    if (query_read(env, args + 1, &q) &&
        value_boolean(env, args[8], &changes) &&
        value_boolean(env, args[9], &q.query.by_name)) {
        q.query.sql = q.sql;
        q.query.result = changes ? UVA_ADBC_CHANGES : UVA_ADBC_ROWS;
        out = query_stream(env, pool, &q);
    }
    query_free(&q);
    return out;
}

/* ingest(pool, ...) */
napi_value pool_ingest(napi_env env, napi_callback_info info)
{
    napi_value args[8], out = NULL;
    struct pool *pool;
    struct query q;

    if (!value_args(env, info, 8, args) ||
        (pool = pool_of(env, args[0])) == NULL)
        return NULL;
    if (query_read(env, args + 1, &q)) {
        q.query.ingest_table = q.sql;
        out = query_stream(env, pool, &q);
    }
    query_free(&q);
    return out;
}

/* endTransaction(session, whether to commit) */
napi_value pool_end(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    bool commits = false;
    struct pool *pool;

    if (!value_args(env, info, 2, args) ||
        (pool = pool_of(env, args[0])) == NULL ||
        !value_boolean(env, args[1], &commits))
        return NULL;
    return rows_new(env,
                    commits ? uva_stream_from_commit(pool->pool)
                            : uva_stream_from_rollback(pool->pool),
                    NULL);
}

static bool objects_read(napi_env env, const napi_value *args,
                         struct uva_adbc_objects *out)
{
    int32_t depth = 0;

    if (!pool_read_count(env, args[0], &depth) ||
        !value_text(env, args[1], (char **)&out->catalog) ||
        !value_text(env, args[2], (char **)&out->db_schema) ||
        !value_text(env, args[3], (char **)&out->table) ||
        !value_text(env, args[4], (char **)&out->column))
        return false;
    out->depth = depth;
    return true;
}

/* objects(pool, depth, catalog, schema, table, column) */
napi_value pool_objects(napi_env env, napi_callback_info info)
{
    struct uva_adbc_objects which = {0};
    napi_value args[6], out = NULL;
    struct pool *pool;

    if (!value_args(env, info, 6, args) ||
        (pool = pool_of(env, args[0])) == NULL)
        return NULL;
    if (objects_read(env, args + 1, &which))
        out = rows_new(env, uva_stream_from_objects(pool->pool, &which), NULL);
    free((void *)which.catalog);
    free((void *)which.db_schema);
    free((void *)which.table);
    free((void *)which.column);
    return out;
}

/* poolStats(pool) */
napi_value pool_stats(napi_env env, napi_callback_info info)
{
    struct uva_adbc_pool_stats stats;
    struct pool *pool = NULL;
    napi_value arg = NULL;

    if (!value_args(env, info, 1, &arg) || !value_object(env, arg, &pool))
        return NULL;
    uva_adbc_pool_get_stats(pool->pool, &stats);
    return stats_pool_value(env, &stats);
}
