/* SPDX-License-Identifier: Apache-2.0 */
/* A first-in, first-out list of dead blocks.
 *
 * Happy path:  put -> kept until there is no room -> expired.
 *
 * On close:    all blocks expire. They are taken out one at a time, as expire
 *              may call put or close again. */
#include "check/quarantine.h"

#include "base/memory.h"

void uva__quarantine_init(struct uva__quarantine *quarantine,
                          const struct uva_allocator *allocator,
                          size_t capacity)
{
    quarantine->allocator = *allocator;
    quarantine->capacity = capacity;
}

/* ---- counted ------------------------------------------------------------ */

int uva__quarantine_new(const struct uva_allocator *allocator, size_t capacity,
                        uva__quarantine_expire_fn *expire,
                        struct uva__quarantine **out)
{
    struct uva__quarantine *quarantine =
        uva__memory_new(allocator, sizeof(*quarantine));

    if (quarantine == NULL)
        return ENOMEM;
    uva__quarantine_init(quarantine, allocator, capacity);
    quarantine->expire = expire;
    quarantine->locked.refs = 1;
    *out = quarantine;
    return 0;
}

void uva__quarantine_acquire(struct uva__quarantine *quarantine)
{
    uva__lock_take(&quarantine->lock);
    quarantine->locked.refs++;
    uva__lock_drop(&quarantine->lock);
}

void uva__quarantine_release(struct uva__quarantine *quarantine)
{
    const struct uva_allocator allocator = quarantine->allocator;
    bool last;

    uva__lock_take(&quarantine->lock);
    last = --quarantine->locked.refs == 0;
    uva__lock_drop(&quarantine->lock);
    if (last)
        uva__memory_free(&allocator, quarantine, sizeof(*quarantine));
}

/* ---- blocks ------------------------------------------------------------- */

static void quarantine_push_locked(struct uva__quarantine *quarantine,
                                   struct uva__quarantined *block)
{
    uva__list_push(&quarantine->locked.blocks, &block->link);
    quarantine->locked.count++;
}

static struct uva__quarantined *
quarantine_pop_locked(struct uva__quarantine *quarantine)
{
    struct uva__link *link = uva__list_pop(&quarantine->locked.blocks);

    if (link == NULL)
        return NULL;
    quarantine->locked.count--;
    return uva__container_of(link, struct uva__quarantined, link);
}

static void quarantine_expire(const struct uva__quarantine *quarantine,
                              struct uva__quarantined *block)
{
    if (quarantine->expire != NULL)
        quarantine->expire(block);
    else
        uva__memory_free(&quarantine->allocator, block, block->size);
}

void *uva__quarantine_alloc(struct uva__quarantine *quarantine, size_t size)
{
    const size_t whole = sizeof(struct uva__quarantined) + size;
    struct uva__quarantined *block =
        uva__memory_new(&quarantine->allocator, whole);

    if (block == NULL)
        return NULL;
    uva__quarantine_put(quarantine, block, whole);
    return block + 1;
}

void uva__quarantine_put(struct uva__quarantine *quarantine,
                         struct uva__quarantined *block, size_t size)
{
    struct uva__quarantined *expired = NULL;

    block->size = size;
    uva__lock_take(&quarantine->lock);
    quarantine_push_locked(quarantine, block);
    if (quarantine->locked.closed ||
        quarantine->locked.count > quarantine->capacity)
        expired = quarantine_pop_locked(quarantine);
    uva__lock_drop(&quarantine->lock);
    if (expired != NULL)
        quarantine_expire(quarantine, expired);
}

void uva__quarantine_move(struct uva__quarantine *from,
                          struct uva__quarantine *to)
{
    uva__lock_take(&to->lock);
    to->locked.count += from->locked.count;
    uva__list_append(&to->locked.blocks, &from->locked.blocks);
    uva__lock_drop(&to->lock);
    from->locked.count = 0;
}

/* ---- close -------------------------------------------------------------- */

void uva__quarantine_close(struct uva__quarantine *quarantine)
{
    struct uva__quarantined *expired;

    do {
        uva__lock_take(&quarantine->lock);
        quarantine->locked.closed = true;
        expired = quarantine_pop_locked(quarantine);
        uva__lock_drop(&quarantine->lock);
        if (expired != NULL)
            quarantine_expire(quarantine, expired);
    } while (expired != NULL);
}
