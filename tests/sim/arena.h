/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of one simulated schedule, for the library and for its peers:
 * nothing is used twice, so whatever touches a block that was given back is
 * found, and whatever was not given back too. A broken rule ends the
 * schedule. */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include "uvarrow/base.h"

/* Begins anew; all blocks of the schedule before are gone. */
void arena_begin(void);

/* The library's allocation number `n`, from 1, fails; 0: none. */
void arena_fail_at(int64_t n);

/* Whether there is one; whether it has been asked for; how many have been. */
bool arena_may_fail(void);
bool arena_has_failed(void);
int64_t arena_asked(void);

/* The library's allocator. */
struct uva_allocator arena_allocator(void);

/* Cleared memory for a peer; never NULL. `what` is static, and named when the
 * block is never given back. */
void *arena_new(size_t size, const char *what);
void arena_free(void *block);

/* The same, for a free_ctx. */
void arena_free_ctx(void *ctx);

/* What the library's sources are compiled with in place of malloc() and the
 * like. */
void *sim_malloc(size_t size);
void *sim_calloc(size_t count, size_t size);
void *sim_aligned_alloc(size_t align, size_t size);
void sim_free(void *block);

/* Ends the schedule as failed unless every block came back, and nobody wrote
 * to one after that. */
void arena_check(void);

#endif
