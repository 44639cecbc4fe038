/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of one simulated schedule, for the library and its peers. No
 * memory is reused, so every access to a freed block is found, and so is every
 * block that was never freed. A violation ends the schedule. */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include "uvarrow/base.h"

/* Starts a new schedule; all blocks of the one before are gone. */
void arena_begin(void);

/* Makes the library's allocation number `n`, from 1, fail; 0: no failure. */
void arena_fail_at(int64_t n);

/* Return whether an allocation is set to fail, whether it was requested, and
 * how many allocations were requested. */
bool arena_may_fail(void);
bool arena_has_failed(void);
int64_t arena_was_requested(void);

/* The library's allocator. */
struct uva_allocator arena_allocator(void);

/* Returns zeroed memory for a peer; never NULL. `what` is static, and names the
 * block if it is never freed. */
void *arena_new(size_t size, const char *what);
void arena_free(void *block);

/* As arena_free(), for use as a free_ctx. */
void arena_free_ctx(void *ctx);

/* Replacements of malloc() and the like in the library's sources. */
void *sim_malloc(size_t size);
void *sim_calloc(size_t count, size_t size);
char *sim_strdup(const char *text);
void *sim_realloc(void *block, size_t size);
void *sim_aligned_alloc(size_t align, size_t size);
void sim_free(void *block);

/* Ends the schedule as failed unless every block was freed and not written to
 * afterwards. */
void arena_check(void);

#endif
