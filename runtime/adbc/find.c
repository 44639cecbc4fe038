/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a driver in the order of the ADBC driver manager.
 *
 *   a name with an extension:   .toml: the manifest of that path; otherwise the
 *                               library
 *   an absolute path without:   its manifest, then the library
 *   a name:                     name.toml, then the library, in each folder of
 *                               ADBC_DRIVER_PATH, in the user's folder
 *                               (~/.config/adbc/drivers) and in the system's
 *                               (/etc/adbc/drivers); then by the linker; then
 *                               in the environments of adbc/environment.h
 *
 * A library is also looked for as libNAME.so and, which that does not do, as
 * libadbc_driver_NAME.so. */
#define _GNU_SOURCE
#include "adbc/find.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adbc/environment.h"

static bool has_suffix(const char *text, const char *suffix)
{
    const size_t size = strlen(text), own = strlen(suffix);

    return size >= own && strcmp(text + size - own, suffix) == 0;
}

/* Of the last part of a path. */
static bool has_extension(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    return name[0] != '\0' && strchr(name + 1, '.') != NULL;
}

enum { LOOK_ON = -1 }; /* not found here */

/* ---- libraries ---------------------------------------------------------- */

/* Loads the file or name `prefix` `name` `suffix`; the first failure's text is
 * kept. */
static bool library_try(const char *folder, const char *prefix,
                        const char *name, const char *suffix,
                        struct uva__adbc_found *out,
                        struct uva__adbc_failure *failure)
{
    if (snprintf(out->name, sizeof(out->name), "%s%s%s%s%s", folder,
                 folder[0] != '\0' ? "/" : "", prefix, name,
                 suffix) >= (int)sizeof(out->name))
        return false;
    out->library = dlopen(out->name, RTLD_NOW | RTLD_LOCAL);
    if (out->library != NULL)
        return true;
    if (failure->error.code == 0)
        (void)uva__adbc_failure_set(failure, ENOENT,
                                    "cannot load the driver: %s", dlerror());
    return false;
}

/* Loads a library from a folder, or by the linker if `folder` is "". */
static bool library_find(const char *folder, const char *name,
                         struct uva__adbc_found *out,
                         struct uva__adbc_failure *failure)
{
    return library_try(folder, "", name, "", out, failure) ||
           library_try(folder, "", name, UVA_ADBC_SUFFIX, out, failure) ||
           library_try(folder, "lib", name, UVA_ADBC_SUFFIX, out, failure) ||
           library_try(folder, "libadbc_driver_", name, UVA_ADBC_SUFFIX, out,
                       failure);
}

/* A module of Python does without a library of Python in a Python alone. */
static int library_load(const char *path, struct uva__adbc_found *out,
                        struct uva__adbc_failure *failure)
{
    char needed[UVA__ADBC_NAME] = "";

    failure->error.code = 0;
    if (library_try("", "", path, "", out, failure) ||
        (uva__adbc_environment_load_python(path, needed, sizeof(needed)) &&
         library_try("", "", path, "", out, failure)))
        return 0;
    if (needed[0] != '\0' && access(path, R_OK) == 0)
        return uva__adbc_failure_set(
            failure, ENOENT,
            "the driver %s is a module of Python, and needs %s, which is not "
            "found or has another version: install that library, or the "
            "driver by: dbc install duckdb",
            path, needed);
    if (failure->error.code == 0)
        return uva__adbc_failure_set(failure, ENAMETOOLONG,
                                     "the path of the driver is too long");
    return failure->error.code;
}

/* Loads the library that a manifest names. */
static int manifest_follow(const struct uva__adbc_manifest *manifest,
                           struct uva__adbc_found *out,
                           struct uva__adbc_failure *failure)
{
    memcpy(out->entrypoint, manifest->entrypoint, sizeof(out->entrypoint));
    return library_load(manifest->library, out, failure);
}

static int manifest_load(const char *path, struct uva__adbc_found *out,
                         struct uva__adbc_failure *failure)
{
    struct uva__adbc_manifest manifest;
    const int code = uva__adbc_manifest_read(path, &manifest, failure);

    return code != 0 ? code : manifest_follow(&manifest, out, failure);
}

/* ---- folders ------------------------------------------------------------ */

/* Looks in one folder. LOOK_ON if there is no library for this platform. */
static int folder_look(const char *folder, const char *name,
                       struct uva__adbc_found *out,
                       struct uva__adbc_failure *failure)
{
    struct uva__adbc_manifest manifest;
    char path[UVA__ADBC_PATH];
    int code;

