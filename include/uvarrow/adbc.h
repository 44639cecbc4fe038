/* SPDX-License-Identifier: Apache-2.0 */
/* Databases without waiting: any ADBC driver, on an event loop. A library of
 * its own, libuvarrow-adbc, which uvarrow.h does not include. Objects of
 * <arrow-adbc/adbc.h> and of the ADBC driver manager can be passed as they are;
 * without that header, adbc_abi.h declares them.
 *
 * Everything a driver does (load, connect, prepare, execute, fetch, release)
 * runs on blocking workers. A cancel calls the driver's own cancel. A driver's
 * error arrives as an errno with its text; its status, SQLSTATE, vendor code
 * and details are in the metadata of the outcome, under the keys adbc.status,
 * adbc.sqlstate, adbc.vendor_code and adbc.detail.NAME. See docs/adbc.md. */
#ifndef UVARROW_ADBC_H
#define UVARROW_ADBC_H

#include "uvarrow/adbc_abi.h"
#include "uvarrow/base.h"
#include "uvarrow/runtime.h"
#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a statement becomes a stream. */
struct uva_adbc_source {
    /* called after the statement was released, on any thread: gives back the
     * connection. NULL: no callback */
    void (*free_ctx)(void *ctx);
    void *ctx;                /* owns, through free_ctx */
    struct uva_window window; /* read ahead of demand */
    void *reserved[4];
};

/** Creates a stream of the result of a statement that is ready to be executed:
 * its SQL or plan is set, and its parameters are bound. It is executed when the
 * stream starts. Takes `statement`, which reads as zeroed afterwards; a worker
 * releases it after its result. Its connection must outlive it: see free_ctx.
 * Its `private_driver` must be set, to a struct AdbcDriver of ADBC 1.1 in which
 * functions that the driver lacks are NULL; otherwise the error is EINVAL, and
 * the statement stays as it is. `options` may be NULL.
 *
 * The metadata of uva_stream_info has adbc.rows_affected if the driver reports
 * a number. A statement without a result gives a stream without columns and
 * rows. Returns the stream, never NULL, with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_adbc(struct uva_runtime *runtime,
                     struct AdbcStatement *statement,
                     const struct uva_adbc_source *options);

/** Executes a statement for a handler of Arrow's asynchronous interface: an
 * asynchronous execute for every synchronous driver. The metadata of the
 * handler's producer is that of the stream that uva_stream_from_adbc() creates.
 * Returns 0: takes `statement`, `options->ctx` and `handler`, and calls the
 * release of the handler exactly once. Otherwise they are untouched: as
 * uva_stream_drive().
 * Thread: any. */
UVA_API UVA_MUST_CHECK int
uva_adbc_execute(struct uva_runtime *runtime, struct AdbcStatement *statement,
                 struct ArrowAsyncDeviceStreamHandler *handler,
                 const struct uva_adbc_source *options,
                 struct uva_error *error);

/** Loads a driver, which blocks: `driver` is a file, or a name that is looked
 * for as the ADBC driver manager does ("sqlite"); `entrypoint` may be NULL, and
 * is that of a manifest or guessed then. Fills in `*out`, for ADBC 1.1 or, if
 * the driver does not have that, for 1.0: functions that it lacks are NULL. The
 * library is never unloaded. Returns 0; ENOENT if there is no such driver;
 * EINVAL for a library that is none, a bad manifest or a NULL; EPROTO for a
 * driver that lacks functions; ENOMEM; or the error of the driver.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int uva_adbc_load_driver(const char *driver,
                                                const char *entrypoint,
                                                struct AdbcDriver *out,
                                                struct uva_error *error);

/* ---- a pool of connections ----------------------------------------------- */

struct uva_adbc_pool; /* a database, and connections to it */

/** What a pool connects to. All texts are copied. */
struct uva_adbc_pool_options {
    /* a file or a name, as for uva_adbc_load_driver(); NULL: the scheme of the
     * option "uri", of which the driver gets the rest unless that begins with
     * two slashes ("sqlite:flights.db", "postgresql://localhost") */
    const char *driver;
    const char *entrypoint;     /* NULL: that of a manifest, or guessed */
    const char *const *options; /* key, value, ..., NULL: of the database */
    const char *const *connection_options; /* of each connection */
    int32_t connections; /* at most, with those that are being closed; 0: 8 */
    int32_t idle_ms; /* when the pool is used next, one that was not used for so
                        long is closed; 0: 60 s */
    int64_t wait_ms; /* for a free connection; then ETIMEDOUT; 0: 30 s */
    void *reserved[4];
};

