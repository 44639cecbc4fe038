/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the version written by hand: a loop and a thread with a ring
 * between them. The caller decides which of the two writes, and when each wakes
 * the other. */
#ifndef BENCH_HAND_H
#define BENCH_HAND_H

#include "host.h"
#include "ring.h"

struct hand {
    struct ring ring; /* first */
    struct input input;
    struct tally tally;          /* batches seen by the reader */
    const struct bench_how *how; /* borrows */
    uint64_t at;                 /* position of the loop */
    double ended_ns;             /* when the reader had read everything */
};

/* Runs `thread` beside a loop that calls `on_wake`, both with a struct hand,
 * until the thread has ended and the loop has closed its bell. Returns the
 * time that took, in ns. */
double hand_play(const struct bench_case *self, const struct bench_how *how,
                 void (*on_wake)(void *hand), uv_thread_cb thread);

#endif
