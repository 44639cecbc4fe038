/* SPDX-License-Identifier: Apache-2.0 */
/* What can be woken on the loop: how, is in uv/hub.h. */
#ifndef UVA_UV_NODE_H
#define UVA_UV_NODE_H

#include "core/list.h"
#include "core/sync.h"

struct uva__node;

/* What a kind of node does. */
struct uva__node_ops {
    /* Does what is to be done, on the loop thread. Returns whether there is
     * more: then it is visited again after the others. */
    bool (*visit)(struct uva__node *node);
    /* Frees the object around the node, whose last reference was released; any
     * thread, no lock held. NULL: the object lasts as long as the hub. */
    void (*free)(struct uva__node *node);
};

/* Part of an object that threads wake on the loop, and the count of references
 * to that object. All zeroes but for what uva__node_init() sets. */
struct uva__node {
    const struct uva__node_ops *ops; /* static */
    struct uva__word refs;           /* one of them while it is to be visited */
    struct uva__word posted;         /* 1 while in the inbox */
    struct uva__link in_inbox;       /* among those posted */
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
