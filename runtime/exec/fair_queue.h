/* SPDX-License-Identifier: Apache-2.0 */
/* A fair queue with places: elements of an earlier place go before elements of
 * a later one. Within a place, clients with queued elements are served
 * round-robin, one element each, and each client's own elements go by priority,
 * then first in, first out. No client is starved: a place, or a priority of one
 * client, that was passed over UVA__FAIR_QUEUE_PASSES times has the next turn.
 * Intrusive: no call allocates. The owner's lock guards it. */
#ifndef UVA_EXEC_FAIR_QUEUE_H
#define UVA_EXEC_FAIR_QUEUE_H

#include <stdint.h>

#include "base/list.h"

/* The places, in the order of service. */
enum uva__place {
    UVA__PLACE_NEW,    /* a consumer waits, and it has had few turns */
    UVA__PLACE_WAITED, /* a consumer waits */
    UVA__PLACE_AHEAD,  /* no consumer waits */
    UVA__PLACES
};

enum {
    UVA__FAIR_QUEUE_PASSES = 8,
    UVA__FAIR_QUEUE_RANKS = 3 /* positive, 0, negative */
};

/* Embedded in an element. All zeroes: not queued. */
struct uva__fair_queue_link {
    struct uva__fair_queue_link *next, *before; /* borrow: in its line */
    uint8_t place, rank;                        /* its line, while queued */
    bool queued;                                /* it is in a line */
};

/* Elements of one client, place and rank, first in, first out. */
struct uva__fair_queue_line {
    struct uva__fair_queue_link *head, *tail; /* borrow; NULL when empty */
};

/* The elements of one client in one place. */
struct uva__fair_queue_turn {
    struct uva__link link; /* in the round, while elements are queued */
    struct uva__fair_queue_line lines[UVA__FAIR_QUEUE_RANKS];
    uint8_t ranks; /* a bit for each rank in which an element is queued */
    uint8_t passed[UVA__FAIR_QUEUE_RANKS]; /* how often each was passed over */
};

/* One client. All zeroes: it has no element queued. */
struct uva__fair_queue_client {
    struct uva__fair_queue_turn turns[UVA__PLACES];
};

/* All zeroes is empty. */
struct uva__fair_queue {
    struct uva__list rounds[UVA__PLACES]; /* clients with elements, in turn */
    uint8_t places; /* a bit for each place in which an element is queued */
    uint8_t passed[UVA__PLACES]; /* how often each was passed over */
    int32_t ahead;               /* elements in the last place */
};

/* ---- lines --------------------------------------------------------------- */

static inline void uva__fair_queue_append(struct uva__fair_queue_line *line,
                                          struct uva__fair_queue_link *link)
{
    link->next = NULL;
    link->before = line->tail;
    if (line->tail == NULL)
        line->head = link;
    else
        line->tail->next = link;
    line->tail = link;
    link->queued = true;
}

static inline void uva__fair_queue_unlink(struct uva__fair_queue_line *line,
                                          struct uva__fair_queue_link *link)
{
    if (link->before == NULL)
        line->head = link->next;
    else
        link->before->next = link->next;
    if (link->next == NULL)
        line->tail = link->before;
    else
        link->next->before = link->before;
    link->queued = false;
}

static inline bool
uva__fair_queue_client_is_empty(const struct uva__fair_queue_client *client)
{
    unsigned bits = 0;

    for (int place = 0; place < UVA__PLACES; place++)
        bits |= client->turns[place].ranks;
    return bits == 0;
}

/* ---- turns --------------------------------------------------------------- */

static inline bool uva__fair_queue_is_empty(const struct uva__fair_queue *queue)
{
    return queue->places == 0;
}

/* The first place in which an element is queued; UVA__PLACES if the queue is
 * empty. */
static inline int uva__fair_queue_first(const struct uva__fair_queue *queue)
{
    int place = 0;

    while (place < UVA__PLACES && (queue->places >> place & 1) == 0)
        place++;
    return place;
}

