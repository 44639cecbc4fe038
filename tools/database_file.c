/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite decides what a URI means: https://www.sqlite.org/uri.html. */
#include "database_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int hex_value(char c)
{
    static const char HEX[] = "0123456789abcdef";
    const char *at = memchr(HEX, c >= 'A' ? c | 0x20 : c, 16);

    return at == NULL ? -1 : (int)(at - HEX);
}

/* Decodes a path in place. */
static void path_decode(char *path)
{
    char *out = path;

    for (; *path != '\0'; path++, out++) {
        const int high = *path == '%' ? hex_value(path[1]) : -1,
                  low = high >= 0 ? hex_value(path[2]) : -1;

        *out = low >= 0 ? (char)(high << 4 | low) : *path;
        path += low >= 0 ? 2 : 0;
    }
    *out = '\0';
}

int uva__database_uri_path(const char *rest, char **path)
{
    if (strncmp(rest, "//", 2) == 0)
        rest += 2 + strcspn(rest + 2, "/");
    *path = strndup(rest, strcspn(rest, "?#"));
    if (*path == NULL)
        return ENOMEM;
    path_decode(*path);
    return 0;
}

int uva__database_file(const char *name, char **path)
{
    int code = 0;

    *path = NULL;
    if (name == NULL)
        return 0;
    if (strncmp(name, "file:", 5) == 0) {
        code = uva__database_uri_path(name + 5, path);
    } else {
        *path = strdup(name);
        code = *path != NULL ? 0 : ENOMEM;
    }
    if (code == 0 && (**path == '\0' || **path == ':')) { /* :memory: */
        free(*path);
        *path = NULL;
    }
    return code;
}
