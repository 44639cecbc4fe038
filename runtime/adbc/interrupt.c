/* SPDX-License-Identifier: Apache-2.0 */
/* How the extension of adbc/sqlite gets into a connection.
 *
 * Happy path:  the extension is found and opened -> the driver is asked to load
 *              it, by options of the connection, and SQLite opens the same file
 *              -> the extension gives the connection's handle.
 *
 * What can fail: each step: then the query goes on after its cancel, as the
 *              driver has it.
 *
 * Loading is turned on for that where it was off, and off again. */
#define _GNU_SOURCE
#include "adbc/interrupt.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "adbc/failure.h"

/* ---- the file ------------------------------------------------------------ */

/* A file that is opened by two is opened once: SQLite gets the same path. */
struct extension {
    uva__sqlite_take_fn take;
    const char *path; /* borrows: from the linker */
};

/* Gives the folder of the file that has this code: a library, a module or a
 * program. The linker knows a program by the name of its call. */
static bool folder_find(char out[PATH_MAX])
{
    static const char here = 0;
    size_t size = PATH_MAX;
    Dl_info file;
    char *slash;

    if (dladdr(&here, &file) == 0 || file.dli_fname[0] != '/' ||
        realpath(file.dli_fname, out) == NULL) {
        if (uv_exepath(out, &size) != 0)
            return false;
    }
    slash = strrchr(out, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

/* It lies beside a library or a module; where the libraries are, as seen from a
 * program that has this one inside; or where the system looks. */
static void *file_open(void)
{
    static const char *const places[] = {"", UVA_ADBC_LIBRARIES "/"};
    char folder[PATH_MAX], path[2 * PATH_MAX];
    void *file = NULL;

    if (folder_find(folder))
        for (size_t i = 0; i < 2 && file == NULL; i++) {
            (void)snprintf(path, sizeof(path), "%s/%s%s", folder, places[i],
                           UVA_ADBC_EXTENSION);
            file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    return file != NULL ? file
                        : dlopen(UVA_ADBC_EXTENSION, RTLD_NOW | RTLD_LOCAL);
}

/* It stays open, as drivers do. */
static bool extension_open(struct extension *out)
{
    void *file = file_open();
    void *take = file != NULL ? dlsym(file, UVA__SQLITE_TAKE) : NULL;
    Dl_info info;

    if (take == NULL || dladdr(take, &info) == 0)
        return false;
    memcpy(&out->take, &take, sizeof(out->take));
    out->path = info.dli_fname;
    return true;
}

/* ---- the connection ------------------------------------------------------ */

static bool option_set(struct AdbcConnection *connection, const char *name,
                       const char *value)
{
    struct AdbcDriver *driver = connection->private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    AdbcStatusCode status = ADBC_STATUS_NOT_IMPLEMENTED;
    char key[64];

    (void)snprintf(key, sizeof(key), "adbc.sqlite.load_extension.%s", name);
    if (driver->ConnectionSetOption != NULL)
        status = driver->ConnectionSetOption(connection, key, value, &error);
    uva__adbc_error_drop(&error);
    return status == ADBC_STATUS_OK;
}

static bool extension_load(const struct extension *extension,
                           struct AdbcConnection *connection)
{
    return option_set(connection, "path", extension->path) &&
           option_set(connection, "entrypoint", UVA__SQLITE_INIT);
}

/* The driver gives no answer whether loading is on. */
static bool extension_get_in(const struct extension *extension,
                             struct AdbcConnection *connection)
{
    bool is_loaded = extension_load(extension, connection);

    if (is_loaded || !option_set(connection, "enabled", "true"))
        return is_loaded;
    is_loaded = extension_load(extension, connection);
    (void)option_set(connection, "enabled", "false");
    return is_loaded;
}

struct uva__interrupt uva__interrupt_find(struct AdbcConnection *connection)
{
    const struct uva__interrupt none = {0};
    struct extension extension;

    if (!extension_open(&extension))
        return none;
    (void)extension.take(); /* another one may be closed */
    return extension_get_in(&extension, connection) ? extension.take() : none;
}
