/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that any number of threads push to the loop: a queue with a window,
 * and the pushes that wait for room in it. The rules of a push, and the
 * callback for room, are in from_pusher. Each batch is in the slot in which it
 * is offered.
 *
 * There is room while the queue holds less than its window. A push that found
 * none is woken only when the queue has run down to the refill mark, and no
 * later push overtakes it. */
#ifndef UVA_SOURCE_PUSH_QUEUE_H
#define UVA_SOURCE_PUSH_QUEUE_H

#include "base/atomic.h"
#include "base/list.h"
#include "loop/rt.h"
#include "stream/source.h"
#include "stream/task.h"

struct uva__push_queue {
    struct uva__rt *rt;         /* borrows: the pusher holds a reference */
    struct uva__wakeup *wakeup; /* borrows: posted for new batches and room */
    struct uva_window window;   /* with its defaults filled in */

    struct {                    /* the loop thread's alone */
        struct uva__list ready; /* owns: slots to be taken */
        int64_t taken_count;    /* batches taken since the last absorb */
        int64_t taken_bytes;    /* their size */
        bool room_due;          /* room has to be reported */
    } loop;

    struct uva__futex admitted; /* raised for all pushes that wait */
    struct uva__lock lock;
    struct {
        struct uva__list fresh; /* owns: slots pushed since the last absorb
                                 */
        int64_t count;          /* batches not known to be taken */
        int64_t bytes;          /* of those batches */
        int64_t waiting;        /* pushes that wait to be admitted */
        uint64_t admissions;    /* how often pushes were admitted */
        bool room_wanted;       /* a push returned EAGAIN: room has to be
                                   reported */
        bool running;           /* the loop takes, and shuts the queue at the
                                   end */
        bool shut;              /* no more batches are wanted */
    } locked;
};

/* Initialises a queue in cleared memory. 0; ENOMEM; EINVAL for an invalid
 * window. Thread: any. */
UVA_MUST_CHECK int uva__push_queue_init(struct uva__push_queue *queue,
                                        struct uva__rt *rt,
                                        struct uva__wakeup *wakeup,
                                        const struct uva_window *window);

/* Frees what it owns; the queue is not used any more. Thread: any. */
void uva__push_queue_fini(struct uva__push_queue *queue);

/* Pushes `array` (takes it, if it returns 0), of `bytes`, with a copy of
 * `metadata` (NULL: none); `meter` counts the wake-up of the loop. Without room
 * it waits as documented at uva_pusher_push(). 0; EAGAIN, ETIMEDOUT, ENOMEM;
 * EINVAL for malformed metadata; EPIPE once the queue is shut or its runtime is
 * closed. Thread: any. */
UVA_MUST_CHECK int uva__push_queue_push(struct uva__push_queue *queue,
                                        struct uva__meter *meter,
                                        struct ArrowDeviceArray *array,
                                        int64_t bytes, const char *metadata,
                                        int64_t timeout_ms);

/* Notes that the loop takes batches from now on, and will shut the queue.
 * Thread: loop. */
void uva__push_queue_start(struct uva__push_queue *queue);

/* Collects the batches that were pushed, and admits pushes for which there is
 * room. States the contents of the queue for `source`. Returns how many batches
 * can be taken. Thread: loop. */
int64_t uva__push_queue_absorb(struct uva__push_queue *queue,
                               struct uva__source *source);

/* Gives the first batch of an absorb. Thread: loop. */
struct uva__task *uva__push_queue_take(struct uva__push_queue *queue);

/* Returns whether room has to be reported now, to a program that got EAGAIN;
 * once. The wake-up is posted when this may be so. Thread: loop. */
bool uva__push_queue_has_room(struct uva__push_queue *queue);

/* Shuts the queue: discards all batches and makes pushes that wait return
 * EPIPE. Thread: loop; any if it was never started. */
void uva__push_queue_shut(struct uva__push_queue *queue);

#endif
