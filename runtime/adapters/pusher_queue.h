/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on their way from any number of threads to the loop: a queue with a
 * window, and the threads that wait for room in it. Who may push what, and who
 * is told of room, its user knows: from_pusher.
 *
 * There is room while the queue holds less than its window. A push that found
 * none is called again only when the queue has run down to the refill mark, and
 * nobody who comes later overtakes it. */
#ifndef UVA_ADAPTERS_PUSHER_QUEUE_H
#define UVA_ADAPTERS_PUSHER_QUEUE_H

#include "core/list.h"
#include "core/sync.h"
#include "stream/task.h"
#include "uv/hub.h"

/* One batch in the queue; reused, so that a steady flow allocates nothing. */
struct uva__pushed {
    struct uva__link link;         /* in one of the lists below */
    struct ArrowDeviceArray array; /* owns, while queued */
    int64_t bytes;                 /* of its buffers */
    char *metadata;                /* NULL, `room`, or owns */
    size_t metadata_size;          /* of that, in bytes */
    char room[UVA__TASK_ROOM];     /* for metadata that fits */
};

struct uva__pusher_queue {
    struct uva__hub *hub;     /* borrows: its user counts it */
    struct uva__node *node;   /* borrows: posted when there is news */
    struct uva_window window; /* with its defaults filled in */

    struct {                    /* the loop thread's alone */
        struct uva__list ready; /* owns: batches to be taken */
        struct uva__list spent; /* owns: taken since the last absorb */
        int64_t spent_count;    /* how many those are */
        int64_t spent_bytes;    /* and how large they were */
        bool room_owed;         /* somebody is to be told of room */
    } loop;

    struct uva__signal called; /* raised for all who wait for room */
    struct uva__lock lock;
    struct {
        struct uva__list fresh; /* owns: pushed since the last absorb */
        struct uva__list pool;  /* owns: not in use */
        int64_t count;          /* batches not known to be taken */
        int64_t bytes;          /* of those */
        int64_t waiting;        /* pushes that wait to be called */
        uint64_t calls;         /* how often they were called */
        bool asked;             /* a push was told that room would come */
        bool running;           /* the loop takes, and shuts us at the end */
        bool shut;              /* nothing more is wanted */
    } locked;
};

/* Sets up a queue in cleared memory. 0; EINVAL for a window that makes no
 * sense. Thread: any. */
UVA_MUST_CHECK int uva__pusher_queue_init(struct uva__pusher_queue *queue,
                                          struct uva__hub *hub,
                                          struct uva__node *node,
                                          const struct uva_window *window);

/* Frees what it owns; nobody uses it any more. Thread: any. */
void uva__pusher_queue_fini(struct uva__pusher_queue *queue);

/* Pushes `array` (takes it, if it returns 0), of `bytes`, with a copy of
 * `metadata` (NULL: none). Without room it waits as uva_pusher_push() says. 0;
 * EAGAIN, ETIMEDOUT, ENOMEM; EINVAL for malformed metadata; EPIPE once the
 * queue is shut or its loop has gone. Thread: any. */
UVA_MUST_CHECK int uva__pusher_queue_push(struct uva__pusher_queue *queue,
                                          struct ArrowDeviceArray *array,
                                          int64_t bytes, const char *metadata,
                                          int64_t timeout_ms);

/* The loop takes from now on, and will shut the queue. Thread: loop. */
void uva__pusher_queue_start(struct uva__pusher_queue *queue);

/* Looks at what was pushed, and calls those for whom there is room. Returns how
 * many batches there are to take. Thread: loop. */
int64_t uva__pusher_queue_absorb(struct uva__pusher_queue *queue);

/* Moves the first batch of an absorb to a free slot. Thread: loop. */
void uva__pusher_queue_take(struct uva__pusher_queue *queue,
                            struct uva__task *task);

/* Whether a push that was told so is to be told now that room has come; once.
 * The node is posted when it may be so. Thread: loop. */
bool uva__pusher_queue_has_news(struct uva__pusher_queue *queue);

/* Nothing more is wanted: discards all there is and sends the waiting away.
 * Thread: loop; any if it was never started. */
void uva__pusher_queue_shut(struct uva__pusher_queue *queue);

#endif
