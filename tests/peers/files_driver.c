/* SPDX-License-Identifier: Apache-2.0 */
/* An ADBC driver whose tables are files, for `uvarrow serve` in the tests of
 * peers: the query "name" gives the rows of NAME.arrows in the folder `uri`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/adbc.h"
#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

AdbcStatusCode AdbcDriverFilesInit(int version, void *out,
                                   struct AdbcError *error);

struct files {
    struct uva_runtime *runtime;
    char folder[1024];
};

struct query {
    struct files *files;
    char name[256];
};

/* ---- the database ------------------------------------------------------- */

static AdbcStatusCode database_new(struct AdbcDatabase *database,
                                   struct AdbcError *error)
{
    struct files *files = calloc(1, sizeof(*files));

    (void)error;
    database->private_data = files;
    return files != NULL &&
                   uva_runtime_open(NULL, NULL, &files->runtime, NULL) == 0
               ? ADBC_STATUS_OK
               : ADBC_STATUS_INTERNAL;
}

static AdbcStatusCode database_set(struct AdbcDatabase *database,
                                   const char *key, const char *value,
                                   struct AdbcError *error)
{
    struct files *files = database->private_data;

    (void)error;
    if (strcmp(key, "uri") == 0)
        snprintf(files->folder, sizeof(files->folder), "%s", value);
    return ADBC_STATUS_OK;
}

static AdbcStatusCode database_init(struct AdbcDatabase *database,
                                    struct AdbcError *error)
{
    (void)database;
    (void)error;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode database_release(struct AdbcDatabase *database,
                                       struct AdbcError *error)
{
    struct files *files = database->private_data;

    (void)error;
    if (files != NULL && uva_runtime_close(files->runtime, 0, NULL, NULL) == 0)
        (void)uva_runtime_join(files->runtime, UVA_FOREVER);
    free(files);
    database->private_data = NULL;
    return ADBC_STATUS_OK;
}

/* ---- connections -------------------------------------------------------- */

static AdbcStatusCode connection_new(struct AdbcConnection *connection,
                                     struct AdbcError *error)
{
    (void)connection;
    (void)error;
    return ADBC_STATUS_OK;
}

/* That it is only read is true in any case. */
static AdbcStatusCode connection_set(struct AdbcConnection *connection,
                                     const char *key, const char *value,
                                     struct AdbcError *error)
{
    (void)connection;
    (void)key;
    (void)value;
    (void)error;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode connection_init(struct AdbcConnection *connection,
                                      struct AdbcDatabase *database,
                                      struct AdbcError *error)
{
    (void)error;
    connection->private_data = database->private_data;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode connection_release(struct AdbcConnection *connection,
                                         struct AdbcError *error)
{
    (void)error;
    connection->private_data = NULL;
    return ADBC_STATUS_OK;
}

/* ---- statements --------------------------------------------------------- */

static AdbcStatusCode statement_new(struct AdbcConnection *connection,
                                    struct AdbcStatement *statement,
                                    struct AdbcError *error)
{
    struct query *query = calloc(1, sizeof(*query));

    (void)error;
    if (query != NULL)
        query->files = connection->private_data;
    statement->private_data = query;
    return query != NULL ? ADBC_STATUS_OK : ADBC_STATUS_INTERNAL;
}

static AdbcStatusCode statement_release(struct AdbcStatement *statement,
                                        struct AdbcError *error)
{
    (void)error;
    free(statement->private_data);
    statement->private_data = NULL;
    return ADBC_STATUS_OK;
}

static AdbcStatusCode statement_set_sql(struct AdbcStatement *statement,
                                        const char *sql,
                                        struct AdbcError *error)
{
    struct query *query = statement->private_data;

    (void)error;
    snprintf(query->name, sizeof(query->name), "%s", sql);
    return ADBC_STATUS_OK;
}

static AdbcStatusCode statement_execute(struct AdbcStatement *statement,
                                        struct ArrowArrayStream *out,
                                        int64_t *rows, struct AdbcError *error)
{
    const struct query *query = statement->private_data;
    char path[2048];
    struct uva_stream *stream;
    int code;

    (void)error;
    if (rows != NULL)
        *rows = -1;
    snprintf(path, sizeof(path), "%s/%s.arrows", query->files->folder,
             query->name);
    stream = uva_stream_from_file(query->files->runtime, path, NULL);
    code = uva_stream_to_arrow_stream(stream, NULL, out, NULL);
    uva_stream_release(stream);
    return code == 0 ? ADBC_STATUS_OK : ADBC_STATUS_IO;
}

/* ---- the driver --------------------------------------------------------- */

static AdbcStatusCode driver_release(struct AdbcDriver *driver,
                                     struct AdbcError *error)
{
    (void)driver;
    (void)error;
    return ADBC_STATUS_OK;
}

AdbcStatusCode AdbcDriverFilesInit(int version, void *out,
                                   struct AdbcError *error)
{
    struct AdbcDriver *driver = out;

    (void)error;
    if (version != ADBC_VERSION_1_0_0)
        return ADBC_STATUS_NOT_IMPLEMENTED;
    memset(driver, 0, ADBC_DRIVER_1_0_0_SIZE);
    driver->release = driver_release;
    driver->DatabaseNew = database_new;
    driver->DatabaseSetOption = database_set;
    driver->DatabaseInit = database_init;
    driver->DatabaseRelease = database_release;
    driver->ConnectionNew = connection_new;
    driver->ConnectionSetOption = connection_set;
    driver->ConnectionInit = connection_init;
    driver->ConnectionRelease = connection_release;
    driver->StatementNew = statement_new;
    driver->StatementRelease = statement_release;
    driver->StatementSetSqlQuery = statement_set_sql;
    driver->StatementExecuteQuery = statement_execute;
    return ADBC_STATUS_OK;
}
