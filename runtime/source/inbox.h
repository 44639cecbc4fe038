/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that other threads bring to the loop thread, in slots. Only the
 * thread that finds the inbox empty has to wake the loop, which takes all
 * batches that have come by then. */
#ifndef UVA_SOURCE_INBOX_H
#define UVA_SOURCE_INBOX_H

#include "base/mpsc.h"
#include "stream/kept.h"

struct uva__inbox {
    struct uva__mpsc fresh; /* put in since the last absorb */
    struct uva__kept ready; /* the loop thread's alone: to be taken */
};

/* Puts in a filled slot, which is the loop's from then on. Returns whether the
 * loop has to be woken. Thread: any. */
static inline bool uva__inbox_put(struct uva__inbox *inbox,
                                  struct uva__task *slot)
{
    return uva__mpsc_push(&inbox->fresh, &slot->link);
}

/* The batches that have come are ready now. Gives the first of them, which
 * leads to the others, or NULL. Thread: loop. */
static inline struct uva__link *uva__inbox_absorb(struct uva__inbox *inbox)
{
    struct uva__link *const first = uva__mpsc_take(&inbox->fresh);
    struct uva__link *link = first, *next;

    for (; link != NULL; link = next) {
        next = link->next;
        uva__kept_push(&inbox->ready,
                       uva__container_of(link, struct uva__task, link));
    }
    return first;
}

#endif
