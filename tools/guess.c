/* SPDX-License-Identifier: Apache-2.0 */
/* A file that exists is judged by its bytes alone: names lie more often. */
#include "guess.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "adbc/uri.h"
#include "database_file.h"

/* The files that are known, by their first bytes. */
static const struct {
    const char *bytes;
    size_t at, size;
    const char *driver; /* NULL: no database, and */
    const char *advice; /* how it is read */
} FILES[] = {
    {"SQLite format 3", 0, 16, "sqlite", NULL},
    {"DUCK", 8, 4, "duckdb", NULL},
    {"PAR1", 0, 4, NULL,
     "it is Parquet, which DuckDB reads: uvarrow query --driver duckdb "
     "\"SELECT * FROM 'FILE'\""},
    {"ARROW1", 0, 6, NULL, "it is Arrow IPC: uvarrow query --from FILE"},
    {"\377\377\377\377", 0, 4, NULL,
     "it is Arrow IPC: uvarrow query --from FILE"},
};

/* What a file that is made will be. */
static const struct {
    const char *ending, *driver;
} ENDINGS[] = {
    {".sqlite", "sqlite"}, {".sqlite3", "sqlite"}, {".db3", "sqlite"},
    {".duckdb", "duckdb"}, {".ddb", "duckdb"},
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *guess_ending(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < COUNT(ENDINGS); i++)
        if (strcasecmp(dot, ENDINGS[i].ending) == 0)
            return ENDINGS[i].driver;
    return NULL;
}

static int guess_bytes(const char *path, const char *bytes, size_t size,
                       const char **driver, struct uva_error *error)
{
    const char *advice = "name its driver with --driver";

    for (size_t i = 0; i < COUNT(FILES); i++) {
        if (size < FILES[i].at + FILES[i].size ||
            memcmp(bytes + FILES[i].at, FILES[i].bytes, FILES[i].size) != 0)
            continue;
        *driver = FILES[i].driver;
        if (*driver != NULL)
            return 0;
        advice = FILES[i].advice;
    }
    if (size == 0) { /* as SQLite begins one */
        *driver = guess_ending(path);
        *driver = *driver != NULL ? *driver : "sqlite";
        return 0;
    }
    return uva_error_set(
        error, EINVAL,
        "%s is not a database of SQLite or DuckDB by its first "
        "bytes; %s",
        path, advice);
}

static int guess_file(const char *path, const char **driver,
                      struct uva_error *error)
{
    FILE *file = fopen(path, "re");
    char bytes[16];
    size_t size = 0;
    int code = file == NULL ? errno : 0;

    if (file != NULL) {
        size = fread(bytes, 1, sizeof(bytes), file);
        code = ferror(file) != 0 ? errno : 0;
        (void)fclose(file);
    }
    if (code != 0)
        return uva_error_set(error, code, "cannot read the database %s: %s",
                             path, strerror(code));
    return guess_bytes(path, bytes, size, driver, error);
}

/* Guesses it of a file, or of one that is to be. */
static int guess_path(const char *path, const char **driver,
                      struct uva_error *error)
{
    struct stat about;

    if (stat(path, &about) != 0) {
        *driver = guess_ending(path);
        if (*driver != NULL)
            return 0;
        return uva_error_set(error, ENOENT,
                             "there is no file %s; name its driver with "
                             "--driver to make one, or give a URI",
                             path);
    }
    if (S_ISREG(about.st_mode))
        return guess_file(path, driver, error);
    return uva_error_set(error, S_ISDIR(about.st_mode) ? EISDIR : EINVAL,
                         "the database %s is not a file; name its driver with "
                         "--driver",
                         path);
}

/* A file may have a colon in its name. */
static bool is_other_uri(const char *database)
{
    struct stat about;

    return strncmp(database, "file:", 5) != 0 &&
           uva__adbc_uri_scheme(database) > 0 && stat(database, &about) != 0;
}

int uva__guess_driver(const char *database, const char **driver,
                      struct uva_error *error)
{
    char *path;
    int code;

    *driver = NULL;
    if (is_other_uri(database))
        return 0;
    if (uva__database_file(database, &path) != 0)
        return uva_error_set(error, ENOMEM, "out of memory");
    if (path == NULL && strstr(database, ":memory:") != NULL) {
        *driver = "sqlite";
        return 0;
    }
    code = guess_path(path != NULL ? path : database, driver, error);
    free(path);
    return code;
}
