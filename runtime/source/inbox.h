/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that other threads bring to the loop thread, in slots. They are put
 * in under a lock; the loop takes it once for all batches that have come, not
 * for each of them. Only the thread that finds the inbox empty has to wake the
 * loop. */
#ifndef UVA_SOURCE_INBOX_H
#define UVA_SOURCE_INBOX_H

#include "base/atomic.h"
#include "stream/kept.h"

struct uva__inbox {
    struct uva__kept ready; /* the loop thread's alone: to be taken */
    struct uva__lock lock;  /* guards `locked`, and what its owner says */
    struct {
        struct uva__kept fresh; /* put in since the last absorb */
        int64_t count;          /* batches that were ready then */
        int64_t bytes;          /* in them */
        bool shut;              /* no more batches are wanted */
    } locked;
};

/* How many batches, and bytes, are not known to be taken. Thread: any, with the
 * lock. */
static inline int64_t uva__inbox_count_locked(const struct uva__inbox *inbox)
{
    return inbox->locked.count + inbox->locked.fresh.count;
}

static inline int64_t uva__inbox_bytes_locked(const struct uva__inbox *inbox)
{
    return inbox->locked.bytes + inbox->locked.fresh.bytes;
}

/* Puts in a filled slot, unless the inbox is shut. Returns whether the loop has
 * to be woken. Thread: any, with the lock. */
static inline bool uva__inbox_put_locked(struct uva__inbox *inbox,
                                         struct uva__task *slot)
{
    uva__kept_push(&inbox->locked.fresh, slot);
    return inbox->locked.fresh.count == 1;
}

/* The batches that have come are ready now. Thread: loop, with the lock. */
static inline void uva__inbox_absorb_locked(struct uva__inbox *inbox)
{
    struct uva__kept *fresh = &inbox->locked.fresh;

    uva__list_append(&inbox->ready.tasks, &fresh->tasks);
    inbox->ready.count += fresh->count;
    inbox->ready.bytes += fresh->bytes;
    *fresh = (struct uva__kept){0};
    inbox->locked.count = inbox->ready.count;
    inbox->locked.bytes = inbox->ready.bytes;
}

#endif
