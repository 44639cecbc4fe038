/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite driver of ADBC as a subject of the test suite: the streams that it
 * gives for queries play the blocking stream. They are streams of the C stream
 * interface, so this adapter adds the members of a device stream and of its
 * batches, and passes everything else through unchanged. A plan that a query
 * cannot express is refused. */
#include <arrow-adbc/adbc.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/tck.h"

/* A query that is open. Never freed, but for its parts: a process runs a case.
 */
struct query {
    struct AdbcDriver driver;
    struct AdbcDatabase database;
    struct AdbcConnection connection;
    struct AdbcStatement statement;
    struct ArrowArrayStream rows;
};

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

/* ---- a stream ----------------------------------------------------------- */

static int query_schema(struct ArrowDeviceArrayStream *self,
                        struct ArrowSchema *out)
{
    struct query *query = self->private_data;

    return query->rows.get_schema(&query->rows, out);
}

static int query_next(struct ArrowDeviceArrayStream *self,
                      struct ArrowDeviceArray *out)
{
    struct query *query = self->private_data;
    struct ArrowArray array;
    int code;

    memcpy(&array, &out->array,
           sizeof(array)); /* the driver gets it as it is */
    code = query->rows.get_next(&query->rows, &array);
    if (code == 0) {
        memset(out, 0, sizeof(*out));
        out->device_id = -1;
        out->device_type = ARROW_DEVICE_CPU;
    }
    memcpy(&out->array, &array, sizeof(array));
    return code;
}

static const char *query_text(struct ArrowDeviceArrayStream *self)
{
    struct query *query = self->private_data;

    return query->rows.get_last_error(&query->rows);
}

static void query_release(struct ArrowDeviceArrayStream *self)
{
    struct query *query = self->private_data;
    struct AdbcError error = ADBC_ERROR_INIT;

    query->rows.release(&query->rows);
    if (query->rows.release != NULL)
        return; /* it has not marked itself, so this stream is not marked */
    (void)query->driver.StatementRelease(&query->statement, &error);
    (void)query->driver.ConnectionRelease(&query->connection, &error);
    (void)query->driver.DatabaseRelease(&query->database, &error);
    self->release = NULL;
}

/* ---- a query ------------------------------------------------------------ */

static int driver_load(struct AdbcDriver *driver)
{
    void *library = dlopen(UVA_TEST_DRIVER, RTLD_NOW | RTLD_LOCAL);
    struct AdbcError error = ADBC_ERROR_INIT;
    AdbcDriverInitFunc init;

    if (library == NULL)
        return ENOENT;
    *(void **)&init = dlsym(library, "AdbcDriverInit");
    return init == NULL || init(ADBC_VERSION_1_1_0, driver, &error) != 0 ? EIO
                                                                         : 0;
}

/* Executes `text`, in batches of UVA_SUBJECT_ROWS rows. */
static int query_execute(struct query *query, const char *text)
{
    struct AdbcDriver *d = &query->driver;
    struct AdbcError error = ADBC_ERROR_INIT;
    char rows[16];

    (void)snprintf(rows, sizeof(rows), "%d", UVA_SUBJECT_ROWS);
    return d->DatabaseNew(&query->database, &error) != 0 ||
                   d->DatabaseInit(&query->database, &error) != 0 ||
                   d->ConnectionNew(&query->connection, &error) != 0 ||
                   d->ConnectionInit(&query->connection, &query->database,
                                     &error) != 0 ||
                   d->StatementNew(&query->connection, &query->statement,
                                   &error) != 0 ||
                   d->StatementSetOption(&query->statement,
                                         "adbc.sqlite.query.batch_rows", rows,
                                         &error) != 0 ||
                   d->StatementSetSqlQuery(&query->statement, text, &error) !=
                       0 ||
                   d->StatementExecuteQuery(&query->statement, &query->rows,
                                            NULL, &error) != 0
               ? EIO
               : 0;
}

/* Counts from 0; row `fails_at` (negative: none) overflows. */
static void query_write(char *text, size_t size, int64_t rows, int64_t fails_at)
{
    (void)snprintf(text, size,
                   "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 "
                   "FROM c LIMIT %" PRId64 ") SELECT CASE WHEN n = %" PRId64
                   " THEN abs(-9223372036854775807 - 1) ELSE n END AS n FROM c",
                   rows, fails_at);
}

int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         struct ArrowDeviceArrayStream *out)
{
    struct query *query = calloc(1, sizeof(*query));
    const int64_t rows = batches * UVA_SUBJECT_ROWS;
    char text[256];
    int code;

    (void)at;
    if (plan == UVA_SUBJECT_WHOLE)
        query_write(text, sizeof(text), rows, -1);
    else if (plan == UVA_SUBJECT_ENDLESS)
        query_write(text, sizeof(text), INT64_MAX, -1);
    else if (plan == UVA_SUBJECT_FAILS)
        query_write(text, sizeof(text), rows + 1, rows);
    else
        return UVA_SUBJECT_CANNOT;
    if (query == NULL)
        return ENOMEM;
    code = driver_load(&query->driver);
    if (code == 0)
        code = query_execute(query, text);
    if (code != 0)
        return code;
    *out = (struct ArrowDeviceArrayStream){.device_type = ARROW_DEVICE_CPU,
                                           .get_schema = query_schema,
                                           .get_next = query_next,
                                           .get_last_error = query_text,
                                           .release = query_release,
                                           .private_data = query};
    return 0;
}
