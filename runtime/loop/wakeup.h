/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that any thread can wake on the loop, and their references. How a
 * wake-up reaches the loop is in loop/rt.h. */
#ifndef UVA_LOOP_WAKEUP_H
#define UVA_LOOP_WAKEUP_H

#include "base/atomic.h"
#include "base/list.h"

struct uva__wakeup;

/* The functions of a kind of wake-up. */
struct uva__wakeup_ops {
    /* Does the object's work, on the loop thread. Returns whether work is left:
     * then it is run again, after the other wake-ups in the queue. */
    bool (*on_wakeup)(struct uva__wakeup *wakeup);
    /* Frees the object around the wake-up after its last reference was
     * released; any thread, no lock held. NULL: it lives as long as the runtime
     * core. */
    void (*free)(struct uva__wakeup *wakeup);
};

/* Part of an object that threads wake on the loop, and the count of references
 * to that object. All zeroes but for the members that uva__wakeup_init() sets.
 */
struct uva__wakeup {
    const struct uva__wakeup_ops *ops; /* static */
    struct uva__atomic64 refs;         /* a due run has a reference, too */
    struct uva__atomic64 posted;       /* 1 while in the mailbox */
    struct uva__link in_mailbox;       /* in the mailbox */
    struct uva__link link;             /* in the run queue; loop only */
    bool queued;                       /* is in the run queue; loop only */
};

/* Gives the object its kind and its first references. Thread: that which makes
 * the object. */
static inline void uva__wakeup_init(struct uva__wakeup *wakeup,
                                    const struct uva__wakeup_ops *ops,
                                    uint64_t refs)
{
    wakeup->ops = ops;
    uva__atomic64_store(&wakeup->refs, refs);
}

/* Counts a reference to the object around the wake-up; the last release frees
 * the object, on that thread. Thread: any. */
static inline void uva__wakeup_acquire(struct uva__wakeup *wakeup)
{
    uva__atomic64_add(&wakeup->refs, 1);
}

static inline void uva__wakeup_release(struct uva__wakeup *wakeup)
{
    if (uva__atomic64_sub(&wakeup->refs, 1) == 1 && wakeup->ops->free != NULL)
        wakeup->ops->free(wakeup);
}

#endif
