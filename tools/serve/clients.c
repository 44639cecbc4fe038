/* SPDX-License-Identifier: Apache-2.0 */
/* A table of lists. Whoever has chosen addresses that fall into one list can
 * make it as long as there are connections, which is no long search. */
#include "clients.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct uva__client {
    struct uva__client *next;           /* in its bucket */
    struct in6_addr address;            /* with the bits that count */
    int64_t counts[UVA__CLIENTS_KINDS]; /* what it has */
};

static struct in6_addr client_address(const struct in6_addr *address)
{
    struct in6_addr out = *address;

    if (!IN6_IS_ADDR_V4MAPPED(address))
        memset(out.s6_addr + 8, 0, 8);
    return out;
}

/* FNV-1a. */
static struct uva__client **bucket_of(struct uva__clients *clients,
                                      const struct in6_addr *address)
{
    uint32_t hash = 2166136261u;
    size_t i;

    for (i = 0; i < sizeof(address->s6_addr); i++)
        hash = (hash ^ address->s6_addr[i]) * 16777619u;
    return &clients->buckets[(hash ^ hash >> 16) % UVA__CLIENTS_BUCKETS];
}

/* Returns the pointer to the client, or to the end of its list. */
static struct uva__client **client_find(struct uva__clients *clients,
                                        const struct in6_addr *address)
{
    struct uva__client **at = bucket_of(clients, address);

    while (*at != NULL && memcmp(&(*at)->address, address, sizeof(*address)))
        at = &(*at)->next;
    return at;
}

int uva__clients_enter(struct uva__clients *clients,
                       enum uva__clients_kind kind,
                       const struct in6_addr *address,
                       struct uva__clients_entry *entry)
{
    const struct in6_addr key = client_address(address);
    struct uva__client **at;

    if (clients->most[kind] == 0)
        return 0;
    at = client_find(clients, &key);
    if (*at == NULL) {
        *at = calloc(1, sizeof(**at));
        if (*at == NULL)
            return ENOMEM;
        (*at)->address = key;
    }
    if ((*at)->counts[kind] >= clients->most[kind])
        return EDQUOT;
    (*at)->counts[kind]++;
    *entry = (struct uva__clients_entry){.client = *at, .kind = kind};
    return 0;
}

void uva__clients_leave(struct uva__clients *clients,
                        struct uva__clients_entry *entry)
{
    struct uva__client *client = entry->client, **at;
    int64_t left = 0;
    int kind;

    if (client == NULL)
        return;
    entry->client = NULL;
    client->counts[entry->kind]--;
    for (kind = 0; kind < UVA__CLIENTS_KINDS; kind++)
        left += client->counts[kind];
    if (left > 0)
        return;
    at = client_find(clients, &client->address);
    *at = client->next;
    free(client);
}
