/* SPDX-License-Identifier: Apache-2.0 */
/* Opening runs on one thread while another thread may interrupt it. The fields
 * that both use are written before `executing` is set, and read after it was
 * seen set. */
#include "database.h"

#include <arrow-adbc/adbc.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

struct database {
    const char *path, *uri, *sql;     /* borrows */
    struct AdbcDriver driver;         /* owns what database_open() sets */
    struct AdbcDatabase database;     /* owns, with its private_data */
    struct AdbcConnection connection; /* owns what database_open() sets */
    struct AdbcStatement statement;   /* owns what database_open() sets */
    struct AdbcError said;            /* the driver's error of the last call */
    atomic_bool executing;            /* `statement` may be cancelled */
    atomic_bool interrupted;          /* start no further step */
};

struct database *database_new(const char *driver, const char *uri,
                              const char *sql)
{
    struct database *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->path = driver;
    d->uri = uri;
    d->sql = sql;
    atomic_init(&d->executing, false);
    atomic_init(&d->interrupted, false);
    return d;
}

/* Converts ADBC's codes to errno, and its text to struct uva_error. */
static int database_check(struct database *d, AdbcStatusCode status,
                          const char *what, struct uva_error *error)
{
    int code = 0;

    if (status != ADBC_STATUS_OK)
        code = uva_error_set(
            error, status == ADBC_STATUS_CANCELLED ? ECANCELED : EIO, "%s: %s",
            what, d->said.message != NULL ? d->said.message : "no reason");
    if (d->said.release != NULL)
        d->said.release(&d->said);
    d->said = (struct AdbcError){0};
    return code;
}

static int database_load(struct database *d, struct uva_error *error)
{
    void *library = dlopen(d->path, RTLD_NOW | RTLD_LOCAL); /* never closed */
    void *function;
    AdbcDriverInitFunc init;

    if (library == NULL)
        return uva_error_set(error, ENOENT, "%s", dlerror());
    function = dlsym(library, "AdbcDriverInit");
    if (function == NULL)
        return uva_error_set(error, EINVAL, "%s is no ADBC driver", d->path);
    memcpy(&init, &function, sizeof(init)); /* C has no cast for that */
    return database_check(d, init(ADBC_VERSION_1_1_0, &d->driver, &d->said),
                          d->path, error);
}

static int database_connect(struct database *d, struct uva_error *error)
{
    AdbcStatusCode status = d->driver.DatabaseNew(&d->database, &d->said);

    if (status == ADBC_STATUS_OK)
        status =
            d->driver.DatabaseSetOption(&d->database, "uri", d->uri, &d->said);
    if (status == ADBC_STATUS_OK)
        status = d->driver.DatabaseInit(&d->database, &d->said);
    if (status == ADBC_STATUS_OK)
        status = d->driver.ConnectionNew(&d->connection, &d->said);
    if (status == ADBC_STATUS_OK)
        status =
            d->driver.ConnectionInit(&d->connection, &d->database, &d->said);
    return database_check(d, status, d->uri, error);
}

static int database_execute(struct database *d, struct ArrowArrayStream *out,
                            struct uva_error *error)
{
    AdbcStatusCode status =
        d->driver.StatementNew(&d->connection, &d->statement, &d->said);

    if (status == ADBC_STATUS_OK)
        status =
            d->driver.StatementSetSqlQuery(&d->statement, d->sql, &d->said);
    if (status == ADBC_STATUS_OK) {
        atomic_store(&d->executing, true);
        if (atomic_load(&d->interrupted)) /* before `executing` */
            return uva_error_set(error, ECANCELED, "interrupted");
        status =
            d->driver.StatementExecuteQuery(&d->statement, out, NULL, &d->said);
    }
    return database_check(d, status, d->sql, error);
}

int database_open(void *database, struct ArrowArrayStream *out,
                  struct uva_error *error)
{
    struct database *d = database;
    int code;

    if (d == NULL)
        return ENOMEM;
    code = database_load(d, error);
    if (code == 0)
        code = database_connect(d, error);
    if (code == 0)
        code = database_execute(d, out, error);
    return code;
}

void database_interrupt(void *database)
{
    struct database *d = database;
    struct AdbcError said = {0};

    if (d == NULL)
        return;
    atomic_store(&d->interrupted, true);
    if (atomic_load(&d->executing) && d->driver.StatementCancel != NULL)
        (void)d->driver.StatementCancel(&d->statement, &said);
    if (said.release != NULL)
        said.release(&said);
}

void database_free(void *database)
{
    struct database *d = database;
    struct AdbcError said = {0};

    if (d == NULL)
        return;
    if (d->statement.private_data != NULL)
        (void)d->driver.StatementRelease(&d->statement, &said);
    if (d->connection.private_data != NULL)
        (void)d->driver.ConnectionRelease(&d->connection, &said);
    if (d->database.private_data != NULL)
        (void)d->driver.DatabaseRelease(&d->database, &said);
    if (d->driver.release != NULL)
        (void)d->driver.release(&d->driver, &said);
    if (said.release != NULL)
        said.release(&said);
    free(d);
}
