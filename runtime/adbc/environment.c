/* SPDX-License-Identifier: Apache-2.0 */
/* An environment is a folder with lib/python3.N/site-packages, such as /usr. In
 * this order:
 *
 *   $VIRTUAL_ENV, $CONDA_PREFIX
 *   the folder of the Python on PATH, that of pyenv if it is a shim of pyenv,
 *   and, as a virtual environment links to another Python, that of the file
 *   ~/.local, where `pip install --user` puts packages
 *
 * In each of these, `dbc` leaves etc/adbc/drivers/NAME.toml, and packages are
 *
 *   adbc_driver_NAME/libadbc_driver_NAME.so
 *   _duckdb.cpython-3N-....so, or duckdb/duckdb.cpython-3N-....so before 1.4 */
#define _GNU_SOURCE
#include "adbc/environment.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adbc/manifest.h"

enum {
    FOLDERS_MOST = 8,
    MINOR_MOST = 40 /* of Python 3; the newest is tried first */
};

/* The environments. */
struct folders {
    char all[FOLDERS_MOST][PATH_MAX];
    int count;
};

/* ---- paths -------------------------------------------------------------- */

static bool path_write(char *out, size_t size, const char *folder,
                       const char *rest)
{
    return snprintf(out, size, "%s/%s", folder, rest) < (int)size;
}

