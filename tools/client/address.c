/* SPDX-License-Identifier: Apache-2.0 */
/* Strictly scheme://host[:port][/path][?parameters]. */
#include "address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char HTTPS[] = "https://";

static bool begins_with(const char *text, const char *begin)
{
    return strncasecmp(text, begin, strlen(begin)) == 0;
}

/* Where the parts of a URL lie. */
struct parts {
    const char *authority; /* of `size` bytes */
    size_t size;
    const char *host; /* of `host_size` bytes */
    size_t host_size;
    const char *port; /* of `port_size` bytes; may be NULL */
    size_t port_size;
    const char *rest; /* path and parameters */
};

static int address_refuse(const char *url, const char *why,
                          struct uva_error *error)
{
    return uva_error_set(error, EINVAL, "%s: %s", url, why);
}

/* Finds the host and the port. Returns NULL, or their fault. */
static const char *parts_find_host(struct parts *p)
{
    const char *end = p->authority + p->size;

    if (memchr(p->authority, '@', p->size) != NULL)
        return "a URL cannot have a user; use --token-file";
    p->host = p->authority;
    if (p->size > 0 && *p->host == '[') {
        p->host++;
        p->host_size = strspn(p->host, "0123456789abcdefABCDEF:.");
        p->port = p->host + p->host_size;
        if (*p->port++ != ']')
            return "the address in brackets is malformed";
    } else {
        p->host_size = strcspn(p->host, ":/?");
        if (strspn(p->host,
                   "abcdefghijklmnopqrstuvwxyz"
                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") < p->host_size)
            return "the name of the host is malformed";
        p->port = p->host + p->host_size;
    }
    if (p->host_size == 0)
        return "there is no host";
    if (p->port == end) {
        p->port = NULL;
        return NULL;
    }
    if (*p->port++ != ':')
        return "the host is malformed";
    p->port_size = (size_t)(end - p->port);
    if (p->port_size == 0 || p->port_size > 5 ||
        strspn(p->port, "0123456789") < p->port_size)
        return "the port is not a number";
    return NULL;
}

/* Returns NULL, or the fault. */
static const char *parts_find(struct parts *p, const char *url)
{
    const char *at;

    for (at = url; *at != '\0'; at++)
        if (*at <= ' ' || *at >= 0x7f)
            return "blanks, control characters and what is not ASCII are "
                   "written as %XX in a URL";
    if (strchr(url, '#') != NULL)
        return "a URL of a query has no fragment";
    p->authority = strstr(url, "://") + 3;
    p->size = strcspn(p->authority, "/?");
    p->rest = p->authority + p->size;
    return parts_find_host(p);
}

static char *text_of(const char *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        return NULL;
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* "?a=b" is a target of the path "/". */
static char *target_of(const char *rest)
{
    const size_t size = strlen(rest) + 2;
    char *text = malloc(size);

    if (text != NULL)
        (void)snprintf(text, size, "%s%s", *rest == '/' ? "" : "/", rest);
    return text;
}

int uva__address_init(struct uva__address *address, const char *url,
                      struct uva_error *error)
{
    struct parts p = {0};
    const char *why = parts_find(&p, url);
    const char *standard = begins_with(url, HTTPS) ? "443" : "80";
    int port;

    *address = (struct uva__address){.is_tls = begins_with(url, HTTPS)};
    if (why != NULL)
        return address_refuse(url, why, error);
    address->host = text_of(p.host, p.host_size);
    address->port = p.port != NULL ? text_of(p.port, p.port_size)
                                   : text_of(standard, strlen(standard));
    address->authority = text_of(p.authority, p.size);
    address->target = target_of(p.rest);
    if (address->host == NULL || address->port == NULL ||
        address->authority == NULL || address->target == NULL) {
        uva__address_fini(address);
        return uva_error_set(error, ENOMEM, "out of memory");
    }
    port = atoi(address->port);
    if (port > 0 && port <= UINT16_MAX)
        return 0;
    uva__address_fini(address);
    return address_refuse(url, "the port is not a number from 1 to 65535",
                          error);
}

void uva__address_fini(struct uva__address *address)
{
    free(address->host);
    free(address->port);
    free(address->authority);
    free(address->target);
    *address = (struct uva__address){.is_tls = false};
}
