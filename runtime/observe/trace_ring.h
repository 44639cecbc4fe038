/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of trace events of fixed size, from any number of threads to the
 * thread that writes them to a file. A push takes no lock, makes no system call
 * and never waits: without room it counts the event as lost.
 *
 * The `turn` of a slot states its permitted use. It is the position of the next
 * push to it, or that plus one while the slot holds an event. A thread that
 * stops in the middle of a push holds up the reader, and no other push until
 * the queue is full. */
#ifndef UVA_OBSERVE_TRACE_RING_H
#define UVA_OBSERVE_TRACE_RING_H

#include "base/atomic.h"
#include "uvarrow/trace.h"

/* The number of events, a power of two. */
#define UVA__TRACE_RING_SIZE ((uint64_t)1 << 15)

/* One event, as it waits to be written. */
struct uva__trace_record {
    struct uva_trace_event event; /* `stream` and `stage_name` are not valid */
    int32_t thread;               /* number by which the system knows it */
    char stage[32];               /* the name of the stage, ended by a NUL */
    char stream[64]; /* the name of the stream, ended by a NUL; or empty */
};

struct uva__trace_slot {
    struct uva__atomic64 turn;       /* see above */
    struct uva__trace_record record; /* of the thread that may use it */
};

/* The two ends lie on cache lines of their own. */
struct uva__trace_ring {
    struct uva__atomic64 lost; /* events for which there was no room */
    struct uva__atomic64 tail; /* position of the next push */
    char apart[64];
    uint64_t head; /* position of the next event to read; the reader's */
    struct uva__trace_slot slots[UVA__TRACE_RING_SIZE];
};

/* Prepares a ring that is all zeroes. Thread: any, before the first push. */
static inline void uva__trace_ring_init(struct uva__trace_ring *ring)
{
    for (uint64_t i = 0; i < UVA__TRACE_RING_SIZE; i++)
        uva__atomic64_store(&ring->slots[i].turn, i);
}

/* Returns the slot at a position. */
static inline struct uva__trace_slot *
uva__trace_ring_slot(struct uva__trace_ring *ring, uint64_t position)
{
    return &ring->slots[position & (UVA__TRACE_RING_SIZE - 1)];
}

/* The ring is larger than most caches: has the slot that follows brought in
 * while a thread does its work. Unnamed streams write no more of it. */
static inline void uva__trace_ring_prefetch(struct uva__trace_ring *ring,
                                            uint64_t position)
{
    const char *slot = (const char *)uva__trace_ring_slot(ring, position);

    __builtin_prefetch(slot, 1);
    __builtin_prefetch(slot + 64, 1);
    __builtin_prefetch(slot + 128, 1);
}

/* Returns a slot to be filled in and published, and its position; NULL without
 * room. Thread: any. */
static inline struct uva__trace_slot *
uva__trace_ring_claim(struct uva__trace_ring *ring, uint64_t *position)
{
    uint64_t at = uva__atomic64_peek(&ring->tail);

    for (;;) {
        struct uva__trace_slot *slot = uva__trace_ring_slot(ring, at);
        const int64_t ahead = (int64_t)(uva__atomic64_load(&slot->turn) - at);

        if (ahead < 0) {
            uva__atomic64_add(&ring->lost, 1);
            return NULL;
        }
        if (ahead > 0) {
            at = uva__atomic64_peek(&ring->tail);
        } else if (uva__atomic64_cas(&ring->tail, &at, at + 1)) {
            uva__trace_ring_prefetch(ring, at + 1);
            *position = at;
            return slot;
        }
    }
}

/* Passes a slot that was claimed at `position` to the reader. Thread: any. */
static inline void uva__trace_ring_publish(struct uva__trace_slot *slot,
                                           uint64_t position)
{
    uva__atomic64_store(&slot->turn, position + 1);
}

/* Returns the oldest event, to be dropped after use; NULL if the ring is empty,
 * or if its push has not ended. Thread: the reader. */
static inline const struct uva__trace_record *
uva__trace_ring_peek(struct uva__trace_ring *ring)
{
    struct uva__trace_slot *slot = uva__trace_ring_slot(ring, ring->head);

    return uva__atomic64_load(&slot->turn) == ring->head + 1 ? &slot->record
                                                             : NULL;
}

/* Drops that event, so that its slot can be pushed to. Thread: the reader. */
static inline void uva__trace_ring_drop(struct uva__trace_ring *ring)
{
    uva__atomic64_store(&uva__trace_ring_slot(ring, ring->head)->turn,
                        ring->head + UVA__TRACE_RING_SIZE);
    ring->head++;
}

#endif