/** Makes a pool; it counts its runtime. Nothing is loaded or connected before
 * the first query. Returns 0 and gives `*out`, to be released; EINVAL for an
 * option that is not possible; otherwise as uva_turns_new().
 * Thread: any. */
UVA_API UVA_MUST_CHECK int
uva_adbc_pool_new(struct uva_runtime *runtime,
                  const struct uva_adbc_pool_options *options,
                  struct uva_adbc_pool **out, struct uva_error *error);

/** Drops the reference; streams that were made of the pool keep theirs. A
 * worker closes idle connections, and other ones when their queries have ended;
 * after the close of the runtime that happens in this call. NULL is allowed.
 * Thread: any. */
UVA_API void uva_adbc_pool_release(struct uva_adbc_pool *pool);

/** A query. */
struct uva_adbc_query {
    const char *sql;                     /* copied */
    struct ArrowArrayStream *parameters; /* takes: rows that are bound to the
                                            query; NULL: none */
    const char *const *options; /* key, value, ..., NULL: of the statement;
                                   copied */
    const char *ingest_table;   /* instead of sql: `parameters` are written into
                                   this table; copied */
    struct uva_window window;   /* read ahead of demand */
    void *reserved[4];
};

/** Creates a stream of the rows of a query. When it starts, it waits for its
 * turn, without a thread, and then executes the query on a connection of the
 * pool. A connection is used again only after a query that was read to its end;
 * after one that failed or was cancelled it is closed. Metadata and errors are
 * those of uva_stream_from_adbc(). Takes `query->parameters`, also on failure.
 * Returns the stream, never NULL, with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_query(struct uva_adbc_pool *pool,
                      const struct uva_adbc_query *query);

/* ---- partitions ---------------------------------------------------------- */

/** Creates a stream of the partitions of a query's result instead of its rows:
 * one batch with one binary column, "partition". Another pool, also of
 * another process, can read them. ENOTSUP if the driver has no partitions;
 * otherwise as uva_stream_from_query(). Returns the stream, never NULL, with
 * one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_query_partitions(struct uva_adbc_pool *pool,
                                 const struct uva_adbc_query *query);

/** Creates a stream of the rows of one partition, which is copied. `window` may
 * be NULL. Otherwise as uva_stream_from_query(). Returns the stream, never
 * NULL, with one reference for the caller. Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_partition(struct uva_adbc_pool *pool, const void *partition,
                          size_t size, const struct uva_window *window);

/** Creates a stream of the rows of all partitions in a batch that
 * uva_stream_from_query_partitions() gave: a stream for each of them, merged by
 * uva_stream_merge(), and as many at one time as the pool has connections.
 * Their order is not kept. Without partitions there are no columns and no rows.
 * `batch` is borrowed for the call, EINVAL if it is no such batch. Returns the
 * stream, never NULL, with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_partitions(struct uva_adbc_pool *pool,
                           const struct ArrowArray *batch);

/* ---- the catalog --------------------------------------------------------- */

/** Which objects of a database are listed. All texts are copied. */
struct uva_adbc_objects {
    int depth; /* ADBC_OBJECT_DEPTH_...; 0: down to columns and constraints */
    const char *catalog;            /* a pattern, as for LIKE; NULL: any */
    const char *db_schema;          /* a pattern; NULL: any */
    const char *table;              /* a pattern; NULL: any */
    const char *column;             /* a pattern; NULL: any */
    const char *const *table_types; /* ..., NULL: only tables of these types */
    struct uva_window window;       /* read ahead of demand */
    void *reserved[4];
};

/** Creates a stream of the catalogs of the database, with their schemas, tables
 * and columns in nested columns, as ADBC defines for GetObjects. `which` may be
 * NULL: all. Otherwise as uva_stream_from_query(). Returns the stream, never
 * NULL, with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_objects(struct uva_adbc_pool *pool,
                        const struct uva_adbc_objects *which);

/** Creates a stream that has the schema of a table and no rows. `catalog` and
 * `db_schema` may be NULL. ENOENT if the driver reports that there is no such
 * table; otherwise as uva_stream_from_query(). Returns the stream, never NULL,
 * with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_table_schema(struct uva_adbc_pool *pool, const char *catalog,
                             const char *db_schema, const char *table);

#ifdef __cplusplus
}
#endif

#endif
