/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of a pool.
 *
 * Happy path:  (a permit) -> a connection -> a statement with options, query
 *              and parameters -> (a transaction) -> executed -> the rows ->
 *              (committed) -> the statement is released -> the connection is
 *              put back -> the permit is free.
 *
 * Failures: each step; then, and after a cancel, the connection is closed,
 * which undoes a transaction. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adbc/bound.h"
#include "adbc/fixed.h"
#include "adbc/pairs.h"
#include "adbc/pooled.h"
#include "adbc/values.h"
#include "uvarrow/adbc.h"

enum { ROW_BYTES = 256 }; /* about so many, where a driver counts rows */

struct query {
    struct uva__pooled pooled;          /* first */
    struct ArrowArrayStream parameters; /* owns, until they are bound */
    char **options;                     /* owns: of the statement */
    int64_t batch_bytes;                /* that a batch should have */
    char *sql;                          /* owns; NULL: ingest */
    char *table;                        /* owns: of ingest, or NULL */
    struct uva__bound *bound;           /* counts: the parameters; or NULL */
    bool by_name;                       /* so are the parameters bound */
    bool is_read;     /* rows of the parameters may be read already */
    bool has_no_rows; /* there are parameters, but no row: it is not executed */
    bool is_many;     /* its writes are one transaction, if the driver can */
    bool is_begun;    /* that has begun */
};

static AdbcStatusCode statement_set(void *object, const char *key,
                                    const char *value, struct AdbcError *error)
{
    struct AdbcStatement *statement = object;
    const struct AdbcDriver *driver = statement->private_driver;

    return driver->StatementSetOption != NULL
               ? driver->StatementSetOption(statement, key, value, error)
               : ADBC_STATUS_NOT_IMPLEMENTED;
}

/* ---- steps, on a worker ------------------------------------------------- */

/* Whether the driver executes it in one round trip, or in one transaction, so
 * that its session may share a backend with other ones. */
static bool query_may_share(const struct query *q)
{
    char **use_copy = uva__pairs_find(q->options, "adbc.postgresql.use_copy");

    return q->sql == NULL ||
           (q->parameters.release == NULL && use_copy != NULL &&
            strcmp(*use_copy, ADBC_OPTION_VALUE_DISABLED) == 0);
}

static int query_connect(struct query *q)
{
    return uva__pooled_connect(&q->pooled, query_may_share(q));
}

static int query_statement(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcDriver *driver = q->pooled.connection->adbc.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    struct AdbcStatement statement = {.private_driver = driver};
    const int code = uva__adbc_failure_take(
        &e->failure, "the driver gives no statement",
        driver->StatementNew(&q->pooled.connection->adbc, &statement, &error),
        &error, driver);

    if (code != 0)
        return code;
    e->statement = statement;
    e->statement.private_driver = driver;
    atomic_store(&e->may_cancel, UVA__MAY_CANCEL);
    return 0;
}

static int query_options(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;

    return uva__pairs_set(q->options, statement_set, &e->statement,
                          e->statement.private_driver, "statement",
                          &e->failure);
}

/* Drivers that count rows do so by an int, from 1 on. */
static long long batch_rows(int64_t bytes)
{
    const int64_t rows = (bytes - 1) / ROW_BYTES + 1;

    return rows < INT32_MAX ? rows : INT32_MAX;
}

/* Sets the size of batches, which an older driver may not know. */
static int query_batches(struct query *q)
{
    const struct uva__known *known = q->pooled.connection->known;
    const char *option = known->batch_option;
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcError error = uva__adbc_error(e->statement.private_driver);
    char number[24];

    if (option == NULL || q->sql == NULL ||
        uva__pairs_find(q->options, option) != NULL)
        return 0;
    (void)snprintf(number, sizeof(number), "%lld",
                   uva__known_has(known, UVA__KNOWN_COUNTS_ROWS)
                       ? batch_rows(q->batch_bytes)
                       : (long long)q->batch_bytes);
    (void)statement_set(&e->statement, option, number, &error);
    uva__adbc_error_drop(&error);
    return 0;
}

static int query_ingest(struct query *q)
{
    char *pairs[] = {(char *)(uintptr_t)ADBC_INGEST_OPTION_TARGET_TABLE,
                     q->table, NULL};
    struct uva__execution *e = &q->pooled.execution;

    e->is_update = true;
    return uva__pairs_set(pairs, statement_set, &e->statement,
                          e->statement.private_driver, "statement",
                          &e->failure);
}

/* A driver that executes the first statement of a text alone, SQLite's, is
 * found before. */
