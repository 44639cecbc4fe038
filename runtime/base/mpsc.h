/* SPDX-License-Identifier: Apache-2.0 */
/* A stack without a lock: many threads push, one takes the whole stack at once,
 * in the order in which the elements were pushed. Intrusive: no call allocates.
 *
 * Push never waits; it tries again only while other threads push. As elements
 * are never taken one by one, an element may be pushed again as soon as it was
 * taken: there is no ABA problem. */
#ifndef UVA_BASE_MPSC_H
#define UVA_BASE_MPSC_H

#include "base/atomic.h"
#include "base/list.h"

/* All zeroes is empty. */
struct uva__mpsc {
    struct uva__atomic_ptr
        newest; /* borrows: links to the one pushed before it */
};

/* Pushes a link that is not in the stack. Writes of the caller before this are
 * seen by the thread that takes the element. Returns whether the stack was
 * empty. Thread: any. */
static inline bool uva__mpsc_push(struct uva__mpsc *stack,
                                  struct uva__link *link)
{
    void *newest = uva__atomic_ptr_load(&stack->newest);

    do
        link->next = newest;
    while (!uva__atomic_ptr_cas(&stack->newest, &newest, link));
    return newest == NULL;
}

/* Takes out all elements; gives the oldest, which leads to the younger ones, or
 * NULL. Thread: the consumer, one at a time. */
static inline struct uva__link *uva__mpsc_take(struct uva__mpsc *stack)
{
    struct uva__link *link = uva__atomic_ptr_exchange(&stack->newest, NULL);
    struct uva__link *oldest = NULL, *next;

    for (; link != NULL; link = next) {
        next = link->next;
        link->next = oldest;
        oldest = link;
    }
    return oldest;
}

/* Whether the stack has been empty since the last take. Thread: any. */
static inline bool uva__mpsc_is_empty(const struct uva__mpsc *stack)
{
    return uva__atomic_ptr_load(&stack->newest) == NULL;
}

#endif
