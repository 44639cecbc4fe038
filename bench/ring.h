/* SPDX-License-Identifier: Apache-2.0 */
/* A lock-free ring of batches between one writing and one reading thread: the
 * code that an expert would write by hand instead of a stream. One side is a
 * libuv loop, woken as the library wakes it, by a bell; the
 * other is a thread that sleeps on a futex. The writer is woken when half the
 * ring is free, the reader when it is not empty. The ring has no errors, no
 * cancel, no close and no second stream.
 */
#ifndef BENCH_RING_H
#define BENCH_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "batch.h"
#include "bell.h"

struct ring {
    struct ArrowDeviceArray *slots; /* owns */
    uint64_t window;                /* number of slots */
    uint64_t spin_ns; /* spin time of the thread before it sleeps */
    alignas(64) _Atomic uint64_t tail;   /* batches written so far */
    atomic_bool ended;                   /* the writer is finished */
    alignas(64) _Atomic uint64_t head;   /* batches read so far */
    alignas(64) _Atomic uint32_t asleep; /* the thread sleeps or is about to */
    alignas(64) _Atomic uint32_t armed;  /* the loop has a pending wake-up */
    struct bell bell;                    /* wakes the loop */
};

/* Prepares a ring of `window` batches; `on_wake` runs on `loop`. */
void ring_init(struct ring *ring, int32_t window, uint64_t spin_ns,
               uv_loop_t *loop, void (*on_wake)(void *ring));

/* Frees the ring; the loop closes its bell. */
void ring_fini(struct ring *ring);

/* Waits until ready(ring, at) holds. Thread: the other thread. */
void ring_sleep(struct ring *ring,
                bool (*ready)(const struct ring *ring, uint64_t at),
                uint64_t at);

/* Wakes the thread if it sleeps. Thread: loop. */
void ring_wake_thread(struct ring *ring);

/* Wakes the loop, unless it has been woken already. Thread: the other
 * thread. */
void ring_wake_loop(struct ring *ring);
/* Called before the loop waits, because ready() does not hold. If it returns
 * true, ready() holds by now and no wake-up follows: check again. Thread: loop.
 */
bool ring_must_look_again(struct ring *ring,
                          bool (*ready)(const struct ring *ring, uint64_t at),
                          uint64_t at);

/* Return whether there is a free slot for batch `at`, and whether batch `at` is
 * in its slot. */
bool ring_has_room(const struct ring *ring, uint64_t at);
bool ring_has_batch(const struct ring *ring, uint64_t at);

/* Returns whether half the window ends with batch `at` - 1. */
static inline bool ring_at_half(const struct ring *ring, uint64_t at)
{
    return ring->window < 2 || (at & (ring->window / 2 - 1)) == 0;
}

/* Returns the slot of batch `at`. */
static inline struct ArrowDeviceArray *ring_slot(const struct ring *ring,
                                                 uint64_t at)
{
    return &ring->slots[at & (ring->window - 1)];
}

#endif
