/* SPDX-License-Identifier: Apache-2.0 */
/* The scheme of a URI is the name of its driver, except for a few other names
 * of databases. */
#define _GNU_SOURCE
#include "adbc/uri.h"

#include <ctype.h>
#include <string.h>

#include "adbc/pairs.h"

static const struct {
    const char *scheme, *driver;
} others[] = {
    {"postgres", "postgresql"}, {"grpc", "flightsql"},
    {"grpc+tcp", "flightsql"},  {"grpc+tls", "flightsql"},
    {"grpc+unix", "flightsql"},
};

int uva__adbc_uri_scheme(const char *uri)
{
    int length = 0;

    if (!isalpha((unsigned char)uri[0]))
        return 0;
    while (isalnum((unsigned char)uri[length]) ||
           (uri[length] != '\0' && strchr("+-._", uri[length]) != NULL))
        length++;
    return uri[length] == ':' ? length : 0;
}

char *uva__adbc_uri_driver(const char *uri, int length)
{
    const size_t size = (size_t)length;

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strlen(others[i].scheme) == size &&
            memcmp(others[i].scheme, uri, size) == 0)
            return uva__pairs_text(others[i].driver, strlen(others[i].driver));
    return uva__pairs_text(uri, size);
}

char *uva__adbc_uri_rest(char *uri, int length)
{
    char *rest = uri + length + 1;

    return strncmp(rest, "//", 2) == 0 ? uri : rest;
}
