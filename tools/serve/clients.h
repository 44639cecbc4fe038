/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of a server, and how much each has at the moment. A client is an
 * address of IPv4, or the first half of an address of IPv6, as a network of
 * that size is the least that is given to one customer. Only clients that have
 * something are kept. */
#ifndef UVA_SERVE_CLIENTS_H
#define UVA_SERVE_CLIENTS_H

#include <netinet/in.h>
#include <stdint.h>

/* What a client has. */
enum uva__clients_kind {
    UVA__CLIENTS_CONNECTION = 0, /* open */
    UVA__CLIENTS_QUERY,          /* a request that asks the database */
    UVA__CLIENTS_KINDS           /* number of them */
};

enum { UVA__CLIENTS_BUCKETS = 1024 };

struct uva__client;

/* All clients. Zeroes, then the limits. */
struct uva__clients {
    int64_t most[UVA__CLIENTS_KINDS]; /* of one client; 0: any number */
    struct uva__client *buckets[UVA__CLIENTS_BUCKETS]; /* owns: by address */
};

/* The result of uva__clients_enter(). */
struct uva__clients_entry {
    struct uva__client *client; /* until uva__clients_leave(); NULL: not counted
                                 */
    enum uva__clients_kind kind; /* that was counted */
};

/* Counts one more for the client at `address`, where the kind has a limit.
 * `entry` holds it, and is zeroes before. Returns 0; EDQUOT: it has as many as
 * it may; ENOMEM. Thread: loop, as all here. */
int uva__clients_enter(struct uva__clients *clients,
                       enum uva__clients_kind kind,
                       const struct in6_addr *address,
                       struct uva__clients_entry *entry);

/* Takes it back; without effect on zeroes. */
void uva__clients_leave(struct uva__clients *clients,
                        struct uva__clients_entry *entry);

#endif
