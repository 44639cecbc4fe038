/* SPDX-License-Identifier: Apache-2.0 */
/* The mailbox of the loop: wake-ups that threads post, and which thread has to
 * wake the loop. loop/rt.c wakes the loop and runs the wake-ups.
 *
 * A poster publishes its data, claims the wake-up, puts it here and acts on the
 * result. The loop takes all wake-ups, clears the claim of each before it reads
 * the published data, and sleeps when no wake-up was posted meanwhile. */
#ifndef UVA_LOOP_MAILBOX_H
#define UVA_LOOP_MAILBOX_H

#include "base/mpsc.h"
#include "loop/wakeup.h"

/* All zeroes is empty, and the loop asleep. */
struct uva__mailbox {
    struct uva__mpsc posted;     /* wake-ups to be run */
    struct uva__atomic64 armed;  /* 1: the loop is awake or was woken */
    struct uva__atomic64 closed; /* 1: the loop takes no more wake-ups */
};

/* The next step of the poster. */
enum uva__mailbox_then {
    UVA__MAILBOX_NOTHING,
    UVA__MAILBOX_WAKE,   /* wake the loop */
    UVA__MAILBOX_DISPOSE /* it is closed: take and release all wake-ups */
};

/* Whether the caller has to put the wake-up: it is not in the mailbox already.
 * Thread: any. */
static inline bool uva__mailbox_claim(struct uva__wakeup *wakeup)
{
    return uva__atomic64_exchange(&wakeup->posted, 1) == 0;
}

/* Undoes the claim: data published from now on needs another claim. The caller
 * reads published data only after this. Thread: that which took the wake-up. */
static inline void uva__mailbox_unclaim(struct uva__wakeup *wakeup)
{
    uva__atomic64_exchange(&wakeup->posted, 0);
}

/* Puts a wake-up that the caller has claimed. Thread: any. */
static inline enum uva__mailbox_then
uva__mailbox_put(struct uva__mailbox *mailbox, struct uva__wakeup *wakeup)
{
    uva__mpsc_push(&mailbox->posted, &wakeup->in_mailbox);
    if (uva__atomic64_load(&mailbox->closed) != 0)
        return UVA__MAILBOX_DISPOSE;
    return uva__atomic64_exchange(&mailbox->armed, 1) == 0
               ? UVA__MAILBOX_WAKE
               : UVA__MAILBOX_NOTHING;
}

/* The wake-up around a link in the mailbox; NULL for NULL. */
static inline struct uva__wakeup *uva__mailbox_wakeup(struct uva__link *link)
{
    return link != NULL
               ? uva__container_of(link, struct uva__wakeup, in_mailbox)
               : NULL;
}

/* Takes out all wake-ups; gives the oldest, which leads to the younger ones, or
 * NULL. Thread: loop; a poster that disposes of them. */
static inline struct uva__wakeup *
uva__mailbox_take(struct uva__mailbox *mailbox)
{
    return uva__mailbox_wakeup(uva__mpsc_take(&mailbox->posted));
}

/* The wake-up posted after this one, or NULL; to be read before this one is
 * unclaimed. Thread: that which took them out. */
static inline struct uva__wakeup *
uva__mailbox_next(const struct uva__wakeup *wakeup)
{
    return uva__mailbox_wakeup(wakeup->in_mailbox.next);
}

/* The loop is about to sleep: false if it must check the mailbox again.
 * Thread: loop. */
static inline bool uva__mailbox_disarm(struct uva__mailbox *mailbox)
{
    uva__atomic64_exchange(&mailbox->armed, 0);
    return uva__mpsc_is_empty(&mailbox->posted) ||
           uva__atomic64_exchange(&mailbox->armed, 1) != 0;
}

/* Closes the mailbox. The caller then takes the wake-ups that are still in it.
 * Thread: loop. */
static inline void uva__mailbox_close(struct uva__mailbox *mailbox)
{
    uva__atomic64_exchange(&mailbox->closed, 1);
}

static inline bool uva__mailbox_is_closed(const struct uva__mailbox *mailbox)
{
    return uva__atomic64_load(&mailbox->closed) != 0;
}

#endif
