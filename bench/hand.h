/* SPDX-License-Identifier: Apache-2.0 */
/* One run of what is written by hand: a loop and a thread with a ring between
 * them. Which of the two writes, and when each wakes the other, is the
 * caller's.
 */
#ifndef BENCH_HAND_H
#define BENCH_HAND_H

#include "host.h"
#include "ring.h"

struct hand {
    struct ring ring; /* first */
    struct feed feed;
    struct tally tally;          /* of who reads */
    const struct bench_how *how; /* borrows */
    uint64_t at;                 /* of the loop */
    double ended_ns;             /* when the reader had all */
};

/* Runs `thread` beside a loop that `on_wake` is called on, both with a hand,
 * until the thread has ended and the loop has closed its async. Returns how
 * long that took, in ns. */
double hand_play(const struct bench_case *self, const struct bench_how *how,
                 uv_async_cb on_wake, uv_thread_cb thread);

#endif
