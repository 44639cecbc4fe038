/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: each side advances its own counter and reads the other's.
 * Failures: only a wake-up that is lost. A side that is about to sleep
 * announces that and then checks again; a side with something new publishes it
 * and then checks whether the other sleeps. Both use exchanges, so one sees the
 * other. On close: the loop stops polling. */
#define _GNU_SOURCE
#include "ring.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "suite.h"

void ring_init(struct ring *ring, int32_t window, uint64_t spin_ns,
               uv_loop_t *loop, void (*on_wake)(void *ring))
{
    const size_t size = sizeof(*ring->slots) * (size_t)window;

    memset(ring, 0, sizeof(*ring));
    ring->slots = aligned_alloc(64, size);
    bench_check(ring->slots != NULL, "memory");
    memset(ring->slots, 0, size);
    ring->window = (uint64_t)window;
    ring->spin_ns = spin_ns;
    bell_init(&ring->bell, loop, on_wake, ring);
}

void ring_fini(struct ring *ring)
{
    free(ring->slots);
    bell_fini(&ring->bell);
}

bool ring_has_room(const struct ring *ring, uint64_t at)
{
    return at - atomic_load_explicit(&ring->head, memory_order_acquire) <
           ring->window;
}

bool ring_has_batch(const struct ring *ring, uint64_t at)
{
    return atomic_load_explicit(&ring->tail, memory_order_acquire) != at ||
           atomic_load_explicit(&ring->ended, memory_order_acquire);
}

/* ---- the thread sleeps -------------------------------------------------- */

static bool ring_spin(struct ring *ring,
                      bool (*ready)(const struct ring *ring, uint64_t at),
                      uint64_t at)
{
    const uint64_t until = ring->spin_ns > 0 ? uv_hrtime() + ring->spin_ns : 0;

    while (ring->spin_ns > 0 && uv_hrtime() < until)
        for (int i = 0; i < 16; i++) {
            if (ready(ring, at))
                return true;
            __builtin_ia32_pause();
        }
    return ready(ring, at);
}

void ring_sleep(struct ring *ring,
                bool (*ready)(const struct ring *ring, uint64_t at),
                uint64_t at)
{
    while (!ring_spin(ring, ready, at)) {
        (void)atomic_exchange(&ring->asleep, 1);
        if (!ready(ring, at))
            (void)syscall(SYS_futex, &ring->asleep, FUTEX_WAIT_PRIVATE, 1, NULL,
                          NULL, 0);
        atomic_store_explicit(&ring->asleep, 0, memory_order_relaxed);
    }
}

void ring_wake_thread(struct ring *ring)
{
    if (atomic_exchange(&ring->asleep, 0))
        (void)syscall(SYS_futex, &ring->asleep, FUTEX_WAKE_PRIVATE, 1, NULL,
                      NULL, 0);
}

/* ---- the loop sleeps ---------------------------------------------------- */

void ring_wake_loop(struct ring *ring)
{
    if (!atomic_exchange(&ring->armed, 1))
        bell_ring(&ring->bell);
}

bool ring_must_look_again(struct ring *ring,
                          bool (*ready)(const struct ring *ring, uint64_t at),
                          uint64_t at)
{
    (void)atomic_exchange(&ring->armed, 0);
    return ready(ring, at) && !atomic_exchange(&ring->armed, 1);
}
