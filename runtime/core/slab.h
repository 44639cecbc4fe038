/* SPDX-License-Identifier: Apache-2.0 */
/* Type-stable memory: blocks of one size that are reused once they have rested
 * and go back to the allocator only all together. A pointer that came too late
 * still finds a block of the same kind. For one thread at a time. */
#ifndef UVA_CORE_SLAB_H
#define UVA_CORE_SLAB_H

#include "core/list.h"
#include "uvarrow/base.h"

/* What the blocks are like. Each begins cleared, once; what a block holds when
 * it is put back, it still holds when it is taken again, but for its link. */
struct uva__slab {
    const struct uva_allocator *allocator; /* borrows */
    size_t size;            /* of a block; a multiple of `align` */
    size_t align;           /* of a block; a power of two */
    size_t link_offset;     /* where in a block its struct uva__link lies */
    size_t rest;            /* so many used blocks rest before one is reused */
    size_t step;            /* blocks that are fetched at once */
    size_t resting;         /* used blocks that rest now */
    struct uva__list used;  /* those, the oldest first */
    struct uva__list fresh; /* blocks never used, or trimmed */
    struct slab_chunk *chunks; /* owns */
};

/* Gives the block that has rested longest, if enough have and `rested` (NULL:
 * always) agrees, otherwise one never used; NULL if there is none. */
void *uva__slab_take(struct uva__slab *slab, bool (*rested)(const void *block));

/* Fetches memory for more blocks, without touching the lists; NULL if there is
 * none. Then adds it: apart, so that no lock need be held over the allocator.
 */
struct slab_chunk *uva__slab_fetch(const struct uva__slab *slab);
void uva__slab_add(struct uva__slab *slab, struct slab_chunk *chunk);

/* Takes a block back, to rest behind all others. */
void uva__slab_put(struct uva__slab *slab, void *block);

/* Lets `most` blocks rest, no fewer than `rest`; older ones are as good as
 * never used, the youngest of them first. So those that go round are few, and
 * warm, also where many are there. */
void uva__slab_trim(struct uva__slab *slab, size_t most);

/* Calls `fn` with every block there is, in use or not. */
void uva__slab_each(const struct uva__slab *slab,
                    void (*fn)(void *block, void *ctx), void *ctx);

/* Gives all memory back, that of blocks in use too. */
void uva__slab_fini(struct uva__slab *slab);

#endif
