/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a connection without a statement: its objects, the schema of a
 * table, a partition of a result.
 *
 * Happy path:  (a permit) -> a connection -> the call -> the rows -> the
 *              connection is put back -> the permit is free.
 *
 * Failures: each step; then, and after a cancel, the connection is closed. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "adbc/fixed.h"
#include "adbc/pairs.h"
#include "adbc/pooled.h"
#include "uvarrow/adbc.h"
#include "uvarrow/stages.h"

/* The texts of a call, which are copied. */
enum { TEXT_CATALOG, TEXT_SCHEMA, TEXT_TABLE, TEXT_COLUMN, TEXTS };

struct call {
    struct uva__pooled pooled; /* first */
    int depth;                 /* of objects */
    char *texts[TEXTS];        /* owns; NULL: any */
    char **types;              /* owns: of tables; NULL: any */
    size_t size;               /* of `partition` */
    uint8_t partition[];
};

/* ---- calls, on a worker ------------------------------------------------- */

static int call_check(struct uva__execution *e, const char *what,
                      AdbcStatusCode status, struct AdbcError *error)
{
    return uva__adbc_failure_take(&e->failure, what, status, error,
                                  e->connection->private_driver);
}

static int objects_run(struct uva__execution *e, int64_t *rows)
{
    struct call *c = (struct call *)e;
    struct AdbcDriver *driver = e->connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    const char *name = c->pooled.connection->known->driver;

    (void)rows;
    if (name != NULL)
        uva__execution_describe(e, "adbc.driver", name);
    return call_check(e, "the driver does not list its objects",
                      driver->ConnectionGetObjects != NULL
                          ? driver->ConnectionGetObjects(
                                e->connection, c->depth, c->texts[TEXT_CATALOG],
                                c->texts[TEXT_SCHEMA], c->texts[TEXT_TABLE],
                                (const char **)(void *)c->types,
                                c->texts[TEXT_COLUMN], &e->result, &error)
                          : ADBC_STATUS_NOT_IMPLEMENTED,
                      &error);
}

static int schema_run(struct uva__execution *e, int64_t *rows)
{
    struct call *c = (struct call *)e;
    struct AdbcDriver *driver = e->connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    struct ArrowSchema schema = {0};
    int code = call_check(e, "the driver gives no schema of the table",
                          driver->ConnectionGetTableSchema != NULL
                              ? driver->ConnectionGetTableSchema(
                                    e->connection, c->texts[TEXT_CATALOG],
                                    c->texts[TEXT_SCHEMA], c->texts[TEXT_TABLE],
                                    &schema, &error)
                              : ADBC_STATUS_NOT_IMPLEMENTED,
                          &error);

    (void)rows;
    if (code != 0)
        return code;
    if (schema.release == NULL)
        return uva__adbc_failure_set(&e->failure, EPROTO,
                                     "the driver gives no schema");
    if (uva__fixed_new(&schema, NULL, &e->result) != 0)
        return uva__adbc_failure_set(&e->failure, ENOMEM,
                                     "no memory for a schema");
    return 0;
}

static int partition_run(struct uva__execution *e, int64_t *rows)
{
    struct call *c = (struct call *)e;
    struct AdbcDriver *driver = e->connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);

    (void)rows;
    return call_check(
        e, "the driver does not read the partition",
        driver->ConnectionReadPartition != NULL
            ? driver->ConnectionReadPartition(e->connection, c->partition,
                                              c->size, &e->result, &error)
            : ADBC_STATUS_NOT_IMPLEMENTED,
        &error);
}

static void call_free(struct uva__execution *e)
{
    struct call *c = (struct call *)e;

    uva__pooled_fini(&c->pooled);
    for (size_t i = 0; i < TEXTS; i++)
        free(c->texts[i]);
    free(c->types);
    free(c);
}

/* A mere read of the catalog can be repeated. */
static bool call_retry(struct uva__execution *e)
{
    return uva__pooled_retry((struct uva__pooled *)e, true);
}

static const struct uva__execution_ops objects_ops = {
    .name = "objects",
    .prepare = uva__pooled_prepare,
    .run = objects_run,
    .needed = uva__pooled_needed,
    .interrupt = uva__pooled_interrupt,
    .settle = uva__pooled_settle,
    .lost = uva__pooled_lost,
    .retry = call_retry,
    .free = call_free};
static const struct uva__execution_ops schema_ops = {
    .name = "table schema",
    .prepare = uva__pooled_prepare,
    .run = schema_run,
    .needed = uva__pooled_needed,
    .interrupt = uva__pooled_interrupt,
    .settle = uva__pooled_settle,
    .lost = uva__pooled_lost,
    .look = uva__pooled_look,
    .retry = call_retry,
    .free = call_free};
