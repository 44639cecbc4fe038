/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of both families as one: an address of IPv4 is the one of IPv6 that
 * stands for it, ::ffff:a.b.c.d. A network is all addresses with the same first
 * bits. */
#ifndef UVA_SERVE_NETWORK_H
#define UVA_SERVE_NETWORK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* Room for the text of an address, with its NUL. */
#define UVA__NETWORK_ROOM 64

/* A network. */
struct uva__network {
    struct in6_addr address; /* any of its addresses */
    int bits;                /* the first ones that count, up to 128 */
};

/* Gives the address of a socket. Returns its port. Thread: any, as all here. */
int uva__network_of(const struct sockaddr_storage *socket,
                    struct in6_addr *out);

/* Reads an address, which `size` bytes state, as "192.0.2.1" or "2001:db8::1".
 * Returns whether it is one. */
bool uva__network_read(const char *text, size_t size, struct in6_addr *out);

/* Writes an address as people do, "192.0.2.1" or "2001:db8::1". */
void uva__network_name(const struct in6_addr *address,
                       char out[UVA__NETWORK_ROOM]);

/* Reads an address, or a network in the notation of CIDR: "10.0.0.0/8". Returns
 * whether it is one. */
bool uva__network_parse(const char *text, struct uva__network *out);

/* Returns whether an address is in a network. */
bool uva__network_has(const struct uva__network *network,
                      const struct in6_addr *address);

#endif
