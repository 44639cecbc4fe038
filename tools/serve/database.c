/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers have no common option for a database that is only read, so there is a
 * rule for each that is known. */
#include "database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int list_add(struct uva__database_list *list, const char *key,
                    size_t key_size, const char *value, struct uva_error *error)
{
    char **place = &list->texts[2 * list->count];

    if (list->count == UVA__DATABASE_OPTIONS)
        return uva_error_set(error, EINVAL, "more than %d options",
                             UVA__DATABASE_OPTIONS);
    place[0] = strndup(key, key_size);
    place[1] = strdup(value);
    list->count++;
    if (place[0] == NULL || place[1] == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    return 0;
}

int uva__database_add(struct uva__database_list *list, const char *text,
                      struct uva_error *error)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return uva_error_set(error, EINVAL,
                             "'%s' is no option; write it as KEY=VALUE", text);
    return list_add(list, text, (size_t)(equals - text), equals + 1, error);
}

/* Whether the driver is that of a database: named so, or by a URI. */
static bool is_for(const struct uva__database *database, const char *name)
{
    const char *driver = database->driver;
    const char *file;

    if (driver == NULL)
        return database->name != NULL &&
               strncmp(database->name, name, strlen(name)) == 0;
    file = strrchr(driver, '/');
    return strstr(file != NULL ? file : driver, name) != NULL;
}

static int add(struct uva__database *database, const char *key,
               const char *value, struct uva_error *error)
{
    return list_add(&database->options, key, strlen(key), value, error);
}

/* SQLite opens a file only for reading if its name is a URI with mode=ro. */
static int sqlite_add(struct uva__database *database, struct uva_error *error)
{
    static const char HEX[] = "0123456789ABCDEF";
    const char *name = database->name;
    char *uri, *out;
    int code;

    if (database->is_writable || strncmp(name, "file:", 5) == 0 ||
        strcmp(name, ":memory:") == 0)
        return add(database, "uri", name, error);
    uri = calloc(3 * strlen(name) + 16, 1);
    if (uri == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    out = uri + sprintf(uri, "file:");
    for (; *name != '\0'; name++) {
        if (strchr("%?#", *name) == NULL) {
            *out++ = *name;
            continue;
        }
        *out++ = '%';
        *out++ = HEX[(unsigned char)*name >> 4];
        *out++ = HEX[(unsigned char)*name & 15];
    }
    (void)strcpy(out, "?mode=ro");
    code = add(database, "uri", uri, error);
    free(uri);
    return code;
}

static bool has_option(const struct uva__database *database, const char *key)
{
    size_t i;

    for (i = 0; i < database->options.count; i++)
        if (strcmp(database->options.texts[2 * i], key) == 0)
            return true;
    return false;
}

/* Without the second option its queries read and write files of this machine.
 */
static int duckdb_add(struct uva__database *database, struct uva_error *error)
{
    int code = add(database, "path", database->name, error);

    if (database->is_writable)
        return code;
    if (code == 0 && strcmp(database->name, ":memory:") != 0)
        code = add(database, "access_mode", "READ_ONLY", error);
    if (code == 0 && !has_option(database, "enable_external_access"))
        code = add(database, "enable_external_access", "false", error);
    return code;
}

/* A session begins as one that reads; a query can set it otherwise. */
static int postgresql_add(struct uva__database *database,
                          struct uva_error *error)
{
    const char *option = "options=-c%20default_transaction_read_only%3Don";
    const size_t size = strlen(database->name) + strlen(option) + 2;
    char *uri;
    int code;

    if (database->is_writable)
        return add(database, "uri", database->name, error);
    uri = calloc(size, 1);
    if (uri == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    (void)snprintf(uri, size, "%s%c%s", database->name,
                   strchr(database->name, '?') != NULL ? '&' : '?', option);
    code = add(database, "uri", uri, error);
    free(uri);
    return code;
}

/* "sqlite:flights.db" names the driver, which must not get that part. */
static void name_split(struct uva__database *database, const char *driver)
{
    const size_t size = strlen(driver);

    if (database->driver != NULL || database->name[size] != ':')
        return;
    database->driver = driver;
    database->name += size + 1;
}

static int name_add(struct uva__database *database, struct uva_error *error)
{
    if (database->name == NULL)
        return 0;
    if (is_for(database, "sqlite"))
        name_split(database, "sqlite");
    if (is_for(database, "duckdb"))
        name_split(database, "duckdb");
    if (is_for(database, "sqlite"))
        return sqlite_add(database, error);
    if (is_for(database, "duckdb"))
        return duckdb_add(database, error);
    if (is_for(database, "postgres"))
        return postgresql_add(database, error);
    return add(database, "uri", database->name, error);
}

int uva__database_open(struct uva__database *database,
                       struct uva_runtime *runtime, int64_t connections,
                       int64_t wait_ms, struct uva_adbc_pool **out,
                       struct uva_error *error)
{
    const int code = name_add(database, error);

    if (code != 0)
        return code;
    return uva_adbc_pool_new(
        runtime,
        &(struct uva_adbc_pool_options){
            .driver = database->driver,
            .entrypoint = database->entrypoint,
            .options = (const char *const *)database->options.texts,
            .connection_options =
                (const char *const *)database->connections.texts,
            .connections = (int32_t)connections,
            .wait_ms = wait_ms},
        out, error);
}

/* ---- queries ------------------------------------------------------------- */

/* Skips blanks and comments, as SQLite does. */
static const char *blanks_skip(const char *at)
{
    for (;;) {
        const char *end = NULL;

        at += strspn(at, " \t\r\n\f");
        if (strncmp(at, "--", 2) == 0)
            end = strchr(at, '\n');
        else if (strncmp(at, "/*", 2) == 0)
            end = strstr(at + 2, "*/");
        if (end == NULL)
            return at;
        at = end + (*end == '*' ? 2 : 1);
    }
}

/* SQLite opens only the first file for reading: ATTACH and VACUUM INTO write
 * other files, and PRAGMA changes what later queries on its connection get. The
 * driver executes only the first statement of a text, of which the first word
 * decides. */
const char *uva__database_refusal(const struct uva__database *database,
                                  const char *sql)
{
    static const char *const READING[] = {"SELECT", "WITH", "VALUES",
                                          "EXPLAIN"};
    const char *word = blanks_skip(sql);
    const size_t size = strspn(word, "abcdefghijklmnopqrstuvwxyz"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    size_t i;

    if (database->is_writable || !is_for(database, "sqlite"))
        return NULL;
    for (i = 0; i < sizeof(READING) / sizeof(*READING); i++)
        if (size == strlen(READING[i]) &&
            strncasecmp(word, READING[i], size) == 0)
            return NULL;
    return "the database is only read: a query begins with SELECT, WITH, "
           "VALUES or EXPLAIN; see --writable";
}

static void list_fini(struct uva__database_list *list)
{
    size_t i;

    for (i = 0; i < 2 * list->count; i++)
        free(list->texts[i]);
}

void uva__database_fini(struct uva__database *database)
{
    list_fini(&database->options);
    list_fini(&database->connections);
}