static int query_is_one(struct query *q)
{
    const struct uva__connection *c = q->pooled.connection;
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcError error = ADBC_ERROR_INIT;

    if (!uva__known_has(c->known, UVA__KNOWN_EXECUTES_FIRST) ||
        *uva__sql_next(uva__sql_skip(q->sql), &uva__sql_sqlite) == '\0')
        return 0;
    error.message = (char *)(uintptr_t) "the driver executes the first alone";
    return uva__adbc_failure_copy(
        &e->failure, "the text has several statements",
        ADBC_STATUS_INVALID_ARGUMENT, &error, e->statement.private_driver);
}

static int query_text(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);

    int code;

    if (q->sql == NULL)
        return query_ingest(q);
    code = query_is_one(q);
    if (code != 0)
        return code;
    return uva__adbc_failure_take(
        &e->failure, "the driver refuses the query",
        driver->StatementSetSqlQuery != NULL
            ? driver->StatementSetSqlQuery(&e->statement, q->sql, &error)
            : ADBC_STATUS_NOT_IMPLEMENTED,
        &error, driver);
}

/* Some drivers bind parameters to prepared statements only, others prepare
 * no statement. */
static int query_prepare_parameters(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    AdbcStatusCode status;

    if (q->sql == NULL || driver->StatementPrepare == NULL)
        return 0;
    status = driver->StatementPrepare(&e->statement, &error);
    if (status == ADBC_STATUS_NOT_IMPLEMENTED)
        status = ADBC_STATUS_OK;
    return uva__adbc_failure_take(&e->failure, "the driver refuses the query",
                                  status, &error, driver);
}

/* The driver's names of the parameters, if it gives any. */
static void query_names(struct query *q, struct ArrowSchema *out)
{
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);

    out->release = NULL;
    if (driver->StatementGetParameterSchema == NULL)
        return;
    if (driver->StatementGetParameterSchema(&e->statement, out, &error) !=
        ADBC_STATUS_OK)
        out->release = NULL;
    uva__adbc_error_drop(&error);
}

static int query_by_name(struct query *q)
{
    char *pairs[] = {(char *)(uintptr_t) "adbc.statement.bind_by_name",
                     (char *)(uintptr_t)ADBC_OPTION_VALUE_ENABLED, NULL};
    struct uva__execution *e = &q->pooled.execution;
    struct ArrowSchema names;
    int code =
        uva__pairs_set(pairs, statement_set, &e->statement,
                       e->statement.private_driver, "statement", &e->failure);

    if (code != 0)
        return uva__adbc_failure_set(
            &e->failure, ENOTSUP,
            "by_name: the driver cannot bind parameters by their names, only "
            "in the order of the query");
    query_names(q, &names);
    code = uva__bound_name(q->bound, &names, &e->failure);
    if (names.release != NULL)
        names.release(&names);
    return code;
}

/* Without rows it is not executed; one row needs no transaction, which takes
 * more trips to a server. */
static int query_count(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;
    enum uva__bound_rows rows = UVA__BOUND_NONE;
    int code = 0;

    if (q->by_name)
        code = query_by_name(q);
    if (code == 0)
        code = uva__bound_count(&q->parameters, &rows, &e->failure);
    q->has_no_rows = rows == UVA__BOUND_NONE;
    q->is_many = rows == UVA__BOUND_MANY;
    return code;
}

/* The rows of an ingest are the driver's: it may make a table without rows. */
static int query_rows(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;
    int code;

    q->is_read = true;
    code = uva__bound_open(q->bound, &e->failure);
    q->is_many = q->sql == NULL;
    if (code == 0 && q->sql != NULL)
        code = query_count(q);
    if (code != 0 || !q->is_many)
        return code;
    return uva__bound_detach(
        q->bound, uva__handle(q->pooled.pool)->runtime(q->pooled.pool),
        &q->parameters, &e->failure);
}

static int query_bind(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    int code;

    if (q->parameters.release == NULL)
        return 0;
    code = query_prepare_parameters(q);
    if (code == 0)
        code = query_rows(q);
    if (code != 0 || q->has_no_rows)
        return code;
    return uva__adbc_failure_take(
        &e->failure, "the driver refuses the parameters",
        driver->StatementBindStream != NULL
            ? driver->StatementBindStream(&e->statement, &q->parameters, &error)
            : ADBC_STATUS_NOT_IMPLEMENTED,
        &error, driver);
}

static int query_prepare(struct uva__execution *e)
{
    static int (*const steps[])(struct query *) = {
        query_connect, query_statement, query_options,
        query_batches, query_text,      query_bind};
    struct query *q = (struct query *)e;
    int code = 0;

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && code == 0; i++)
        code = atomic_load(&e->is_cancelled)
                   ? uva__adbc_failure_set(&e->failure, ECANCELED, "cancelled")
                   : steps[i](q);
    return code;
}

