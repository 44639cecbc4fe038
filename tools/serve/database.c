/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers have no common option for a database that is only read, so there is a
 * rule for each that is known. */
#include "database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reading.h"

static int list_add(struct uva__database_list *list, const char *key,
                    size_t key_size, const char *value, struct uva_error *error)
{
    struct uva_pair *place = &list->pairs[list->count];

    if (list->count == UVA__DATABASE_OPTIONS)
        return uva_error_set(error, EINVAL, "more than %d options",
                             UVA__DATABASE_OPTIONS);
    place->key = strndup(key, key_size);
    place->value = strdup(value);
    list->count++;
    if (place->key == NULL || place->value == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    return 0;
}

/* Returns the place of an option. NULL: it is not set. */
static struct uva_pair *list_find(struct uva__database_list *list,
                                  const char *key, size_t key_size)
{
    size_t i;

    for (i = 0; i < list->count; i++)
        if (strncmp(list->pairs[i].key, key, key_size) == 0 &&
            list->pairs[i].key[key_size] == '\0')
            return &list->pairs[i];
    return NULL;
}

/* A driver obeys the last value of a key, so no key may be set twice. */
int uva__database_add(struct uva__database_list *list, const char *text,
                      struct uva_error *error)
{
    const char *equals = strchr(text, '=');
    size_t size;

    if (equals == NULL || equals == text)
        return uva_error_set(error, EINVAL,
                             "'%s' is not an option; write it as KEY=VALUE",
                             text);
    size = (size_t)(equals - text);
    if (list_find(list, text, size) != NULL)
        return uva_error_set(error, EINVAL, "'%s': '%.*s' is set already", text,
                             (int)size, text);
    return list_add(list, text, size, equals + 1, error);
}

static const struct {
    const char *name;   /* is in the name of the driver's file */
    const char *driver; /* ADBC_INFO_DRIVER_NAME */
} KINDS[] = {
    [UVA__KIND_SQLITE] = {"sqlite", "ADBC SQLite Driver"},
    [UVA__KIND_DUCKDB] = {"duckdb", "ADBC DuckDB Driver"},
    [UVA__KIND_POSTGRESQL] = {"postgres", "ADBC PostgreSQL Driver"},
};

/* Whether the driver is a database's: it has stated so, is named so, or by a
 * URI. */
static bool is_for(const struct uva__database *database, enum uva__kind kind)
{
    const char *driver = database->driver, *name = KINDS[kind].name;
    const char *file;

    if (database->found != UVA__KIND_OTHER)
        return database->found == kind;
    if (driver == NULL)
        return database->name != NULL &&
               strncmp(database->name, name, strlen(name)) == 0;
    file = strrchr(driver, '/');
    return strstr(file != NULL ? file : driver, name) != NULL;
}

/* Sets an option, whatever it was before. */
static int list_set(struct uva__database_list *list, const char *key,
                    const char *value, struct uva_error *error)
{
    struct uva_pair *place = list_find(list, key, strlen(key));
    char *copy;

    if (place == NULL)
        return list_add(list, key, strlen(key), value, error);
    copy = strdup(value);
    if (copy == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    free((char *)(uintptr_t)place->value);
    place->value = copy;
    return 0;
}

static struct uva_pair *option_find(struct uva__database *database,
                                    const char *key)
{
    return list_find(&database->options, key, strlen(key));
}

static int option_set(struct uva__database *database, const char *key,
                      const char *value, struct uva_error *error)
{
    return list_set(&database->options, key, value, error);
}

/* As option_set(), with a value that is made of texts, one after the other. */
static int option_join(struct uva__database *database, const char *key,
                       const char *const texts[4], struct uva_error *error)
{
    size_t size = 1;
    char *value;
    int code, i;

    for (i = 0; i < 4; i++)
        size += strlen(texts[i]);
    value = malloc(size);
    if (value == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    (void)snprintf(value, size, "%s%s%s%s", texts[0], texts[1], texts[2],
                   texts[3]);
    code = option_set(database, key, value, error);
    free(value);
    return code;
}

/* Whether a URI of SQLite names a database in memory, which ends with its
 * connection. */
static bool sqlite_is_memory(const char *uri)
{
    const char *end = uri + strcspn(uri, "#"), *at = strchr(uri, '?');

    if (strcmp(uri, ":memory:") == 0)
        return true;
    for (; at != NULL && at < end; at = strchr(at + 1, '&'))
        if (strncmp(at + 1, "mode=memory", 11) == 0 &&
            strchr("&#", at[12]) != NULL)
            return true;
    return false;
}

/* SQLite obeys the last mode of a URI, and ignores the text after a "#". */
static int sqlite_uri_add(struct uva__database *database,
                          struct uva_error *error)
{
    const char *rest = strchr(database->name, '#');
    char *uri = strdup(database->name);
    int code;

    if (uri == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    uri[strcspn(uri, "#")] = '\0';
    code = option_join(
        database, "uri",
        (const char *const[]){uri, strchr(uri, '?') != NULL ? "&" : "?",
                              "mode=ro", rest != NULL ? rest : ""},
        error);
    free(uri);
    return code;
}

/* SQLite opens a file only for reading if its name is a URI with mode=ro. */
static int sqlite_add(struct uva__database *database, struct uva_error *error)
{
    static const char HEX[] = "0123456789ABCDEF";
    const char *name = database->name;
    char *path, *out;
    int code;

    if (name == NULL)
        return 0;
    if (database->is_writable || sqlite_is_memory(name))
        return option_set(database, "uri", name, error);
    if (strncmp(name, "file:", 5) == 0)
        return sqlite_uri_add(database, error);
    path = calloc(3 * strlen(name) + 1, 1);
    if (path == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    for (out = path; *name != '\0'; name++) {
        if (strchr("%?#", *name) == NULL) {
            *out++ = *name;
            continue;
        }
        *out++ = '%';
        *out++ = HEX[(unsigned char)*name >> 4];
        *out++ = HEX[(unsigned char)*name & 15];
    }
    code = option_join(database, "uri",
                       (const char *const[]){"file:", path, "?mode=ro", ""},
                       error);
    free(path);
    return code;
}

static int option_set_if_new(struct uva__database *database, const char *key,
                             const char *value, struct uva_error *error)
{
    return option_find(database, key) == NULL
               ? option_set(database, key, value, error)
               : 0;
}

/* Its configuration is for all connections: one query could take all threads,
 * or end the process by a log that cannot be written. Without the last option
 * queries read and write files of this machine. */
static int duckdb_add(struct uva__database *database, const char *key,
                      struct uva_error *error)
{
    const char *name = database->name;
    int code = name != NULL ? option_set(database, key, name, error) : 0;

    if (code == 0)
        code = option_set_if_new(database, "lock_configuration", "true", error);
    if (code != 0 || database->is_writable)
        return code;
    if (name != NULL && *name != '\0' && strncmp(name, ":memory:", 8) != 0)
        code = option_set(database, "access_mode", "READ_ONLY", error);
    if (code == 0)
        code = option_set_if_new(database, "enable_external_access", "false",
                                 error);
    return code;
}

/* Its transactions can be read-only whatever a query states, which the pool
 * sees to: the URI stays as it is. */
static int postgresql_add(struct uva__database *database,
                          struct uva_error *error)
{
    const char *name = database->name;
    int code = name != NULL ? option_set(database, "uri", name, error) : 0;

    if (code != 0 || database->is_writable)
        return code;
    return list_set(&database->connections, ADBC_CONNECTION_OPTION_READ_ONLY,
                    ADBC_OPTION_VALUE_ENABLED, error);
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

/* An option can name the database, too: `key` is its key. */
static int name_find(struct uva__database *database, const char **key,
                     struct uva_error *error)
{
    struct uva_pair *option = option_find(database, "uri");

    *key = "uri";
    if (is_for(database, UVA__KIND_DUCKDB) && option == NULL) {
        *key = "path";
        option = option_find(database, "path");
    }
    if (option == NULL)
        return 0;
    if (database->name != NULL)
        return uva_error_set(error, EINVAL,
                             "'%s' is a database, and so is --option %s=%s",
                             database->name, *key, option->value);
    database->own_name = strdup(option->value);
    database->name = database->own_name;
    return database->name != NULL
               ? 0
               : uva_error_set(error, ENOMEM, "out of memory");
}

/* Queries that PostgreSQL's driver cannot do by COPY have own options. */
static int plain_make(struct uva__database *database, struct uva_error *error)
{
    const struct uva__database_list *all = &database->statements;
    int code = 0;
    size_t i;

    for (i = 0; i < all->count && code == 0; i++)
        code = list_set(&database->plain, all->pairs[i].key,
                        all->pairs[i].value, error);
    return code == 0 ? list_set(&database->plain, "adbc.postgresql.use_copy",
                                "false", error)
                     : code;
}

int uva__database_settle(struct uva__database *database,
                         struct uva_error *error)
{
    const char *key;
    int code = name_find(database, &key, error);

    if (code == 0)
        code = plain_make(database, error);
    if (code != 0)
        return code;
    if (is_for(database, UVA__KIND_SQLITE) && database->name != NULL)
        name_split(database, "sqlite");
    if (is_for(database, UVA__KIND_DUCKDB) && database->name != NULL)
        name_split(database, "duckdb");
    switch (uva__database_kind(database)) {
    case UVA__KIND_SQLITE:
        return sqlite_add(database, error);
    case UVA__KIND_DUCKDB:
        return duckdb_add(database, key, error);
    case UVA__KIND_POSTGRESQL:
        return postgresql_add(database, error);
    case UVA__KIND_OTHER:
        break;
    }
    return database->name != NULL
               ? option_set(database, "uri", database->name, error)
               : 0;
}

/* ---- the name of the driver ---------------------------------------------- */

enum uva__kind uva__database_of_driver(const char *name)
{
    int kind;

    for (kind = UVA__KIND_POSTGRESQL; kind > UVA__KIND_OTHER; kind--)
        if (name != NULL && strcmp(name, KINDS[kind].driver) == 0)
            break;
    return (enum uva__kind)kind;
}

bool uva__database_must_ask(const struct uva__database *database)
{
    return uva__database_kind(database) == UVA__KIND_OTHER;
}

/* "any:flights.db" names the driver, as "any://host" does, which keeps it. */
static int driver_split(struct uva__database *database, struct uva_error *error)
{
    struct uva_pair *option = option_find(database, "uri");
    const char *uri = option != NULL ? option->value : database->name;
    const size_t size = uri != NULL ? strcspn(uri, ":") : 0;

    if (database->driver != NULL)
        return 0;
    if (size == 0 || uri[size] == '\0')
        return uva_error_set(error, EINVAL,
                             "'%s' names no driver: use --driver",
                             uri != NULL ? uri : "");
    database->own_driver = strndup(uri, size);
    if (database->own_driver == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    database->driver = database->own_driver;
    if (uri == database->name && strncmp(uri + size, "://", 3) != 0)
        database->name += size + 1;
    return 0;
}

int uva__database_probe(struct uva__database *database,
                        struct uva_runtime *runtime, struct uva_adbc_pool **out,
                        struct uva_error *error)
{
    const int code = driver_split(database, error);

    if (code != 0)
        return code;
    return uva_adbc_pool_new(
        runtime,
        &(struct uva_adbc_pool_options){.driver = database->driver,
                                        .entrypoint = database->entrypoint,
                                        .connections = 1},
        out, error);
}

/* ---- the pool ------------------------------------------------------------ */

int uva__database_pool_again(const struct uva__database *database,
                             struct uva_runtime *runtime,
                             const struct uva__limits *limits,
                             struct uva_adbc_pool **out,
                             struct uva_error *error)
{
    return uva_adbc_pool_new(
        runtime,
        &(struct uva_adbc_pool_options){
            .driver = database->driver,
            .entrypoint = database->entrypoint,
            .options = database->options.pairs,
            .connection_options = database->connections.pairs,
            .connections = (int32_t)limits->queries,
            .stuck_connections = (int32_t)limits->stuck,
            .lock_ms = (int32_t)limits->lock_ms,
            .wait_ms = limits->wait_ms,
            .batch_bytes = limits->batch_bytes},
        out, error);
}

int uva__database_pool(struct uva__database *database,
                       struct uva_runtime *runtime,
                       const struct uva__limits *limits,
                       struct uva_adbc_pool **out, struct uva_error *error)
{
    const int code = uva__database_settle(database, error);

    return code == 0
               ? uva__database_pool_again(database, runtime, limits, out, error)
               : code;
}

/* The texts of SQLite and DuckDB are enough. */
int uva__database_reading_pool(struct uva__database *database,
                               struct uva_runtime *runtime,
                               const struct uva__limits *limits,
                               struct uva_adbc_pool **out,
                               struct uva_error *error)
{
    int code;

    *out = NULL;
    if (!database->is_writable ||
        uva__database_kind(database) != UVA__KIND_POSTGRESQL)
        return 0;
    code = list_set(&database->connections, ADBC_CONNECTION_OPTION_READ_ONLY,
                    ADBC_OPTION_VALUE_ENABLED, error);
    return code == 0
               ? uva__database_pool_again(database, runtime, limits, out, error)
               : code;
}

/* The driver may be named by a manifest, which may have any name. */
static bool is_for_postgresql(const char *uri)
{
    return uri != NULL && (strncmp(uri, "postgresql://", 13) == 0 ||
                           strncmp(uri, "postgres://", 11) == 0);
}

enum uva__kind uva__database_kind(const struct uva__database *database)
{
    int kind;

    for (kind = UVA__KIND_POSTGRESQL; kind > UVA__KIND_OTHER; kind--)
        if (is_for(database, (enum uva__kind)kind))
            break;
    if (kind == UVA__KIND_OTHER && is_for_postgresql(database->name))
        return UVA__KIND_POSTGRESQL;
    return (enum uva__kind)kind;
}

bool uva__database_needs_rights(const struct uva__database *database)
{
    return uva__database_kind(database) == UVA__KIND_POSTGRESQL &&
           !database->is_writable && !database->trusts_user;
}

/* ---- queries ------------------------------------------------------------- */

int uva__database_check(const struct uva__database *database, const char *sql,
                        bool may_write, const char **why)
{
    const enum uva__kind kind = uva__database_kind(database);
    int status = 403;

    if (!database->is_writable)
        return uva__reading_check(kind, sql, why);
    if (may_write)
        return 0;
    if (kind != UVA__KIND_OTHER)
        status = uva__reading_check(kind, sql, why);
    if (status == 0 && !uva__reading_is_safe(kind, sql))
        status = 403;
    if (status == 403)
        *why = "what may change the database needs POST";
    return status;
}

const struct uva_pair *
uva__database_query_options(const struct uva__database *database,
                            const char *sql)
{
    const bool is_plain =
        uva__database_kind(database) == UVA__KIND_POSTGRESQL &&
        uva__reading_needs_plain(sql);

    return is_plain ? database->plain.pairs : database->statements.pairs;
}

static void list_fini(struct uva__database_list *list)
{
    size_t i;

    for (i = 0; i < list->count; i++) {
        free((char *)(uintptr_t)list->pairs[i].key);
        free((char *)(uintptr_t)list->pairs[i].value);
    }
}

void uva__database_fini(struct uva__database *database)
{
    list_fini(&database->options);
    list_fini(&database->connections);
    list_fini(&database->statements);
    list_fini(&database->plain);
    free(database->own_name);
    free(database->own_driver);
}
