/* SPDX-License-Identifier: Apache-2.0 */
/* A fair queue: each client queues its own elements, and clients with queued
 * elements are served round-robin, one element each. Intrusive: nothing is
 * allocated. The owner's lock guards it. */
#ifndef UVA_EXEC_FAIR_QUEUE_H
#define UVA_EXEC_FAIR_QUEUE_H

#include "base/list.h"

/* One client. All zeroes: it has no element queued. */
struct uva__fair_queue_client {
    struct uva__link link;    /* in the round, while elements are queued */
    struct uva__list waiting; /* its elements, first in, first out */
};

static inline void uva__fair_queue_push(struct uva__list *round,
                                        struct uva__fair_queue_client *client,
                                        struct uva__link *link)
{
    if (uva__list_is_empty(&client->waiting))
        uva__list_push(round, &client->link);
    uva__list_push(&client->waiting, link);
}

/* Takes the next element in turn; NULL if none is queued. */
static inline struct uva__link *uva__fair_queue_pop(struct uva__list *round)
{
    struct uva__link *first = uva__list_pop(round), *link;
    struct uva__fair_queue_client *client;

    if (first == NULL)
        return NULL;
    client = uva__container_of(first, struct uva__fair_queue_client, link);
    link = uva__list_pop(&client->waiting);
    if (!uva__list_is_empty(&client->waiting))
        uva__list_push(round, &client->link);
    return link;
}

/* Removes `link`, wherever it is. False if it is not queued. */
static inline bool uva__fair_queue_remove(struct uva__list *round,
                                          struct uva__fair_queue_client *client,
                                          struct uva__link *link)
{
    if (!uva__list_remove(&client->waiting, link))
        return false;
    if (uva__list_is_empty(&client->waiting))
        (void)uva__list_remove(round, &client->link);
    return true;
}

#endif