    if (snprintf(path, sizeof(path), "%s/%s.toml", folder, name) >=
        (int)sizeof(path))
        return LOOK_ON;
    if (access(path, F_OK) == 0) {
        code = uva__adbc_manifest_read(path, &manifest, failure);
        if (code == 0)
            return manifest_follow(&manifest, out, failure);
        if (code != ENOENT)
            return code;
    }
    return library_find(folder, name, out, failure) ? 0 : LOOK_ON;
}

/* Looks in each folder of a list with colons. */
static int list_look(const char *list, const char *name,
                     struct uva__adbc_found *out,
                     struct uva__adbc_failure *failure)
{
    char folder[UVA__ADBC_PATH];
    int code = LOOK_ON;
    size_t size;

    for (; code == LOOK_ON && *list != '\0';
         list += size + (list[size] == ':')) {
        size = strcspn(list, ":");
        if (size == 0 || size >= sizeof(folder))
            continue;
        memcpy(folder, list, size);
        folder[size] = '\0';
        code = folder_look(folder, name, out, failure);
    }
    return code;
}

static int user_look(const char *name, struct uva__adbc_found *out,
                     struct uva__adbc_failure *failure)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char folder[UVA__ADBC_PATH];
    int size;

    if (config != NULL && config[0] != '\0')
        size = snprintf(folder, sizeof(folder), "%s/adbc/drivers", config);
    else if (home != NULL && home[0] != '\0')
        size =
            snprintf(folder, sizeof(folder), "%s/.config/adbc/drivers", home);
    else
        return LOOK_ON;
    return size < (int)sizeof(folder) ? folder_look(folder, name, out, failure)
                                      : LOOK_ON;
}

static int environment_look(const char *name, struct uva__adbc_found *out,
                            struct uva__adbc_failure *failure)
{
    char path[UVA__ADBC_PATH];

    if (!uva__adbc_environment_find(name, path, sizeof(path)))
        return LOOK_ON;
    return has_suffix(path, ".toml") ? manifest_load(path, out, failure)
                                     : library_load(path, out, failure);
}

static int name_fail(const char *name, struct uva__adbc_failure *failure)
{
    const char *list = getenv("ADBC_DRIVER_PATH");
    char places[500], installs[UVA__ADBC_NAME];

    uva__adbc_environment_places(places, sizeof(places));
    uva__adbc_environment_installs(name, installs, sizeof(installs));
    return uva__adbc_failure_set(
        failure, ENOENT,
        "there is no driver '%.100s': it is looked for in ADBC_DRIVER_PATH "
        "(%.200s), ~/.config/adbc/drivers, /etc/adbc/drivers, among the "
        "system's libraries, in %s; install it by: %s; or give the path of "
        "its library",
        name, list != NULL ? list : "not set", places, installs);
}

static int name_look(const char *name, struct uva__adbc_found *out,
                     struct uva__adbc_failure *failure)
{
    const char *list = getenv("ADBC_DRIVER_PATH");
    int code = list != NULL ? list_look(list, name, out, failure) : LOOK_ON;

    if (code == LOOK_ON)
        code = user_look(name, out, failure);
    if (code == LOOK_ON)
        code = folder_look("/etc/adbc/drivers", name, out, failure);
    if (code == LOOK_ON && library_find("", name, out, failure))
        code = 0;
    if (code == LOOK_ON)
        code = environment_look(name, out, failure);
    return code == LOOK_ON ? name_fail(name, failure) : code;
}

int uva__adbc_find(const char *driver, struct uva__adbc_found *out,
                   struct uva__adbc_failure *failure)
{
    char path[UVA__ADBC_PATH];

    memset(out, 0, sizeof(*out));
    if (driver == NULL || driver[0] == '\0')
        return uva__adbc_failure_set(failure, EINVAL, "no driver is named");
    if (has_suffix(driver, ".toml"))
        return manifest_load(driver, out, failure);
    if (has_extension(driver) || strchr(driver, '/') != NULL) {
        if (!has_extension(driver) &&
            snprintf(path, sizeof(path), "%s.toml", driver) <
                (int)sizeof(path) &&
            access(path, F_OK) == 0)
            return manifest_load(path, out, failure);
        return library_load(driver, out, failure);
    }
    return name_look(driver, out, failure);
}
