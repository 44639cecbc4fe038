/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a request that a proxy passes on. Each proxy adds the address
 * that it was asked from at the end of X-Forwarded-For, so the list is as true
 * as the proxies: from its end on, entries count as long as they are addresses
 * of trusted proxies, and the next one is the client. The begin of the list may
 * be the client's own words. */
#ifndef UVA_SERVE_PROXIES_H
#define UVA_SERVE_PROXIES_H

#include "network.h"

/* Most networks of trusted proxies. */
#define UVA__PROXIES_MOST 16

/* The trusted proxies. */
struct uva__proxies {
    struct uva__network networks[UVA__PROXIES_MOST];
    size_t count; /* of networks */
};

/* Returns whether an address is a trusted proxy's. Thread: any, as all here. */
bool uva__proxies_trust(const struct uva__proxies *proxies,
                        const struct in6_addr *address);

/* Returns the client of a request that came from `peer`, with the value of its
 * X-Forwarded-For, which may be NULL: the last address that is no trusted
 * proxy's. An entry that is no address, and all before it, are ignored: then it
 * is the proxy behind that entry. */
struct in6_addr uva__proxies_client(const struct uva__proxies *proxies,
                                    const struct in6_addr *peer,
                                    const char *forwarded);

#endif