/* ---- a transaction ------------------------------------------------------ */

static AdbcStatusCode autocommit_set(struct query *q, const char *value,
                                     struct AdbcError *error)
{
    struct AdbcConnection *connection = &q->pooled.connection->adbc;
    const struct AdbcDriver *driver = connection->private_driver;

    return driver->ConnectionSetOption != NULL &&
                   driver->ConnectionCommit != NULL
               ? driver->ConnectionSetOption(connection,
                                             ADBC_CONNECTION_OPTION_AUTOCOMMIT,
                                             value, error)
               : ADBC_STATUS_NOT_IMPLEMENTED;
}

/* Read-only queries are in a transaction, which the pool rolls back. Where
 * there are no transactions each row may stay. Otherwise a failure or a cancel
 * is undone: the connection is closed, or, in a session, which goes on after a
 * failure, it is rolled back. */
static int query_begin(struct query *q)
{
    struct uva__execution *e = &q->pooled.execution;
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    AdbcStatusCode status;

    if (!q->is_many ||
        !uva__handle(q->pooled.pool)->autocommits(q->pooled.pool) ||
        uva__handle(q->pooled.pool)->is_read_only(q->pooled.pool))
        return 0;
    status = autocommit_set(q, ADBC_OPTION_VALUE_DISABLED, &error);
    q->is_begun = status == ADBC_STATUS_OK;
    if (status == ADBC_STATUS_NOT_IMPLEMENTED)
        status = ADBC_STATUS_OK;
    return uva__adbc_failure_take(&e->failure, "cannot begin a transaction",
                                  status, &error, driver);
}

/* Ends a transaction whose last step had `status` and `error`: if this fails,
 * the connection is not fit for other queries. */
static void query_end(struct query *q, AdbcStatusCode status,
                      struct AdbcError *error)
{
    struct AdbcDriver *driver = q->pooled.connection->adbc.private_driver;

    q->is_begun = false;
    uva__adbc_error_drop(error);
    *error = uva__adbc_error(driver);
    if (status == ADBC_STATUS_OK)
        status = autocommit_set(q, ADBC_OPTION_VALUE_ENABLED, error);
    q->pooled.is_spoiled = status != ADBC_STATUS_OK;
    uva__adbc_error_drop(error);
}

static int query_commit(struct uva__execution *e)
{
    struct query *q = (struct query *)e;
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    int code;

    if (!q->is_begun)
        return 0;
    code = uva__adbc_failure_take(
        &e->failure, "cannot commit",
        driver->ConnectionCommit(e->connection, &error), &error, driver);
    if (code == 0)
        query_end(q, ADBC_STATUS_OK, &error);
    return code;
}

/* A cancelled query is closed in a session, too. */
static void query_undo(struct query *q)
{
    struct AdbcConnection *connection = q->pooled.execution.connection;
    struct AdbcDriver *driver;
    struct AdbcError error;

    if (!q->is_begun || !q->pooled.execution.has_failed ||
        atomic_load(&q->pooled.execution.is_cancelled) ||
        !uva__handle(q->pooled.pool)->is_session)
        return;
    driver = connection->private_driver;
    error = uva__adbc_error(driver);
    query_end(q,
              driver->ConnectionRollback != NULL
                  ? driver->ConnectionRollback(connection, &error)
                  : ADBC_STATUS_NOT_IMPLEMENTED,
              &error);
}

/* ---- executing ---------------------------------------------------------- */

static int query_run(struct uva__execution *e, int64_t *rows)
{
    struct query *q = (struct query *)e;
    int code;

    if (q->has_no_rows) {
        *rows = 0;
        return 0;
    }
    code = query_begin(q);
    return code == 0 ? uva__statement_run(e, rows) : code;
}

static int query_check(struct uva__execution *e)
{
    const struct query *q = (const struct query *)e;

    return q->bound != NULL ? uva__bound_check(q->bound, &e->failure) : 0;
}

static void query_interrupt(struct uva__execution *e)
{
    const struct query *q = (const struct query *)e;

    uva__pooled_interrupt(e);
    if (q->bound != NULL)
        uva__bound_cancel(q->bound);
}

static bool query_retry(struct uva__execution *e)
{
    struct query *q = (struct query *)e;

    return !q->is_read && uva__pooled_retry(&q->pooled, false);
}

/* ---- partitions --------------------------------------------------------- */