static const struct uva__execution_ops partition_ops = {
    .name = "partition",
    .prepare = uva__pooled_prepare,
    .run = partition_run,
    .needed = uva__pooled_needed,
    .interrupt = uva__pooled_interrupt,
    .settle = uva__pooled_settle,
    .lost = uva__pooled_lost,
    .look = uva__pooled_look,
    .free = call_free};

/* ---- making one --------------------------------------------------------- */

/* Copies the texts. NULL without memory. */
static struct call *call_new(struct uva_adbc_pool *pool,
                             const struct uva__execution_ops *ops,
                             const char *const texts[TEXTS], size_t size)
{
    struct call *c = size <= SIZE_MAX / 2 ? calloc(1, sizeof(*c) + size) : NULL;

    if (c == NULL)
        return NULL;
    uva__pooled_init(&c->pooled, pool, ops);
    c->size = size;
    for (size_t i = 0; i < TEXTS; i++) {
        if (texts[i] == NULL)
            continue;
        c->texts[i] = uva__pairs_text(texts[i], strlen(texts[i]));
        if (c->texts[i] == NULL) {
            call_free(&c->pooled.execution);
            return NULL;
        }
    }
    return c;
}

static struct uva_stream *call_refuse(struct uva_adbc_pool *pool, int code,
                                      const char *what, const char *text)
{
    return uva__execution_fail(pool != NULL ? uva__handle(pool)->runtime(pool)
                                            : NULL,
                               code, what, text);
}

static const char *objects_fault(const struct uva_adbc_pool *pool,
                                 const struct uva_adbc_objects *o)
{
    if (pool == NULL)
        return "there is no pool";
    for (size_t i = 0; i < 4; i++)
        if (o->reserved[i] != NULL)
            return "reserved members must be NULL; clear the struct before "
                   "filling it in";
    if (o->depth < ADBC_OBJECT_DEPTH_ALL || o->depth > ADBC_OBJECT_DEPTH_TABLES)
        return "depth is none of ADBC_OBJECT_DEPTH_...";
    if (o->busy_ms < 0)
        return "busy_ms must not be negative";
    return NULL;
}

struct uva_stream *uva_stream_from_objects(struct uva_adbc_pool *pool,
                                           const struct uva_adbc_objects *which)
{
    static const struct uva_adbc_objects all;
    const struct uva_adbc_objects *o = which != NULL ? which : &all;
    const char *const texts[TEXTS] = {o->catalog, o->db_schema, o->table,
                                      o->column};
    const char *fault = objects_fault(pool, o);
    struct call *c;

    if (fault != NULL)
        return call_refuse(pool, EINVAL, "uva_adbc_objects", fault);
    c = call_new(pool, &objects_ops, texts, 0);
    if (c != NULL && o->table_types != NULL) {
        c->types = uva__pairs_copy(o->table_types);
        if (c->types == NULL) {
            call_free(&c->pooled.execution);
            c = NULL;
        }
    }
    if (c == NULL)
        return call_refuse(pool, ENOMEM, "uva_adbc_objects", "no memory");
    c->depth = o->depth;
    c->pooled.execution.busy_ms = o->busy_ms;
    return uva__pooled_stream(&c->pooled, &o->window);
}

struct uva_stream *uva_stream_from_table_schema(struct uva_adbc_pool *pool,
                                                const char *catalog,
                                                const char *db_schema,
                                                const char *table)
{
    const char *const texts[TEXTS] = {catalog, db_schema, table, NULL};
    const struct uva_window window = {0};
    struct call *c;

    if (pool == NULL || table == NULL)
        return call_refuse(pool, EINVAL, "from_table_schema",
                           "there is no pool or no table");
    c = call_new(pool, &schema_ops, texts, 0);
    if (c == NULL)
        return call_refuse(pool, ENOMEM, "from_table_schema", "no memory");
    return uva__pooled_stream(&c->pooled, &window);
}

struct uva_stream *uva_stream_from_partition(struct uva_adbc_pool *pool,
                                             const void *partition, size_t size,
                                             const struct uva_window *window)
{
    static const char *const texts[TEXTS];
    const struct uva_window plain = {0};
    struct call *c;

    if (pool == NULL || partition == NULL)
        return call_refuse(pool, EINVAL, "from_partition",
                           "there is no pool or no partition");
    c = call_new(pool, &partition_ops, texts, size);
    if (c == NULL)
        return call_refuse(pool, ENOMEM, "from_partition", "no memory");
    memcpy(c->partition, partition, size);
    return uva__pooled_stream(&c->pooled, window != NULL ? window : &plain);
}