/* Cuts the last part off. */
static bool path_rise(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

/* ---- environments ------------------------------------------------------- */

static void folders_add(struct folders *folders, const char *path)
{
    if (path == NULL || path[0] == '\0' || strlen(path) >= PATH_MAX ||
        folders->count == FOLDERS_MOST)
        return;
    for (int i = 0; i < folders->count; i++)
        if (strcmp(folders->all[i], path) == 0)
            return;
    (void)strcpy(folders->all[folders->count++], path);
}

/* Adds /usr for /usr/bin/python3. */
static void folders_add_program(struct folders *folders, const char *program)
{
    char path[PATH_MAX];

    (void)strcpy(path, program);
    if (path_rise(path) && path_rise(path))
        folders_add(folders, path);
}

/* Finds the first program of PATH. */
static bool program_find(const char *name, char *out, size_t size)
{
    const char *list = getenv("PATH");
    size_t length;

    for (; list != NULL && *list != '\0';
         list += length + (list[length] == ':')) {
        length = strcspn(list, ":");
        if (length > 0 &&
            snprintf(out, size, "%.*s/%s", (int)length, list, name) <
                (int)size &&
            access(out, X_OK) == 0)
            return true;
    }
    return false;
}

static bool python_find(char *out, size_t size)
{
    return program_find("python3", out, size) ||
           program_find("python", out, size);
}

/* Reads the first line. */
static bool line_read(const char *path, char *out, int size)
{
    FILE *file = fopen(path, "re");
    const bool is_read = file != NULL && fgets(out, size, file) != NULL;

    if (file != NULL)
        (void)fclose(file);
    if (is_read)
        out[strcspn(out, "\r\n")] = '\0';
    return is_read && out[0] != '\0';
}

/* Adds ROOT/versions/3.12.1 for ROOT/shims/python3, as the user has chosen. */
static void folders_add_pyenv(struct folders *folders, const char *program)
{
    const char *chosen = getenv("PYENV_VERSION");
    char root[PATH_MAX], path[PATH_MAX], version[100];

    (void)strcpy(root, program);
    if (!path_rise(root) || strlen(root) < 6 ||
        strcmp(root + strlen(root) - 6, "/shims") != 0 || !path_rise(root) ||
        !path_write(path, sizeof(path), root, "version"))
        return;
    if (chosen != NULL && chosen[0] != '\0')
        (void)snprintf(version, sizeof(version), "%s", chosen);
    else if (!line_read(path, version, sizeof(version)))
        return;
    version[strcspn(version, ":")] = '\0';
    if (path_write(path, sizeof(path), root, "versions/") &&
        strlen(path) + strlen(version) < sizeof(path))
        folders_add(folders, strcat(path, version));
}

static void folders_list(struct folders *folders)
{
    const char *home = getenv("HOME");
    char path[PATH_MAX], file[PATH_MAX];

    folders->count = 0;
    folders_add(folders, getenv("VIRTUAL_ENV"));
    folders_add(folders, getenv("CONDA_PREFIX"));
    if (python_find(path, sizeof(path))) {
        folders_add_program(folders, path);
        folders_add_pyenv(folders, path);
        if (realpath(path, file) != NULL)
            folders_add_program(folders, file);
    }
    if (home != NULL && path_write(path, sizeof(path), home, ".local"))
        folders_add(folders, path);
}

/* ---- packages ----------------------------------------------------------- */

/* Finds the first file of a folder that begins with `start`. */
static bool module_find(const char *folder, const char *start, char *out,
                        size_t size)
{
    DIR *files = opendir(folder);
    struct dirent *file;
    bool is_found = false;

    while (files != NULL && !is_found && (file = readdir(files)) != NULL)
        is_found = strncmp(file->d_name, start, strlen(start)) == 0 &&
                   path_write(out, size, folder, file->d_name);
    if (files != NULL)
        (void)closedir(files);
    return is_found;
}

/* Looks in one folder of packages. */
static bool package_find(const char *folder, const char *name, char *out,
                         size_t size)
{
    char inner[PATH_MAX];

    if (snprintf(out, size,
                 "%s/adbc_driver_%s/libadbc_driver_%s" UVA_ADBC_SUFFIX, folder,
                 name, name) < (int)size &&
        access(out, R_OK) == 0)
        return true;
    return strcmp(name, "duckdb") == 0 &&
           (module_find(folder, "_duckdb.cpython-3", out, size) ||
            (path_write(inner, sizeof(inner), folder, "duckdb") &&
             module_find(inner, "duckdb.cpython-3", out, size)));
}

/* Looks in the packages of one version; of any, for minor 0, as Debian has it.
 */
static bool version_find(const char *environment, int minor, const char *name,
                         char *out, size_t size)
{
    static const char *const LIBRARIES[] = {"lib", "lib64", "local/lib"},
                             *const PACKAGES[] = {"site", "dist"};
    char folder[PATH_MAX], version[16] = "";

    if (minor > 0)
        (void)snprintf(version, sizeof(version), ".%d", minor);
    for (size_t i = 0; i < 6; i++)
        if (snprintf(folder, sizeof(folder), "%s/%s/python3%s/%s-packages",
                     environment, LIBRARIES[i / 2], version,
                     PACKAGES[i % 2]) < (int)sizeof(folder) &&
            access(folder, R_OK) == 0 && package_find(folder, name, out, size))
            return true;
    return false;
}

/* A name is a part of a path here. */
static bool name_is_plain(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL &&
           strlen(name) < NAME_MAX / 2;
}

bool uva__adbc_environment_find(const char *name, char *out, size_t size)
{
    struct folders folders;

    folders_list(&folders);
    for (int i = 0; name_is_plain(name) && i < folders.count; i++) {
        if (snprintf(out, size, "%s/etc/adbc/drivers/%s.toml", folders.all[i],
                     name) < (int)size &&
            access(out, R_OK) == 0)
            return true;
        for (int minor = MINOR_MOST; minor >= 0; minor--)
            if (version_find(folders.all[i], minor, name, out, size))
                return true;
    }
    return false;
}

/* ---- the library of Python ---------------------------------------------- */

/* Gives libpython3.11.so.1.0 for _duckdb.cpython-311-x86_64-linux-gnu.so. */
static bool python_name(const char *path, char *out, size_t size)
{
    static const char MARK[] = ".cpython-3";
    const char *slash = strrchr(path, '/');
    const char *at = strstr(slash != NULL ? slash : path, MARK);
    char minor[8];
    size_t length;

    if (at == NULL)
        return false;
    at += sizeof(MARK) - 1;
    length = strcspn(at, "-.");
    if (length == 0 || length >= sizeof(minor))
        return false;
    (void)snprintf(minor, sizeof(minor), "%.*s", (int)length, at);
    (void)snprintf(out, size, "libpython3.%s" UVA_ADBC_SUFFIX "%s", minor,
                   strcmp(UVA_ADBC_SUFFIX, ".so") == 0 ? ".1.0" : "");
    return true;
}

bool uva__adbc_environment_load_python(const char *path, char *needed,
                                       size_t size)
{
    const int mode = RTLD_LAZY | RTLD_GLOBAL; /* the module names no library */
    struct folders folders;
    char library[PATH_MAX];

    if (!python_name(path, needed, size))
        return false;
    if (dlopen(needed, mode) != NULL)
        return true;
    folders_list(&folders);
    for (int i = 0; i < folders.count; i++)
        if (snprintf(library, sizeof(library), "%s/lib/%s", folders.all[i],
                     needed) < (int)sizeof(library) &&
            dlopen(library, mode) != NULL)
            return true;
    return false;
}

/* ---- texts -------------------------------------------------------------- */

void uva__adbc_environment_places(char *out, size_t size)
{
    const char *active = getenv("VIRTUAL_ENV");
    char python[PATH_MAX];

    if (active == NULL || active[0] == '\0')
        active = "not set";
    if (!python_find(python, sizeof(python)))
        (void)strcpy(python, "there is none");
    (void)snprintf(out, size,
                   "$VIRTUAL_ENV (%.200s), the Python of PATH (%.200s)", active,
                   python);
}

void uva__adbc_environment_installs(const char *name, char *out, size_t size)
{
    static const char *const PACKAGES[] = {"bigquery", "flightsql",
                                           "postgresql", "snowflake", "sqlite"};

    (void)snprintf(out, size, "dbc install %s", name);
    if (strcmp(name, "duckdb") == 0)
        (void)snprintf(out, size, "dbc install duckdb, or pip install duckdb");
    for (size_t i = 0; i < sizeof(PACKAGES) / sizeof(*PACKAGES); i++)
        if (strcmp(name, PACKAGES[i]) == 0)
            (void)snprintf(out, size,
                           "dbc install %s, or pip install adbc-driver-%s",
                           name, name);
}