static bool partitions_are_whole(const struct AdbcPartitions *partitions)
{
    if (partitions->num_partitions == 0)
        return true;
    if (partitions->partitions == NULL || partitions->partition_lengths == NULL)
        return false;
    for (size_t i = 0; i < partitions->num_partitions; i++)
        if (partitions->partitions[i] == NULL &&
            partitions->partition_lengths[i] > 0)
            return false;
    return true;
}

/* Gives their descriptors as rows. */
static int partitions_give(struct uva__execution *e,
                           const struct AdbcPartitions *partitions)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    int code;

    if (!partitions_are_whole(partitions))
        return uva__adbc_failure_set(&e->failure, EPROTO,
                                     "the driver gives partitions without "
                                     "descriptors");
    code = uva__fixed_binary("partition", partitions->partitions,
                             partitions->partition_lengths,
                             partitions->num_partitions, &schema, &array);
    if (code == 0)
        code = uva__fixed_new(&schema, &array, &e->result);
    if (code != 0)
        (void)uva__adbc_failure_set(&e->failure, code,
                                    "no memory for partitions");
    return code;
}

static int partitions_run(struct uva__execution *e, int64_t *rows)
{
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    struct AdbcPartitions partitions = {0};
    struct ArrowSchema schema = {0};
    int code;

    if (((struct query *)e)->has_no_rows)
        return partitions_give(e, &partitions);
    code = uva__adbc_failure_take(
        &e->failure, "the query cannot be partitioned",
        driver->StatementExecutePartitions != NULL
            ? driver->StatementExecutePartitions(&e->statement, &schema,
                                                 &partitions, rows, &error)
            : ADBC_STATUS_NOT_IMPLEMENTED,
        &error, driver);

    if (code != 0)
        return code;
    code = partitions_give(e, &partitions);
    if (partitions.release != NULL)
        partitions.release(&partitions);
    if (schema.release != NULL)
        schema.release(&schema);
    return code;
}

/* ---- life --------------------------------------------------------------- */

static void query_free(struct uva__execution *e)
{
    struct query *q = (struct query *)e;

    if (q->parameters.release != NULL)
        q->parameters.release(&q->parameters);
    uva__bound_release(q->bound);
    query_undo(q);
    uva__pooled_fini(&q->pooled);
    free(q->options);
    free(q->sql);
    free(q->table);
    free(q);
}

#define OPERATION(called, runs)                                                \
    {                                                                          \
        .name = (called), .prepare = query_prepare, .run = (runs),             \
        .check = query_check, .finish = query_commit,                          \
        .needed = uva__pooled_needed, .interrupt = query_interrupt,            \
        .settle = uva__pooled_settle, .lost = uva__pooled_lost,                \
        .look = uva__pooled_look, .retry = query_retry, .free = query_free     \
    }

/* By the result that is wanted. */
static const struct uva__execution_ops operations[] = {
    [UVA_ADBC_ROWS] = OPERATION("query", query_run),
    [UVA_ADBC_CHANGES] = OPERATION("query", query_run),
    [UVA_ADBC_PARTITIONS] = OPERATION("partitions", partitions_run),
};

/* Why SQL must not be executed here; NULL: it may be. */
static const char *sql_refusal(const struct uva_adbc_pool *pool,
                               const char *sql)
{
    const enum uva__sql is =
        sql != NULL ? uva__sql_transaction(sql) : UVA__SQL_OTHER;

    return is != UVA__SQL_OTHER ? uva__handle(pool)->refusal(pool, is) : NULL;
}

static const char *rows_fault(const struct uva_adbc_query *query)
{
    const struct ArrowArrayStream *rows = query->parameters;

    if (rows == NULL)
        return query->ingest_table != NULL
                   ? "ingest_table needs the rows as parameters"
               : query->by_name ? "by_name needs parameters"
                                : NULL;
    if (rows->release == NULL)
        return "parameters is released";
    if (rows->get_schema == NULL || rows->get_next == NULL ||
        rows->get_last_error == NULL)
        return "parameters lacks functions";
    return query->by_name && query->sql == NULL
               ? "by_name is for sql, not for ingest_table"
               : NULL;
}

static const char *parameters_fault(const struct uva_adbc_query *query,
                                    struct uva_error *error)
{
    if (uva__values_check(query->values, error) != 0)
        return error->message;
    if (uva__values_count(query->values) == 0)
        return rows_fault(query);
    if (query->parameters != NULL)
        return "give either values or parameters";
    if (query->ingest_table != NULL)
        return "values are for sql; ingest_table needs the rows as parameters";
    return query->by_name && query->values[0].name == NULL
               ? "by_name: the values have no names"
               : NULL;
}

