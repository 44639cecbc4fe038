/* SPDX-License-Identifier: Apache-2.0 */
/* A fair queue: each client queues its own elements, and clients with queued
 * elements are served round-robin, one element each. Intrusive: nothing is
 * allocated. The owner's lock guards it. */
#ifndef UVA_UV_ROTA_H
#define UVA_UV_ROTA_H

#include "base/list.h"

/* One client. All zeroes: it has no element queued. */
struct uva__party {
    struct uva__link link;    /* in the round, while elements are queued */
    struct uva__list waiting; /* its elements, first in, first out */
};

static inline void uva__rota_push(struct uva__list *round,
                                  struct uva__party *party,
                                  struct uva__link *link)
{
    if (uva__list_is_empty(&party->waiting))
        uva__list_push(round, &party->link);
    uva__list_push(&party->waiting, link);
}

/* Takes the next element in turn; NULL if none is queued. */
static inline struct uva__link *uva__rota_pop(struct uva__list *round)
{
    struct uva__link *first = uva__list_pop(round), *link;
    struct uva__party *party;

    if (first == NULL)
        return NULL;
    party = uva__container_of(first, struct uva__party, link);
    link = uva__list_pop(&party->waiting);
    if (!uva__list_is_empty(&party->waiting))
        uva__list_push(round, &party->link);
    return link;
}

/* Removes `link`, wherever it is. False if it is not queued. */
static inline bool uva__rota_remove(struct uva__list *round,
                                    struct uva__party *party,
                                    struct uva__link *link)
{
    if (!uva__list_remove(&party->waiting, link))
        return false;
    if (uva__list_is_empty(&party->waiting))
        (void)uva__list_remove(round, &party->link);
    return true;
}

#endif
