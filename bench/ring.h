/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of batches between one thread that writes and one that reads, without
 * a lock: what somebody who knows how would write by hand in place of a stream.
 * One of the two is a libuv loop, woken by an uv_async_t; the other is a thread
 * that sleeps on a futex. The writer is woken when half the ring is free, the
 * reader when there is something in it. It knows nothing of errors, cancels,
 * closing or a second stream. */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "batch.h"

struct ring {
    struct ArrowDeviceArray *slots;      /* owns */
    uint64_t window;                     /* of them */
    uint64_t spin_ns;                    /* the thread spins so long before it
                                          sleeps; 0: not */
    alignas(64) _Atomic uint64_t tail;   /* written so far */
    atomic_bool ended;                   /* nothing more will be */
    alignas(64) _Atomic uint64_t head;   /* read so far */
    alignas(64) _Atomic uint32_t asleep; /* the thread is, or about to be */
    alignas(64) _Atomic uint32_t armed;  /* the loop has been woken and has not
                                            looked yet */
    uv_async_t async;
};

/* Prepares a ring of `window` batches whose loop is called by `on_wake`. */
void ring_init(struct ring *ring, int32_t window, uint64_t spin_ns,
               uv_loop_t *loop, uv_async_cb on_wake);

/* Frees it; its async is closed by the loop. */
void ring_fini(struct ring *ring);

/* Waits until ready(ring, at) holds. The thread. */
void ring_sleep(struct ring *ring,
                bool (*ready)(const struct ring *ring, uint64_t at),
                uint64_t at);

/* Wakes the thread if it sleeps. The loop. */
void ring_wake_thread(struct ring *ring);

/* Has the loop look, unless it is about to. The thread. */
void ring_wake_loop(struct ring *ring);

/* The loop is about to wait: whether it may, for ready() does not hold. If it
 * returns true, nobody will wake the loop: look once more. */
bool ring_must_look_again(struct ring *ring,
                          bool (*ready)(const struct ring *ring, uint64_t at),
                          uint64_t at);

/* Whether there is a free slot for batch `at`, or one is there. */
bool ring_has_room(const struct ring *ring, uint64_t at);
bool ring_has_batch(const struct ring *ring, uint64_t at);

/* Whether half the window ends with batch `at` - 1. */
static inline bool ring_at_half(const struct ring *ring, uint64_t at)
{
    return ring->window < 2 || (at & (ring->window / 2 - 1)) == 0;
}

/* The slot of batch `at`. */
static inline struct ArrowDeviceArray *ring_slot(const struct ring *ring,
                                                 uint64_t at)
{
    return &ring->slots[at & (ring->window - 1)];
}

#endif
