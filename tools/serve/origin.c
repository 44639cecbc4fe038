/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the URL standard that an origin needs: parsers of hosts and
 * addresses, and their serialisers. */
#include "origin.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

static const char DIGITS[] = "0123456789";

/* ---- addresses ----------------------------------------------------------- */

/* Reads a number of an address: decimal, octal after a 0, or hexadecimal
 * after 0x. Returns whether it is one. */
static bool number_read(const char *text, size_t size, uint64_t *out)
{
    char part[16], *end;
    int base = 10;

    if (size == 0 || size >= sizeof(part))
        return false;
    (void)snprintf(part, sizeof(part), "%.*s", (int)size, text);
    text = part;
    if (text[0] == '0' && text[1] == 'x') {
        base = 16;
        text += 2;
    } else if (text[0] == '0' && text[1] != '\0') {
        base = 8;
        text++;
    }
    if (strspn(text, "0123456789abcdef") != strlen(text))
        return false;
    *out = strtoull(text, &end, base);
    return *end == '\0';
}

/* An address of four bytes: the last number fills the remaining ones. */
static int four_read(const char *host, char *out, size_t room)
{
    uint64_t value = 0, number = 0;
    int parts = 0;

    for (;;) {
        const size_t size = strcspn(host, ".");
        const bool is_last = host[size] == '\0' || host[size + 1] == '\0';

        if (!number_read(host, size, &number) || ++parts > 4)
            return EINVAL;
        if (is_last)
            break;
        if (number > 255)
            return EINVAL;
        value = value << 8 | number;
        host += size + 1;
    }
    if (number >= UINT64_C(1) << 8 * (5 - parts))
        return EINVAL;
    value = value << 8 * (5 - parts) | number;
    (void)snprintf(out, room, "%u.%u.%u.%u", (unsigned)(value >> 24),
                   (unsigned)(value >> 16 & 255), (unsigned)(value >> 8 & 255),
                   (unsigned)(value & 255));
    return 0;
}

/* Whether the last part of a host makes it an address. */
static bool is_four(const char *host)
{
    size_t size = strlen(host), begin;
    uint64_t number;

    if (size > 0 && host[size - 1] == '.')
        size--;
    for (begin = size; begin > 0 && host[begin - 1] != '.'; begin--)
        ;
    return begin < size && (strspn(host + begin, DIGITS) >= size - begin ||
                            number_read(host + begin, size - begin, &number));
}

/* The longest row of zeroes, of two at least, is left out: gives where it
 * begins, and its length. */
static int zeroes_find(const unsigned *pieces, int *length)
{
    int best = -1, i, n;

    *length = 1;
    for (i = 0; i < 8; i += n + 1) {
        for (n = 0; i + n < 8 && pieces[i + n] == 0; n++)
            ;
        if (n > *length) {
            *length = n;
            best = i;
        }
    }
    return best;
}

static int six_read(const char *host, char *out, size_t room)
{
    const size_t size = strlen(host);
    unsigned char bytes[16];
    unsigned pieces[8];
    char text[64];
    int zeroes, length, i;
    size_t at = 1;

    if (size < 4 || size >= sizeof(text) || host[size - 1] != ']')
        return EINVAL;
    (void)snprintf(text, sizeof(text), "%.*s", (int)size - 2, host + 1);
    if (strchr(text, '%') != NULL || uv_inet_pton(AF_INET6, text, bytes) != 0)
        return EINVAL;
    for (i = 0; i < 8; i++)
        pieces[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
    zeroes = zeroes_find(pieces, &length);
    out[0] = '[';
    for (i = 0; i < 8; i++) {
        if (i == zeroes) {
            at += (size_t)snprintf(out + at, room - at, i == 0 ? "::" : ":");
            i += length - 1;
            continue;
        }
        at += (size_t)snprintf(out + at, room - at, "%x%s", pieces[i],
                               i < 7 ? ":" : "");
    }
    (void)snprintf(out + at, room - at, "]");
    return 0;
}

/* ---- parts --------------------------------------------------------------- */

/* Copies `size` characters in lower case. Returns 0; EINVAL: too many. */
static int lower_copy(const char *text, size_t size, char *out, size_t room)
{
    size_t i;

    if (size >= room)
        return EINVAL;
    for (i = 0; i < size; i++)
        out[i] =
            (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    out[size] = '\0';
    return 0;
}

/* Of a name only the case is changed; a host that begins with a bracket, or
 * ends with a number, is an address. */
static int host_normalise(const char *host, char *out, size_t room)
{
    const char *c;

    if (host[0] == '[')
        return six_read(host, out, room);
    for (c = host; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~' ||
            strchr("#/:<>?@[\\]^|%*\"`{},", *c) != NULL)
            return EINVAL;
    if (c == host)
        return EINVAL;
    return is_four(host) ? four_read(host, out, room)
                         : lower_copy(host, strlen(host), out, room);
}

/* Appends the port of a URL, unless its scheme has it by default. */
static int port_add(const char *scheme, const char *port, char *out,
                    size_t room)
{
    static const struct {
        const char *scheme;
        long port;
    } DEFAULTS[] = {{"http", 80}, {"https", 443}, {"ws", 80}, {"wss", 443}};
    long number;
    size_t i;

    if (strspn(port, DIGITS) != strlen(port))
        return EINVAL;
    if (*port == '\0')
        return 0;
    errno = 0;
    number = strtol(port, NULL, 10);
    if (errno != 0 || number > 65535)
        return EINVAL;
    for (i = 0; i < sizeof(DEFAULTS) / sizeof(*DEFAULTS); i++)
        if (strcmp(scheme, DEFAULTS[i].scheme) == 0 &&
            number == DEFAULTS[i].port)
            return 0;
    (void)snprintf(out, room, ":%ld", number);
    return 0;
}

static bool is_scheme(const char *text)
{
    return *text >= 'a' && *text <= 'z' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") ==
               strlen(text);
}

/* ---- the origin ---------------------------------------------------------- */

int uva__origin_normalise(const char *text, char out[UVA__ORIGIN_ROOM])
{
    const char *colon = strstr(text, "://");
    const char *host = colon != NULL ? colon + 3 : text, *port;
    char scheme[32], name[256], given[256];
    size_t size, length;

    if (strcmp(text, "null") == 0) {
        (void)snprintf(out, UVA__ORIGIN_ROOM, "null");
        return 0;
    }
    if (colon == NULL ||
        lower_copy(text, (size_t)(colon - text), scheme, sizeof(scheme)) != 0 ||
        !is_scheme(scheme))
        return EINVAL;
    size = strlen(host);
    size -= size > 0 && host[size - 1] == '/';
    length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (length > size)
        length = size;
    if (length < size && host[length] != ':')
        return EINVAL;
    if (lower_copy(host, length, given, sizeof(given)) != 0 ||
        host_normalise(given, name, sizeof(name)) != 0)
        return EINVAL;
    (void)snprintf(out, UVA__ORIGIN_ROOM, "%s://%s", scheme, name);
    port = host + length + (length < size);
    if (lower_copy(port, size - (size_t)(port - host), given, sizeof(given)) !=
        0)
        return EINVAL;
    length = strlen(out);
    return port_add(scheme, given, out + length, UVA__ORIGIN_ROOM - length);
}
