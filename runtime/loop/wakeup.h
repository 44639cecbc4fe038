/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that any thread can wake on the loop, and their references. How a
 * wake-up reaches the loop is in loop/rt.h. */
#ifndef UVA_UV_NODE_H
#define UVA_UV_NODE_H

#include "base/list.h"
#include "base/atomic.h"

struct uva__node;

/* What a kind of node does. */
struct uva__node_ops {
    /* Does the object's work, on the loop thread. Returns whether work is left:
     * then it is visited again, after the other nodes in the queue. */
    bool (*visit)(struct uva__node *node);
    /* Frees the object around the node after its last reference was released;
     * any thread, no lock held. NULL: it lives as long as the runtime core. */
    void (*free)(struct uva__node *node);
};

/* Part of an object that threads wake on the loop, and the count of references
 * to that object. All zeroes but for what uva__node_init() sets. */
struct uva__node {
    const struct uva__node_ops *ops; /* static */
    struct uva__word refs;           /* one of them while a visit is due */
    struct uva__word posted;         /* 1 while in the mailbox */
    struct uva__link in_inbox;       /* in the mailbox */
    struct uva__link link;           /* in the run queue; loop only */
    bool queued;                     /* is in the run queue; loop only */
};

/* Gives the object its kind and its first references. Thread: that which makes
 * the object. */
static inline void uva__node_init(struct uva__node *node,
                                  const struct uva__node_ops *ops,
                                  uint64_t refs)
{
    node->ops = ops;
    uva__word_store(&node->refs, refs);
}

/* Counts a reference to the object around the node; the last release frees the
 * object, on that thread. Thread: any. */
static inline void uva__node_acquire(struct uva__node *node)
{
    uva__word_add(&node->refs, 1);
}

static inline void uva__node_release(struct uva__node *node)
{
    if (uva__word_sub(&node->refs, 1) == 1 && node->ops->free != NULL)
        node->ops->free(node);
}

#endif
