/* SPDX-License-Identifier: Apache-2.0 */
/* A driver of ADBC as a subject of the test suite: the streams that it gives
 * for queries play the blocking stream. This is only an adapter, built once for
 * each driver; a plan that no query expresses is refused. */
#include "interop/adbc_subject.h"

#include <arrow-adbc/adbc.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "interop/plain_stream.h"

/* A query that is open. Never freed, but for its parts: a process runs a case.
 */
struct query {
    struct AdbcDriver driver;
    struct AdbcDatabase database;
    struct AdbcConnection connection;
    struct AdbcStatement statement;
    struct plain_stream stream;
};

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

/* Loads the driver. Returns 0 or an errno. */
static int query_load(struct query *query)
{
    void *library = dlopen(UVA_TEST_DRIVER, RTLD_NOW | RTLD_LOCAL);
    struct AdbcError error = ADBC_ERROR_INIT;
    AdbcDriverInitFunc init;

    if (library == NULL)
        return ENOENT;
    *(void **)&init = dlsym(library, "AdbcDriverInit");
    if (init == NULL || init(ADBC_VERSION_1_1_0, &query->driver, &error) != 0)
        return EIO;
    return 0;
}

static bool query_connect(struct query *query)
{
    struct AdbcDriver *d = &query->driver;
    struct AdbcError error = ADBC_ERROR_INIT;
    const char *uri = getenv("UVA_SUBJECT_URI");

    return d->DatabaseNew(&query->database, &error) == 0 &&
           (!adbc_peer.has_uri ||
            (uri != NULL && d->DatabaseSetOption(&query->database, "uri", uri,
                                                 &error) == 0)) &&
           d->DatabaseInit(&query->database, &error) == 0 &&
           d->ConnectionNew(&query->connection, &error) == 0 &&
           d->ConnectionInit(&query->connection, &query->database, &error) == 0;
}

static bool query_execute(struct query *query, const char *text)
{
    struct AdbcDriver *d = &query->driver;
    struct AdbcError error = ADBC_ERROR_INIT;

    return d->StatementNew(&query->connection, &query->statement, &error) ==
               0 &&
           (adbc_peer.option == NULL ||
            d->StatementSetOption(&query->statement, adbc_peer.option,
                                  adbc_peer.value, &error) == 0) &&
           d->StatementSetSqlQuery(&query->statement, text, &error) == 0 &&
           d->StatementExecuteQuery(&query->statement, &query->stream.rows,
                                    NULL, &error) == 0;
}

static void query_close(void *ctx)
{
    struct query *query = ctx;
    struct AdbcError error = ADBC_ERROR_INIT;

    (void)query->driver.StatementRelease(&query->statement, &error);
    (void)query->driver.ConnectionRelease(&query->connection, &error);
    (void)query->driver.DatabaseRelease(&query->database, &error);
}

/* Writes the query of a plan. Returns 0, or UVA_SUBJECT_CANNOT. */
static int query_write(char *text, size_t size, int32_t plan, int64_t batches)
{
    const int64_t rows = batches * UVA_SUBJECT_ROWS;

    if (adbc_peer.write != NULL)
        return adbc_peer.write(text, size, plan, batches);
    switch (plan) {
    case UVA_SUBJECT_WHOLE:
        adbc_peer.count(text, size, rows, -1);
        return 0;
    case UVA_SUBJECT_ENDLESS:
        adbc_peer.count(text, size, INT64_MAX, -1);
        return 0;
    case UVA_SUBJECT_FAILS:
        adbc_peer.count(text, size, rows + 1, rows);
        return 0;
    default:
        return UVA_SUBJECT_CANNOT;
    }
}

int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         struct ArrowDeviceArrayStream *out)
{
    struct query *query;
    char text[256];
    int code = query_write(text, sizeof(text), plan, batches);

    (void)at;
    if (code != 0)
        return code;
    query = calloc(1, sizeof(*query));
    if (query == NULL)
        return ENOMEM;
    code = query_load(query);
    if (code != 0)
        return code;
    if (!query_connect(query) || !query_execute(query, text))
        return EIO;
    query->stream.free_ctx = query_close;
    query->stream.ctx = query;
    plain_stream_give(&query->stream, out);
    return 0;
}
