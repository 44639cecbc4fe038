/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that threads post for the loop to look at, and who of them has to wake
 * it. What waking is, and what a node means, is uv/hub.c's.
 *
 * A poster publishes what it has, claims the node, puts it here and does what
 * it is told. The loop takes what there is, clears each node's claim before it
 * looks at what was published, and rests when nothing came meanwhile. */
#ifndef UVA_UV_INBOX_H
#define UVA_UV_INBOX_H

#include "core/mpsc.h"
#include "uv/node.h"

/* All zeroes is empty, and the loop asleep. */
struct uva__inbox {
    struct uva__mpsc posted; /* nodes that the loop is to look at */
    struct uva__word armed;  /* 1: the loop will look, nobody need wake it */
    struct uva__word closed; /* 1: nobody looks any more */
};

/* What the poster has to do now. */
enum uva__inbox_then {
    UVA__INBOX_NOTHING,
    UVA__INBOX_WAKE,   /* wake the loop */
    UVA__INBOX_DISPOSE /* nobody looks any more: take what there is, and let
                          go of it */
};

/* Whether the caller is to put the node: it is not in the inbox already.
 * Thread: any. */
static inline bool uva__inbox_claim(struct uva__node *node)
{
    return uva__word_exchange(&node->posted, 1) == 0;
}

/* Undoes the claim: what is published from now on needs another. Comes before
 * any look at it. Thread: who took the node out. */
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

/* The node around a link in the inbox; NULL for NULL. */
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

/* The loop is about to sleep: false if it must look once more. Thread: loop. */
static inline bool uva__inbox_rest(struct uva__inbox *inbox)
{
    uva__word_exchange(&inbox->armed, 0);
    return uva__mpsc_is_empty(&inbox->posted) ||
           uva__word_exchange(&inbox->armed, 1) != 0;
}

/* Nobody will look any more; what is in there is to be taken after this.
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
