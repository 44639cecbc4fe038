/* SPDX-License-Identifier: Apache-2.0 */
/* The list is read from its end. */
#include "proxies.h"

#include <string.h>

bool uva__proxies_trust(const struct uva__proxies *proxies,
                        const struct in6_addr *address)
{
    size_t i;

    for (i = 0; i < proxies->count; i++)
        if (uva__network_has(&proxies->networks[i], address))
            return true;
    return false;
}

/* Reads "192.0.2.1" and "2001:db8::1", also as "192.0.2.1:4711",
 * "[2001:db8::1]" and "[2001:db8::1]:4711", as some proxies write them. */
static bool entry_read(const char *text, size_t size, struct in6_addr *out)
{
    const char *colon = memchr(text, ':', size), *end;

    if (size > 0 && text[0] == '[') {
        end = memchr(text, ']', size);
        if (end == NULL || (end + 1 < text + size && end[1] != ':'))
            return false;
        return uva__network_read(text + 1, (size_t)(end - text - 1), out);
    }
    if (colon != NULL &&
        memchr(colon + 1, ':', size - (size_t)(colon + 1 - text)) == NULL)
        size = (size_t)(colon - text); /* one colon: a port follows */
    return uva__network_read(text, size, out);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct in6_addr uva__proxies_client(const struct uva__proxies *proxies,
                                    const struct in6_addr *peer,
                                    const char *forwarded)
{
    struct in6_addr client = *peer, next;
    const char *end = forwarded, *begin, *first;

    if (forwarded != NULL)
        end += strlen(forwarded);
    while (end != forwarded && uva__proxies_trust(proxies, &client)) {
        first = end;
        while (first > forwarded && first[-1] != ',')
            first--;
        begin = first;
        while (begin < end && is_blank(*begin))
            begin++;
        while (end > begin && is_blank(end[-1]))
            end--;
        if (!entry_read(begin, (size_t)(end - begin), &next))
            break;
        client = next;
        end = first > forwarded ? first - 1 : first;
    }
    return client;
}
