/* SPDX-License-Identifier: Apache-2.0 */
/* An intrusive queue: first in, first out, singly linked. The element holds the
 * link, so no call allocates or fails. For one thread at a time, or under its
 * owner's lock. */
#ifndef UVA_BASE_LIST_H
#define UVA_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* The struct that `member` at `pointer` is part of. */
#define uva__container_of(pointer, type, member)                               \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Embedded in an element, which is in at most one list at a time per link. */
struct uva__link {
    struct uva__link *next; /* borrows: the next one, or NULL */
};

/* All zeroes is an empty list. */
struct uva__list {
    struct uva__link *head; /* borrows: the first, or NULL */
    struct uva__link *tail; /* borrows: the last; unspecified when empty */
};

static inline bool uva__list_is_empty(const struct uva__list *list)
{
    return list->head == NULL;
}

static inline void uva__list_push(struct uva__list *list,
                                  struct uva__link *link)
{
    link->next = NULL;
    if (list->head == NULL)
        list->head = link;
    else
        list->tail->next = link;
    list->tail = link;
}

/* Puts `link` before the first one. */
static inline void uva__list_push_front(struct uva__list *list,
                                        struct uva__link *link)
{
    if (list->head == NULL)
        list->tail = link;
    link->next = list->head;
    list->head = link;
}

static inline struct uva__link *uva__list_pop(struct uva__list *list)
{
    struct uva__link *link = list->head;

    if (link != NULL)
        list->head = link->next;
    return link;
}

/* Appends all elements of `from` to `to`. */
static inline void uva__list_append(struct uva__list *to,
                                    struct uva__list *from)
{
    if (from->head == NULL)
        return;
    if (to->head == NULL)
        to->head = from->head;
    else
        to->tail->next = from->head;
    to->tail = from->tail;
    from->head = NULL;
}

/* Prepends all elements of `from` to `to`. */
static inline void uva__list_prepend(struct uva__list *to,
                                     struct uva__list *from)
{
    uva__list_append(from, to);
    *to = *from;
    from->head = NULL;
}

/* Removes `link`, which is in the list, wherever it is. Steps through all
 * elements before it. */
static inline void uva__list_remove(struct uva__list *list,
                                    struct uva__link *link)
{
    struct uva__link **at = &list->head, *before = NULL;

    while (*at != link) {
        assert(*at != NULL);
        before = *at;
        at = &before->next;
    }
    *at = link->next;
    if (list->tail == link)
        list->tail = before;
}

#endif
