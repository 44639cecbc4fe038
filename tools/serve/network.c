/* SPDX-License-Identifier: Apache-2.0 */
/* The texts are read and written by libuv. */
#include "network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* The bits in front of an address of IPv4. */
enum { MAPPED_BITS = 96, ALL_BITS = 128 };

static void network_map(const struct in_addr *four, struct in6_addr *out)
{
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(out->s6_addr + 12, four, 4);
}

int uva__network_of(const struct sockaddr_storage *socket, struct in6_addr *out)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)socket;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)socket;

    if (socket->ss_family == AF_INET6) {
        *out = six->sin6_addr;
        return ntohs(six->sin6_port);
    }
    network_map(&four->sin_addr, out);
    return ntohs(four->sin_port);
}

bool uva__network_read(const char *text, size_t size, struct in6_addr *out)
{
    char copy[UVA__NETWORK_ROOM];
    struct in_addr four;

    if (size >= sizeof(copy))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (uv_inet_pton(AF_INET, copy, &four) == 0) {
        network_map(&four, out);
        return true;
    }
    return uv_inet_pton(AF_INET6, copy, out) == 0;
}

void uva__network_name(const struct in6_addr *address,
                       char out[UVA__NETWORK_ROOM])
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        (void)uv_inet_ntop(AF_INET, address->s6_addr + 12, out,
                           UVA__NETWORK_ROOM);
    else
        (void)uv_inet_ntop(AF_INET6, address, out, UVA__NETWORK_ROOM);
}

bool uva__network_parse(const char *text, struct uva__network *out)
{
    const char *slash = strchr(text, '/');
    const size_t size = slash != NULL ? (size_t)(slash - text) : strlen(text);
    char *end = NULL;
    long bits = ALL_BITS;

    if (!uva__network_read(text, size, &out->address))
        return false;
    if (slash != NULL && (slash[1] < '0' || slash[1] > '9'))
        return false;
    if (slash != NULL)
        bits = strtol(slash + 1, &end, 10);
    if (slash != NULL && memchr(text, ':', size) == NULL)
        bits = bits > ALL_BITS ? bits : bits + MAPPED_BITS;
    out->bits = (int)bits;
    return bits <= ALL_BITS && (end == NULL || *end == '\0');
}

bool uva__network_has(const struct uva__network *network,
                      const struct in6_addr *address)
{
    const unsigned char *a = network->address.s6_addr, *b = address->s6_addr;
    const int whole = network->bits / 8, rest = network->bits % 8;

    if (memcmp(a, b, (size_t)whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}
