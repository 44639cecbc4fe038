/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a database is a part of a path or a URI, which may hold a user
 * and a password: what is not surely behind them is not shown. */
#include "about.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database_file.h"
#include "format.h"
#include "json_list.h"
#include "uvarrow/base.h"

static const char *const SYSTEMS[] = {
    [UVA__KIND_OTHER] = NULL,
    [UVA__KIND_SQLITE] = "SQLite",
    [UVA__KIND_DUCKDB] = "DuckDB",
    [UVA__KIND_POSTGRESQL] = "PostgreSQL",
};

/* A part of a text. */
struct piece {
    const char *text;
    size_t size;
};

/* A scheme is in front of the first ":", where no folder is. */
static bool has_scheme(const char *name)
{
    return name[strcspn(name, ":/")] == ':';
}

/* A database in memory has no file. Behind another scheme than that of files
 * may be anything, and "=" may be in front of a password. Returns the path, of
 * which `piece` is a part, or NULL: the caller frees it. */
static char *name_of_file(const char *name, struct piece *piece)
{
    char *path = NULL;
    const char *at;

    if ((strncmp(name, "file:", 5) != 0 && has_scheme(name)) ||
        uva__database_file(name, &path) != 0 || path == NULL)
        return NULL;
    for (at = path + strlen(path); at > path && strchr("/:", at[-1]) == NULL;
         at--)
        ;
    if (strchr(at, '=') == NULL)
        *piece = (struct piece){at, strlen(at)};
    return path;
}

/* The host and the path of a URI. A password is in front of the last "@", and
 * may be in the parameters; where these have an "@", too, they may be a part of
 * a password that nobody has encoded. */
static struct piece name_of_uri(const char *name)
{
    const char *const begin = strstr(name, "://");
    struct piece piece = {0};
    const char *at;

    if (begin == NULL)
        return piece;
    piece.text = begin + 3;
    piece.size = strcspn(piece.text, "?#");
    if (strchr(piece.text + piece.size, '@') != NULL)
        return (struct piece){0};
    at = strrchr(piece.text, '@');
    if (at == NULL)
        return piece;
    piece.size -= (size_t)(at + 1 - piece.text);
    piece.text = at + 1;
    return piece;
}

void uva__about_name(const struct uva__database *database, char *out,
                     size_t size)
{
    const enum uva__kind kind = uva__database_kind(database);
    struct piece piece = {0};
    char *path = NULL;

    if (database->name != NULL &&
        (kind == UVA__KIND_SQLITE || kind == UVA__KIND_DUCKDB))
        path = name_of_file(database->name, &piece);
    else if (database->name != NULL)
        piece = name_of_uri(database->name);
    if (piece.size >= size)
        piece.size = size - 1;
    if (piece.size > 0)
        memcpy(out, piece.text, piece.size);
    out[piece.size] = '\0';
    free(path);
}

static json_t *formats(void)
{
    json_t *list = json_array();
    int code = list != NULL ? 0 : -1, i;

    for (i = 0; i < UVA__ROWS_FORMATS && code == 0; i++)
        code = json_array_append_new(
            list,
            json_pack("{s:s, s:s}", "name", uva__format_name((enum uva__rows)i),
                      "type", uva__format_type((enum uva__rows)i)));
    return uva__json_list_end(list, code);
}

json_t *uva__about_json(const struct uva__database *database)
{
    char name[256], version[32];
    json_t *text;

    uva__about_name(database, name, sizeof(name));
    text = json_string(name); /* NULL: no UTF-8, as of an odd file */
    (void)snprintf(version, sizeof(version), "%d.%d.%d", UVA_VERSION_MAJOR,
                   UVA_VERSION_MINOR, UVA_VERSION_PATCH);
    return json_pack("{s:o, s:s?, s:b, s:o, s:s}", "name",
                     text != NULL ? text : json_string(""), "system",
                     SYSTEMS[uva__database_kind(database)], "writable",
                     (int)database->is_writable, "formats", formats(),
                     "version", version);
}
