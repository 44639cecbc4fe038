/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point of a driver, which is guessed where it is not named: as the
 * ADBC driver manager does, and then as DuckDB names it.
 *
 *   libadbc_driver_sqlite.so.1   AdbcDriverSqliteInit, AdbcDriverInit
 *   _duckdb.cpython-311.so       AdbcDuckdbInit, AdbcDriverInit,
 *                                duckdb_adbc_init */
#include "adbc/library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "adbc/find.h"
#include "uvarrow/adbc.h"

/* ---- names -------------------------------------------------------------- */

/* Gives the file's name without folder, "lib" and extensions. */
static void name_stem(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    if (strncmp(name, "lib", 3) == 0)
        name += 3;
    (void)snprintf(out, size, "%.*s", (int)strcspn(name, "."), name);
}

/* Gives "AdbcDriverSqliteInit" for "adbc_driver_sqlite". `out` has room for 16
 * characters more than the stem has. */
static void name_camel(const char *stem, char *out, size_t size)
{
    const bool has_adbc =
        strncmp(stem, "adbc", 4) == 0 || strncmp(stem, "Adbc", 4) == 0;
    size_t used = (size_t)snprintf(out, size, "%s", has_adbc ? "" : "Adbc");
    bool is_first = true;

    for (; *stem != '\0'; stem++) {
        if (*stem == '_' || *stem == '-') {
            is_first = true;
            continue;
        }
        out[used++] = is_first ? (char)toupper((unsigned char)*stem) : *stem;
        is_first = false;
    }
    (void)snprintf(out + used, size - used, "Init");
}

/* ---- the entry point ---------------------------------------------------- */

static void *symbol_guess(const struct uva__adbc_found *found)
{
    char stem[UVA__ADBC_NAME], name[UVA__ADBC_NAME + 16];
    void *symbol;

    name_stem(found->name, stem, sizeof(stem));
    name_camel(stem, name, sizeof(name));
    symbol = dlsym(found->library, name);
    if (symbol == NULL)
        symbol = dlsym(found->library, "AdbcDriverInit");
    if (symbol != NULL)
        return symbol;
    (void)snprintf(name, sizeof(name), "%s_adbc_init",
                   stem + strspn(stem, "_"));
    return dlsym(found->library, name);
}

static int symbol_find(const struct uva__adbc_found *found,
                       const char *entrypoint, AdbcDriverInitFunc *out,
                       struct uva__adbc_failure *failure)
{
    void *symbol;

    if (entrypoint == NULL && found->entrypoint[0] != '\0')
        entrypoint = found->entrypoint;
    symbol = entrypoint != NULL ? dlsym(found->library, entrypoint)
                                : symbol_guess(found);
    if (symbol == NULL && entrypoint != NULL)
        return uva__adbc_failure_set(failure, EINVAL,
                                     "'%s' has no function '%s'", found->name,
                                     entrypoint);
    if (symbol == NULL)
        return uva__adbc_failure_set(
            failure, EINVAL,
            "'%s' is no ADBC driver: it has no function 'AdbcDriverInit', or "
            "with the usual names; if it has another one, name that entry "
            "point",
            found->name);
    memcpy(out, &symbol, sizeof(*out));
    return 0;
}

/* ---- the driver --------------------------------------------------------- */

/* Functions that every driver must have. Optional ones are looked for when they
 * are used. */
static bool driver_is_whole(const struct AdbcDriver *driver)
{
    return driver->DatabaseNew != NULL && driver->DatabaseInit != NULL &&
           driver->DatabaseRelease != NULL && driver->ConnectionNew != NULL &&
           driver->ConnectionInit != NULL &&
           driver->ConnectionRelease != NULL && driver->StatementNew != NULL &&
           driver->StatementExecuteQuery != NULL &&
           driver->StatementRelease != NULL;
}

static void driver_drop(struct AdbcDriver *driver)
{
    struct AdbcError error = uva__adbc_error(NULL);

    if (driver->release != NULL)
        (void)driver->release(driver, &error);
    uva__adbc_error_drop(&error);
    memset(driver, 0, sizeof(*driver));
}

static int driver_init(AdbcDriverInitFunc init, const char *name,
                       struct AdbcDriver *out,
                       struct uva__adbc_failure *failure)
{
    struct AdbcError error = uva__adbc_error(NULL);
    AdbcStatusCode status = init(ADBC_VERSION_1_1_0, out, &error);

    if (status == ADBC_STATUS_NOT_IMPLEMENTED) {
        uva__adbc_error_drop(&error);
        memset(out, 0, sizeof(*out));
        error = uva__adbc_error(NULL);
        status = init(ADBC_VERSION_1_0_0, out, &error);
    }
    if (status == ADBC_STATUS_OK && !driver_is_whole(out)) {
        driver_drop(out);
        uva__adbc_error_drop(&error);
        return uva__adbc_failure_set(
            failure, EPROTO,
            "the driver '%s' lacks functions that every ADBC driver has", name);
    }
    if (status != ADBC_STATUS_OK)
        memset(out, 0, sizeof(*out)); /* a failed init may leave anything */
    return uva__adbc_failure_take(failure, "the driver does not start", status,
                                  &error, out);
}

int uva__adbc_driver_load(const char *driver, const char *entrypoint,
                          struct AdbcDriver *out,
                          struct uva__adbc_failure *failure)
{
    struct uva__adbc_found found;
    AdbcDriverInitFunc init = NULL;
    int code = uva__adbc_find(driver, &found, failure);

    memset(out, 0, sizeof(*out));
    if (code == 0)
        code = symbol_find(&found, entrypoint, &init, failure);
    if (code == 0)
        code = driver_init(init, found.name, out, failure);
    if (code == 0)
        uva__adbc_failure_fini(failure); /* of earlier attempts */
    return code;
}

int uva_adbc_load_driver(const char *driver, const char *entrypoint,
                         struct AdbcDriver *out, struct uva_error *error)
{
    struct uva__adbc_failure failure = {0};
    int code;

    if (out == NULL)
        return uva_error_set(error, EINVAL, "load_driver: the result is NULL");
    code = uva__adbc_driver_load(driver, entrypoint, out, &failure);
    if (code != 0 && error != NULL)
        *error = failure.error;
    uva__adbc_failure_fini(&failure);
    return code;
}
