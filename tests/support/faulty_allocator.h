/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails on request and checks its blocks: it counts them,
 * checks their sizes and bounds when they are freed, and fills their contents
 * before and after use. A violation ends the process. Thread: any. */
#ifndef UVA_SUPPORT_FAULTY_ALLOCATOR_H
#define UVA_SUPPORT_FAULTY_ALLOCATOR_H

#include <stdatomic.h>

#include "uvarrow/base.h"

struct faulty_allocator {
    atomic_long fail_at;    /* allocation that fails, from 1; 0: no failure */
    atomic_long asked;      /* allocations requested */
    atomic_long live;       /* blocks not freed */
    atomic_long live_bytes; /* bytes requested for these */
};

/* Makes the `fail_at`-th allocation from now on fail; 0: no failure. */
void faulty_allocator_init(struct faulty_allocator *faulty, long fail_at);

/* Returns the allocator, which borrows `faulty` as long as it is used. */
struct uva_allocator faulty_allocator_table(struct faulty_allocator *faulty);

long faulty_allocator_live(const struct faulty_allocator *faulty);
long faulty_allocator_live_bytes(const struct faulty_allocator *faulty);
long faulty_allocator_asked(const struct faulty_allocator *faulty);

/* Returns whether the failing allocation was reached. False means that a sweep
 * is complete. */
bool faulty_allocator_has_failed(const struct faulty_allocator *faulty);

#endif
