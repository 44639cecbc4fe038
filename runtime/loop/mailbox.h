/* SPDX-License-Identifier: Apache-2.0 */
/* The mailbox of the loop: nodes that threads post, and which thread has to
 * wake the loop. How that is done, and what a node means, is left to loop/rt.c.
 *
 * A poster publishes its data, claims the node, puts it here and acts on the
 * result. The loop takes all nodes, clears the claim of each before it reads
 * the published data, and sleeps when nothing was posted meanwhile. */
#ifndef UVA_UV_INBOX_H
#define UVA_UV_INBOX_H

#include "base/mpsc.h"
#include "loop/wakeup.h"

/* All zeroes is empty, and the loop asleep. */
struct uva__inbox {
    struct uva__mpsc posted; /* nodes to be visited */
    struct uva__word armed;  /* 1: the loop is awake or was woken */
    struct uva__word closed; /* 1: the loop takes no more nodes */
};

/* What the poster has to do now. */
enum uva__inbox_then {
    UVA__INBOX_NOTHING,
    UVA__INBOX_WAKE,   /* wake the loop */
    UVA__INBOX_DISPOSE /* it is closed: take all nodes and release them */
};

/* Whether the caller has to put the node: it is not in the mailbox already.
 * Thread: any. */
static inline bool uva__inbox_claim(struct uva__node *node)
{
    return uva__word_exchange(&node->posted, 1) == 0;
}

/* Undoes the claim: data published from now on needs another claim. The caller
 * reads published data only after this. Thread: that which took the node out.
 */
static inline void uva__inbox_unclaim(struct uva__node *node)
{
    uva__word_exchange(&node->posted, 0);
}

/* Puts a node that the caller has claimed. Thread: any. */
static inline enum uva__inbox_then uva__inbox_put(struct uva__inbox *inbox,
                                                  struct uva__node *node)
{
    uva__mpsc_push(&inbox->posted, &node->in_inbox);
    if (uva__word_load(&inbox->closed) != 0)
        return UVA__INBOX_DISPOSE;
    return uva__word_exchange(&inbox->armed, 1) == 0 ? UVA__INBOX_WAKE
                                                     : UVA__INBOX_NOTHING;
}

/* The node around a link in the mailbox; NULL for NULL. */
static inline struct uva__node *uva__inbox_node(struct uva__link *link)
{
    return link != NULL ? uva__container_of(link, struct uva__node, in_inbox)
                        : NULL;
}

/* Takes out all nodes; gives the oldest, which leads to the younger ones, or
 * NULL. Thread: loop; a poster that disposes of them. */
static inline struct uva__node *uva__inbox_take(struct uva__inbox *inbox)
{
    return uva__inbox_node(uva__mpsc_take(&inbox->posted));
}

/* The node posted after this one, or NULL; to be read before the node is
 * unclaimed. Thread: that which took the nodes out. */
static inline struct uva__node *uva__inbox_next(const struct uva__node *node)
{
    return uva__inbox_node(node->in_inbox.next);
}

/* The loop is about to sleep: false if it must check for nodes once more.
 * Thread: loop. */
static inline bool uva__inbox_rest(struct uva__inbox *inbox)
{
    uva__word_exchange(&inbox->armed, 0);
    return uva__mpsc_is_empty(&inbox->posted) ||
           uva__word_exchange(&inbox->armed, 1) != 0;
}

/* Closes the mailbox. The caller then takes the nodes that are still in it.
 * Thread: loop. */
static inline void uva__inbox_close(struct uva__inbox *inbox)
{
    uva__word_exchange(&inbox->closed, 1);
}

static inline bool uva__inbox_is_closed(const struct uva__inbox *inbox)
{
    return uva__word_load(&inbox->closed) != 0;
}

#endif
