/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that any number of threads push to the loop: an inbox with a window,
 * and the pushes that wait for room in it. The rules of a push, and the
 * callback for room, are in from_pusher. Each batch is in the slot in which it
 * is offered.
 *
 * There is room while the inbox holds less than its window. A push that waits
 * for room is woken only when the inbox has run down to the refill mark, and no
 * later push that waits overtakes it. A push that does not wait exceeds the
 * window. */
#ifndef UVA_SOURCE_PUSH_QUEUE_H
#define UVA_SOURCE_PUSH_QUEUE_H

#include "source/inbox.h"
#include "stream/window.h"

struct uva__push_queue {
    struct uva__rt *rt;        /* borrows: the pusher holds a reference */
    struct uva__window window; /* with its defaults filled in */
    struct uva__inbox inbox;   /* filled under the lock */
    bool
        room_due; /* the loop thread's: room has to be reported, by a wake-up */
    struct uva__futex admitted; /* raised for all pushes that wait */
    struct uva__lock lock;
    struct {
        int64_t count;       /* batches not known to be taken */
        int64_t bytes;       /* of those batches */
        int64_t waiting;     /* pushes that wait to be admitted */
        uint64_t admissions; /* how often pushes were admitted */
        bool room_wanted;    /* a push found the window full: room has to be
                                reported */
        bool shut;           /* no more batches are wanted */
        bool running; /* the loop takes, and shuts the queue at the end */
    } locked;
};

/* Pushes `array` (takes it, if it returns 0 or EAGAIN), of `bytes`, with a copy
 * of `metadata` (NULL: there is none), and says whether the loop has to be
 * woken. Waits for room first, unless `timeout_ms` is 0. 0; EAGAIN: pushed,
 * with timeout 0, and there is no more room; ETIMEDOUT; ENOMEM; EINVAL for
 * malformed metadata; EPIPE once the queue is shut or its runtime is closed.
 * Thread: any. */
UVA_MUST_CHECK int uva__push_queue_push(struct uva__push_queue *queue,
                                        struct ArrowDeviceArray *array,
                                        int64_t bytes, const char *metadata,
                                        int64_t timeout_ms, bool *first);

/* Notes that the loop takes batches from now on, and will shut the queue.
 * Thread: loop. */
void uva__push_queue_start(struct uva__push_queue *queue);

/* Collects the batches that were pushed, and admits pushes for which there is
 * room. Thread: loop. */
void uva__push_queue_absorb(struct uva__push_queue *queue);

/* Returns whether room has to be reported now, to a program that got EAGAIN:
 * once. Thread: loop. */
bool uva__push_queue_has_room(struct uva__push_queue *queue);

/* Shuts the queue: discards all batches and makes pushes that wait return
 * EPIPE. Thread: loop; any if it was never started. */
void uva__push_queue_shut(struct uva__push_queue *queue);

#endif
