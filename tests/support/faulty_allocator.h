/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails on cue and watches its blocks: counts them, checks
 * their sizes and ends when they come back, and spoils their contents before
 * and after use. A broken rule ends the process. Thread: any. */
#ifndef UVA_SUPPORT_FAULTY_ALLOCATOR_H
#define UVA_SUPPORT_FAULTY_ALLOCATOR_H

#include <stdatomic.h>

#include "uvarrow/base.h"

struct faulty_allocator {
    atomic_long fail_at;    /* which allocation fails, from 1; 0: none */
    atomic_long asked;      /* allocations asked for */
    atomic_long live;       /* blocks out */
    atomic_long live_bytes; /* what was asked for in them */
};

/* Fails the `fail_at`-th allocation from now on; 0: none. */
void faulty_allocator_init(struct faulty_allocator *faulty, long fail_at);

/* The functions to give away. Borrows `faulty`, as long as they are used. */
struct uva_allocator faulty_allocator_table(struct faulty_allocator *faulty);

long faulty_allocator_live(const struct faulty_allocator *faulty);
long faulty_allocator_live_bytes(const struct faulty_allocator *faulty);
long faulty_allocator_asked(const struct faulty_allocator *faulty);

/* Whether the allocation that was to fail has been asked for: false once a
 * sweep has come to its end. */
bool faulty_allocator_has_failed(const struct faulty_allocator *faulty);

#endif
