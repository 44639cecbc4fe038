/* SPDX-License-Identifier: Apache-2.0 */
/* Type-stable memory: blocks of one size, which are reused after a time in
 * quarantine, unless their user states that they need no quarantine, and go
 * back to the allocator only all together. So a stale pointer still leads to a
 * block of the same type. For one thread at a time. */
#ifndef UVA_BASE_SLAB_H
#define UVA_BASE_SLAB_H

#include "base/list.h"
#include "uvarrow/base.h"

/* A new block is cleared. A block that is put back keeps its contents until it
 * is taken again, but for its link. */
struct uva__slab {
    const struct uva_allocator *allocator; /* borrows */
    size_t size;               /* of a block; a multiple of `align` */
    size_t align;              /* of a block; a power of two */
    size_t link_offset;        /* where in a block its struct uva__link lies */
    size_t rest;               /* blocks in quarantine before one is reused */
    size_t step;               /* blocks allocated at once; never changed */
    size_t resting;            /* blocks in quarantine now */
    struct uva__list used;     /* those blocks, the oldest first */
    struct uva__list fresh;    /* blocks never used, trimmed, or put back
                                  without a quarantine */
    struct slab_chunk *chunks; /* owns */
};

/* Returns the block that has been in quarantine longest, if enough blocks are
 * there and `rested` (NULL: always) returns true for it; otherwise a fresh one;
 * NULL if there is no block. */
void *uva__slab_take(struct uva__slab *slab, bool (*rested)(const void *block));

/* fetch allocates memory for more blocks, without using the lists; NULL if
 * there is no memory. add makes them available. They are two functions so that
 * no lock has to be held while the allocator is called. */
struct slab_chunk *uva__slab_fetch(const struct uva__slab *slab);
void uva__slab_add(struct uva__slab *slab, struct slab_chunk *chunk);

/* Puts a block into quarantine, after all other blocks. */
void uva__slab_put(struct uva__slab *slab, void *block);

/* The same for all `count` blocks of a list of their links, in that order; the
 * list is empty afterwards. */
void uva__slab_put_list(struct uva__slab *slab, struct uva__list *blocks,
                        size_t count);

/* Puts blocks, a list of their links, before the fresh ones, without a
 * quarantine; the list is empty afterwards. */
void uva__slab_put_fresh(struct uva__slab *slab, struct uva__list *blocks);

/* Moves up to `count` fresh blocks, 1 or more, by their links to `out`, which
 * may be unspecified before that. */
void uva__slab_take_fresh(struct uva__slab *slab, struct uva__list *out,
                          size_t count);

/* Whether so many more blocks are in quarantine than have to be that it is
 * worth moving them: two steps, as a stage that takes and puts back one step of
 * them in turn would otherwise move each of them to and fro. */
static inline bool uva__slab_has_surplus(const struct uva__slab *slab)
{
    return slab->resting >= slab->rest + 2 * slab->step;
}

/* Moves the surplus of `slab`, its oldest blocks, before the fresh ones of
 * `to`. So few blocks circulate, and these are in the cache, even if many
 * exist. */
void uva__slab_move_surplus(struct uva__slab *slab, struct uva__slab *to);

/* Calls `fn` with every block, in use or not. */
void uva__slab_each(const struct uva__slab *slab,
                    void (*fn)(void *block, void *ctx), void *ctx);

/* Frees all memory, even blocks in use. */
void uva__slab_fini(struct uva__slab *slab);

#endif
