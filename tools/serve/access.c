/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of Host, Origin, Sec-Fetch-Site and Authorization. */
#include "access.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "network.h"

#define TOKEN_LEAST 16
#define TOKEN_MOST  4096

/* ---- the token ----------------------------------------------------------- */

int uva__access_load(struct uva__access *access, const char *path,
                     struct uva_error *error)
{
    char line[TOKEN_MOST] = "";
    FILE *file = fopen(path, "re");
    struct stat about;
    size_t i, size = 0;

    if (file == NULL)
        return uva_error_set(error, errno, "cannot open %s: %s", path,
                             strerror(errno));
    access->is_exposed = fstat(fileno(file), &about) == 0 &&
                         (about.st_mode & (S_IRWXG | S_IRWXO)) != 0;
    i = fread(line, 1, sizeof(line) - 1, file);
    (void)fclose(file);
    while (size < i && line[size] != '\r' && line[size] != '\n')
        size++;
    for (i = 0; i < size; i++) /* a NUL is not printable */
        if (line[i] <= ' ' || line[i] > '~')
            break;
    if (i < size || size < TOKEN_LEAST || size == sizeof(line) - 1)
        return uva_error_set(error, EINVAL,
                             "the first line of %s is not a token: at least %d "
                             "printable characters, without blanks",
                             path, TOKEN_LEAST);
    line[size] = '\0';
    access->token = strdup(line);
    return access->token != NULL
               ? 0
               : uva_error_set(error, ENOMEM, "out of memory");
}

void uva__access_fini(struct uva__access *access)
{
    free(access->token);
    access->token = NULL;
}

/* Compares in a time that depends on the length of `given` alone. */
static bool is_equal(const char *token, const char *given)
{
    const size_t size = strlen(token), length = strlen(given);
    unsigned char difference = size != length;
    size_t i;

    for (i = 0; i < length; i++)
        difference |= (unsigned char)(given[i] ^ token[i % size]);
    return difference == 0;
}

bool uva__access_has_token(const struct uva__access *access,
                           const struct uva__request *request)
{
    const char *given = uva__request_field(request, UVA__FIELD_AUTHORIZATION);

    if (access->token == NULL)
        return true;
    if (given == NULL || strncasecmp(given, "Bearer ", 7) != 0)
        return false;
    given += 7;
    return is_equal(access->token, given + strspn(given, " "));
}

/* ---- the host ------------------------------------------------------------ */

/* Splits "name:port" or "[address]:port". Returns the length of the name, and
 * in `port` the text after the colon, or NULL. */
static size_t split(const char *host, const char **port)
{
    size_t size = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");

    if (host[size] == ']')
        size++;
    *port = host[size] == ':' ? host + size + 1 : NULL;
    if (*port == NULL && host[size] != '\0')
        size = 0; /* not a name and not a port */
    return size;
}

/* Whether `host` is the configured `name`, with any port if that has no port.
 */
static bool is_host(const char *host, const char *name)
{
    const char *port, *given;
    const size_t size = split(name, &port), length = split(host, &given);

    if (size != length || strncasecmp(host, name, size) != 0)
        return false;
    return port == NULL || (given != NULL && strcmp(port, given) == 0);
}

/* Whether the first `size` bytes of `host` are an address, and which. There are
 * many ways to write an IPv6 address, and a socket of IPv6 may have clients of
 * the other family. */
static bool address_parse(const char *host, size_t size, struct in6_addr *out)
{
    const bool is_6 = memchr(host, ':', size) != NULL;

    if (is_6 && host[0] == '[' && host[size - 1] == ']')
        return uva__network_read(host + 1, size - 2, out);
    return !is_6 && uva__network_read(host, size, out);
}

/* Whether `host` is the address that the client has connected to, or
 * "localhost"; with the port, unless that is the scheme's. */
static bool is_own(const struct uva__access *access,
                   const struct uva__connection *connection, const char *host)
{
    struct sockaddr_storage address;
    struct in6_addr own, named;
    int size = sizeof(address);
    char expected[16];
    const char *given;
    const size_t length = split(host, &given);

    memset(&address, 0, sizeof(address));
    (void)uv_tcp_getsockname(&connection->transport.tcp,
                             (struct sockaddr *)&address, &size);
    (void)snprintf(expected, sizeof(expected), "%d",
                   uva__network_of(&address, &own));
    if (given == NULL)
        given = access->has_tls ? "443" : "80";
    if (length == 0 || strcmp(given, expected) != 0)
        return false;
    return (length == 9 && strncasecmp(host, "localhost", length) == 0) ||
           (address_parse(host, length, &named) &&
            memcmp(&own, &named, sizeof(own)) == 0);
}

static bool host_is_allowed(const struct uva__access *access,
                            const struct uva__connection *connection,
                            const char *host)
{
    size_t i;

    for (i = 0; i < access->n_hosts; i++)
        if (is_host(host, access->hosts[i]))
            return true;
    return is_own(access, connection, host);
}

/* ---- the site ------------------------------------------------------------ */

/* Whether `origin` is the site that `host` names. */
static bool origin_is_own(const struct uva__access *access, const char *origin,
                          const char *host)
{
    const char *scheme = access->has_tls ? "https://" : "http://";
    const size_t size = strlen(scheme);

    return strncasecmp(origin, scheme, size) == 0 &&
           strcasecmp(origin + size, host) == 0;
}

const char *uva__access_origin(const struct uva__access *access,
                               const struct uva__request *request)
{
    const char *site = uva__request_field(request, UVA__FIELD_ORIGIN);
    char origin[UVA__ORIGIN_ROOM];
    size_t i;

    if (site == NULL || !request->has_origin ||
        uva__origin_normalise(site, origin) != 0)
        return NULL;
    for (i = 0; i < access->n_origins; i++)
        if (strcmp(origin, access->origins[i]) == 0)
            return site; /* browsers compare it with the origin they have sent
                          */
    return NULL;
}

/* A page of another site can make a browser send a GET without an Origin: as an
 * image, or as a link. Browsers mark it, and only a link is allowed. */
static bool is_cross_site(const struct uva__request *request)
{
    const char *site = uva__request_field(request, UVA__FIELD_SEC_FETCH_SITE);
    const char *mode = uva__request_field(request, UVA__FIELD_SEC_FETCH_MODE);
    const bool is_link = mode != NULL && strcmp(mode, "navigate") == 0 &&
                         strcmp(uva__bytes_text(&request->target), "/") == 0;

    return site != NULL && strcmp(site, "same-origin") != 0 &&
           strcmp(site, "none") != 0 && !is_link;
}

int uva__access_check(const struct uva__access *access,
                      const struct uva__connection *connection,
                      const char **origin, const char **why)
{
    const struct uva__request *request = &connection->request;
    const char *host = uva__request_field(request, UVA__FIELD_HOST);
    const char *site = uva__request_field(request, UVA__FIELD_ORIGIN);

    *origin = uva__access_origin(access, request);
    *why = NULL;
    if (host != NULL && !host_is_allowed(access, connection, host)) {
        *why = "the Host is not a name of this server; see --host";
        return 421;
    }
    if (site != NULL && *origin == NULL &&
        (host == NULL || !origin_is_own(access, site, host))) {
        *why = "pages of other sites have no access; see --allow-origin";
        return 403;
    }
    if (site == NULL && is_cross_site(request)) {
        *why = "pages of other sites have no access";
        return 403;
    }
    return 0;
}
