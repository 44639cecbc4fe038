/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks are allocated in chunks. The record of a chunk is a separate
 * allocation, so that a chunk can be aligned as strictly as its blocks. */
#include "base/slab.h"

#include <stdint.h>

#include "base/memory.h"

struct slab_chunk {
    struct slab_chunk *next; /* owns */
    char *blocks;            /* owns: a step of them */
};

static struct uva__link *slab_link(const struct uva__slab *slab, void *block)
{
    void *link = (char *)block + slab->link_offset;

    return link;
}

struct slab_chunk *uva__slab_fetch(const struct uva__slab *slab)
{
    struct slab_chunk *chunk = uva__memory_new(slab->allocator, sizeof(*chunk));

    if (chunk == NULL)
        return NULL;
    chunk->blocks = uva__memory_new_aligned(
        slab->allocator, slab->size * slab->step, slab->align);
    if (chunk->blocks != NULL)
        return chunk;
    uva__memory_free(slab->allocator, chunk, sizeof(*chunk));
    return NULL;
}

void uva__slab_add(struct uva__slab *slab, struct slab_chunk *chunk)
{
    size_t i;

    chunk->next = slab->chunks;
    slab->chunks = chunk;
    for (i = 0; i < slab->step; i++)
        uva__list_push(&slab->fresh,
                       slab_link(slab, chunk->blocks + i * slab->size));
}

static void *slab_block(const struct uva__slab *slab, struct uva__link *link)
{
    return link != NULL ? (char *)link - slab->link_offset : NULL;
}

void *uva__slab_take(struct uva__slab *slab, bool (*rested)(const void *block))
{
    struct uva__link *oldest = slab->used.head;

    if (slab->resting <= slab->rest ||
        (rested != NULL && !rested(slab_block(slab, oldest))))
        return slab_block(slab, uva__list_pop(&slab->fresh));
    slab->resting--;
    return slab_block(slab, uva__list_pop(&slab->used));
}

void uva__slab_put(struct uva__slab *slab, void *block)
{
    uva__list_push(&slab->used, slab_link(slab, block));
    slab->resting++;
}

void uva__slab_put_list(struct uva__slab *slab, struct uva__list *blocks,
                        size_t count)
{
    uva__list_append(&slab->used, blocks);
    slab->resting += count;
}

/* Moves up to `count` links, 1 or more, from the begin of a list to `out`. */
static void slab_cut(struct uva__list *list, struct uva__list *out,
                     size_t count)
{
    struct uva__link *last = list->head;

    *out = *list;
    if (last == NULL)
        return;
    while (--count > 0 && last->next != NULL)
        last = last->next;
    out->tail = last;
    list->head = last->next;
    last->next = NULL;
}

void uva__slab_take_fresh(struct uva__slab *slab, struct uva__list *out,
                          size_t count)
{
    slab_cut(&slab->fresh, out, count);
}

void uva__slab_put_fresh(struct uva__slab *slab, struct uva__list *blocks)
{
    uva__list_prepend(&slab->fresh, blocks);
}

void uva__slab_move_surplus(struct uva__slab *slab, struct uva__slab *to)
{
    struct uva__list surplus;

    slab_cut(&slab->used, &surplus, slab->resting - slab->rest);
    slab->resting = slab->rest;
    uva__slab_put_fresh(to, &surplus);
}

void uva__slab_each(const struct uva__slab *slab,
                    void (*fn)(void *block, void *ctx), void *ctx)
{
    struct slab_chunk *chunk;
    size_t i;

    for (chunk = slab->chunks; chunk != NULL; chunk = chunk->next)
        for (i = 0; i < slab->step; i++)
            fn(chunk->blocks + i * slab->size, ctx);
}

void uva__slab_fini(struct uva__slab *slab)
{
    struct slab_chunk *chunk = slab->chunks, *next;

    for (; chunk != NULL; chunk = next) {
        next = chunk->next;
        uva__memory_free(slab->allocator, chunk->blocks,
                         slab->size * slab->step);
        uva__memory_free(slab->allocator, chunk, sizeof(*chunk));
    }
    slab->chunks = NULL;
    slab->used = (struct uva__list){0};
    slab->fresh = (struct uva__list){0};
    slab->resting = 0;
}