static const char *result_fault(const struct uva_adbc_query *query)
{
    if ((size_t)query->result >= sizeof(operations) / sizeof(*operations))
        return "result is none of enum uva_adbc_result";
    return query->result == UVA_ADBC_PARTITIONS && query->sql == NULL
               ? "ingest_table has no result with partitions"
               : NULL;
}

/* A text that is not static lies in `error`. */
static const char *query_fault(struct uva_adbc_pool *pool,
                               const struct uva_adbc_query *query,
                               struct uva_error *error)
{
    const char *fault;

    if (pool == NULL || query == NULL)
        return "there is no pool or no query";
    for (size_t i = 0; i < 4; i++)
        if (query->reserved[i] != NULL)
            return "reserved members must be NULL; clear the struct before "
                   "filling it in";
    if ((query->sql == NULL) == (query->ingest_table == NULL))
        return "give either sql or ingest_table";
    if (!uva__pairs_are_texts(query->options))
        return "options: a key or value has a NUL";
    if (query->busy_ms < 0 || query->batch_bytes < 0)
        return "busy_ms and batch_bytes must not be negative";
    fault = sql_refusal(pool, query->sql);
    if (fault == NULL)
        fault = result_fault(query);
    return fault != NULL ? fault : parameters_fault(query, error);
}

/* NULL without memory. */
static struct query *query_new(struct uva_adbc_pool *pool,
                               const struct uva_adbc_query *query)
{
    struct query *q = calloc(1, sizeof(*q));

    if (q == NULL)
        return NULL;
    uva__pooled_init(&q->pooled, pool, &operations[query->result]);
    /* without a result a driver may execute all statements of a text, even one
     * that ends the transaction */
    q->pooled.execution.is_update = query->result == UVA_ADBC_CHANGES &&
                                    !uva__handle(pool)->is_read_only(pool);
    if (query->sql != NULL)
        q->pooled.sql = uva__sql_transaction(query->sql);
    q->pooled.execution.busy_ms = query->busy_ms;
    q->batch_bytes = query->batch_bytes > 0
                         ? query->batch_bytes
                         : uva__handle(pool)->batch_bytes(pool);
    q->by_name = query->by_name;
    q->options = uva__pairs_read(query->options);
    if (query->sql != NULL)
        q->sql = uva__pairs_text(query->sql, strlen(query->sql));
    else
        q->table =
            uva__pairs_text(query->ingest_table, strlen(query->ingest_table));
    q->pooled.text = q->sql != NULL ? q->sql : "an ingest";
    if (q->options != NULL && (q->sql != NULL || q->table != NULL))
        return q;
    query_free(&q->pooled.execution);
    return NULL;
}

/* Takes the parameters, or copies the values. False without memory. */
static bool query_take(struct query *q, const struct uva_adbc_query *query)
{
    if (query->parameters != NULL) {
        q->parameters = *query->parameters;
        query->parameters->release = NULL;
    } else if (uva__values_count(query->values) == 0) {
        return true;
    } else if (uva__values_new(query->values, &q->parameters) != 0) {
        return false;
    } else {
        q->by_name = query->values[0].name != NULL;
    }
    q->bound = uva__bound_new(&q->parameters, q->sql == NULL);
    return q->bound != NULL;
}

static struct uva_stream *query_stream(struct uva_adbc_pool *pool,
                                       const struct uva_adbc_query *query)
{
    struct uva_runtime *runtime =
        pool != NULL ? uva__handle(pool)->runtime(pool) : NULL;
    struct uva_error error;
    const char *fault = query_fault(pool, query, &error);
    struct query *q;

    if (fault != NULL)
        return uva__execution_fail(runtime, EINVAL, "uva_adbc_query", fault);
    q = query_new(pool, query);
    if (q == NULL)
        return uva__execution_fail(runtime, ENOMEM, "uva_adbc_query",
                                   "no memory for the query");
    if (!query_take(q, query)) {
        query_free(&q->pooled.execution);
        return uva__execution_fail(runtime, ENOMEM, "uva_adbc_query",
                                   "no memory for the parameters");
    }
    return uva__pooled_stream(&q->pooled, &query->window);
}

struct uva_stream *uva_stream_from_query(struct uva_adbc_pool *pool,
                                         const struct uva_adbc_query *query)
{
    struct uva_stream *stream = query_stream(pool, query);
    struct ArrowArrayStream *parameters =
        query != NULL ? query->parameters : NULL;

    if (parameters != NULL && parameters->release != NULL)
        parameters->release(parameters); /* it failed before it took them */
    return stream;
}
