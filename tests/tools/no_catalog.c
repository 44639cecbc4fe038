/* SPDX-License-Identifier: Apache-2.0 */
/* The library libadbc_driver_nocatalog.so: SQLite's driver, whose file
 * UVA_TEST_DRIVER names, as one that lists no tables. */
#include <dlfcn.h>
#include <stdlib.h>

#include "uvarrow/adbc.h"

typedef AdbcStatusCode (*init_fn)(int version, void *driver,
                                  struct AdbcError *error);

AdbcStatusCode AdbcDriverNocatalogInit(int version, void *driver,
                                       struct AdbcError *error);

static AdbcStatusCode get_objects(struct AdbcConnection *connection, int depth,
                                  const char *catalog, const char *db_schema,
                                  const char *table, const char **types,
                                  const char *column,
                                  struct ArrowArrayStream *out,
                                  struct AdbcError *error)
{
    (void)connection;
    (void)depth;
    (void)catalog;
    (void)db_schema;
    (void)table;
    (void)types;
    (void)column;
    (void)out;
    (void)error;
    return ADBC_STATUS_NOT_IMPLEMENTED;
}

AdbcStatusCode AdbcDriverNocatalogInit(int version, void *driver,
                                       struct AdbcError *error)
{
    void *library = dlopen(getenv("UVA_TEST_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    struct AdbcDriver *made = driver;
    AdbcStatusCode status;
    init_fn init = NULL;

    if (library != NULL)
        *(void **)&init = dlsym(library, "AdbcDriverSqliteInit");
    if (init == NULL)
        return ADBC_STATUS_NOT_FOUND;
    status = init(version, driver, error);
    if (status == ADBC_STATUS_OK)
        made->ConnectionGetObjects = get_objects;
    return status;
}
