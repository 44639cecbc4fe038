/* SPDX-License-Identifier: Apache-2.0 */
/* What can be woken on the loop: how, is in uv/hub.h. */
#ifndef UVA_UV_NODE_H
#define UVA_UV_NODE_H

#include "core/list.h"
#include "core/sync.h"

struct uva__node;

/* What can be woken on the loop. Waiting to be visited holds a count. */
struct uva__node_ops {
    /* Does what is to be done, on the loop thread. Returns whether there is
     * more: then it is visited again after the others. */
    bool (*visit)(struct uva__node *node);
    /* Counts and uncounts the object around the node; any thread, no lock
     * held. Both NULL: its memory lasts as long as the hub. */
    void (*acquire)(struct uva__node *node);
    void (*release)(struct uva__node *node);
};

/* Part of an object that is woken by threads. All zeroes but `ops`. */
struct uva__node {
    const struct uva__node_ops *ops; /* static */
    struct uva__word posted;         /* 1 while in the inbox */
    struct uva__link in_inbox;       /* among those posted */
    struct uva__link link;           /* in the run queue; loop only */
    bool queued;                     /* is in the run queue; loop only */
};

#endif