/* Returns the first of `count` alternatives that has its bit set, unless a
 * later one was passed over too often. At least one bit is set. */
static inline int uva__fair_queue_choose(unsigned bits, uint8_t *passed,
                                         int count)
{
    int chosen = 0;

    while ((bits >> chosen & 1) == 0)
        chosen++;
    for (int later = count - 1; later > chosen; later--) {
        if ((bits >> later & 1) == 0)
            continue;
        if (passed[later] == UVA__FAIR_QUEUE_PASSES)
            chosen = later;
        else
            passed[later]++;
    }
    passed[chosen] = 0;
    return chosen;
}

/* Queues `link`, which is not queued, in `place`. Of `priority` only the sign
 * counts. */
static inline void uva__fair_queue_push(struct uva__fair_queue *queue,
                                        struct uva__fair_queue_client *client,
                                        struct uva__fair_queue_link *link,
                                        enum uva__place place, int priority)
{
    struct uva__fair_queue_turn *turn = &client->turns[place];

    link->place = (uint8_t)place;
    link->rank = (uint8_t)(1 - (priority > 0) + (priority < 0));
    if (turn->ranks == 0)
        uva__list_push(&queue->rounds[place], &turn->link);
    turn->ranks |= (uint8_t)(1U << link->rank);
    queue->places |= (uint8_t)(1U << place);
    queue->ahead += place == UVA__PLACE_AHEAD;
    uva__fair_queue_append(&turn->lines[link->rank], link);
}

/* Takes `link` out of its line. The caller updates the round of its place. */
static inline void uva__fair_queue_take(struct uva__fair_queue *queue,
                                        struct uva__fair_queue_turn *turn,
                                        struct uva__fair_queue_link *link)
{
    struct uva__fair_queue_line *line = &turn->lines[link->rank];

    uva__fair_queue_unlink(line, link);
    if (line->head == NULL)
        turn->ranks &= (uint8_t) ~(1U << link->rank);
    queue->ahead -= link->place == UVA__PLACE_AHEAD;
}

static inline void uva__fair_queue_update(struct uva__fair_queue *queue,
                                          int place)
{
    if (uva__list_is_empty(&queue->rounds[place]))
        queue->places &= (uint8_t) ~(1U << place);
}

/* Takes the next element in turn, of the last place only if `ahead`; NULL if
 * there is none. */
static inline struct uva__fair_queue_link *
uva__fair_queue_pop(struct uva__fair_queue *queue, bool ahead)
{
    const unsigned places =
        queue->places & ~((unsigned)!ahead << UVA__PLACE_AHEAD);
    struct uva__fair_queue_turn *turn;
    struct uva__fair_queue_link *link;
    int place, rank;

    if (places == 0)
        return NULL;
    place = uva__fair_queue_choose(places, queue->passed, UVA__PLACES);
    turn = uva__container_of(uva__list_pop(&queue->rounds[place]),
                             struct uva__fair_queue_turn, link);
    rank = uva__fair_queue_choose(turn->ranks, turn->passed,
                                  UVA__FAIR_QUEUE_RANKS);
    link = turn->lines[rank].head;
    uva__fair_queue_take(queue, turn, link);
    if (turn->ranks != 0)
        uva__list_push(&queue->rounds[place], &turn->link);
    uva__fair_queue_update(queue, place);
    return link;
}

/* Removes `link`, wherever it is. False if it is not queued. */
static inline bool uva__fair_queue_remove(struct uva__fair_queue *queue,
                                          struct uva__fair_queue_client *client,
                                          struct uva__fair_queue_link *link)
{
    struct uva__fair_queue_turn *turn = &client->turns[link->place];

    if (!link->queued)
        return false;
    uva__fair_queue_take(queue, turn, link);
    if (turn->ranks == 0)
        uva__list_remove(&queue->rounds[link->place], &turn->link);
    uva__fair_queue_update(queue, link->place);
    return true;
}

#endif
