/* SPDX-License-Identifier: Apache-2.0 */
/* A stream needs two blocks, of a thousand bytes or more each. To use those of
 * a stream that has ended costs a third of what malloc() and free() cost.
 *
 * On close:    the blocks stay until the rt is freed. */
#include "stream/spares.h"

#include <string.h>

#include "base/atomic.h"
#include "base/list.h"
#include "base/memory.h"

/* Blocks of one kind, all of one size: the last one that a stream gave back. */
struct spares_kind {
    struct uva__link *first; /* owns: the link lies at the begin of a block */
    size_t size;
    int count;
};

struct spares {
    struct uva__rt_data data; /* first: how the rt frees it */

    struct uva__lock lock;
    struct {
        struct spares_kind kinds[UVA__SPARES];
    } locked;
};

/* ---- life --------------------------------------------------------------- */

static void spares_free_kind(struct spares_kind *kind,
                             const struct uva_allocator *allocator)
{
    struct uva__link *link = kind->first, *next;

    for (; link != NULL; link = next) {
        next = link->next;
        uva__memory_free(allocator, link, kind->size);
    }
}

static void spares_free(struct uva__rt *rt, struct uva__rt_data *data)
{
    struct spares *spares = uva__container_of(data, struct spares, data);

    for (int kind = 0; kind < UVA__SPARES; kind++)
        spares_free_kind(&spares->locked.kinds[kind], &rt->allocator);
    uva__memory_free(&rt->allocator, spares, sizeof(*spares));
}

static struct uva__rt_data *spares_new(struct uva__rt *rt)
{
    struct spares *spares = uva__memory_new(&rt->allocator, sizeof(*spares));

    if (spares == NULL)
        return NULL;
    spares->data.free = spares_free;
    return &spares->data;
}

/* NULL: none are kept, or there is no memory for it. */
static struct spares *spares_of(struct uva__rt *rt)
{
    struct uva__rt_data *data =
        UVA__SPARES_KEPT > 0 && uva__memory_is_library(&rt->allocator)
            ? uva__rt_get_data(rt, UVA__RT_DATA_SPARES, spares_new)
            : NULL;

    return data != NULL ? uva__container_of(data, struct spares, data) : NULL;
}

/* ---- blocks ------------------------------------------------------------- */

static void *spares_take_locked(struct spares_kind *kind, size_t size)
{
    struct uva__link *link = kind->first;

    if (link == NULL || kind->size != size)
        return NULL;
    kind->first = link->next;
    kind->count--;
    return link;
}

/* False if there are enough. Moves blocks of another size to `over`. */
static bool spares_put_locked(struct spares_kind *kind, void *block,
                              size_t size, struct spares_kind *over)
{
    struct uva__link *link = block;

    if (kind->size != size) {
        *over = *kind;
        *kind = (struct spares_kind){.size = size};
    }
    if (kind->count >= UVA__SPARES_KEPT)
        return false;
    link->next = kind->first;
    kind->first = link;
    kind->count++;
    return true;
}

static void *spares_take(struct spares *spares, enum uva__spare kind,
                         size_t size)
{
    void *block;

    uva__lock_take(&spares->lock);
    block = spares_take_locked(&spares->locked.kinds[kind], size);
    uva__lock_drop(&spares->lock);
    return block;
}

static bool spares_put(struct spares *spares, enum uva__spare kind, void *block,
                       size_t size, const struct uva_allocator *allocator)
{
    struct spares_kind over = {0};
    bool kept;

    if (size > UVA__SPARES_MAX_BYTES)
        return false;
    uva__lock_take(&spares->lock);
    kept = spares_put_locked(&spares->locked.kinds[kind], block, size, &over);
    uva__lock_drop(&spares->lock);
    spares_free_kind(&over, allocator);
    return kept;
}

void *uva__spares_take(struct uva__rt *rt, enum uva__spare kind, size_t size,
                       size_t cleared)
{
    struct spares *spares = spares_of(rt);
    void *block = spares != NULL ? spares_take(spares, kind, size) : NULL;

    return block != NULL
               ? memset(block, 0, cleared)
               : uva__memory_new_partly(&rt->allocator, size, cleared);
}

void uva__spares_put(struct uva__rt *rt, enum uva__spare kind, void *block,
                     size_t size)
{
    struct spares *spares = spares_of(rt);

    if (spares == NULL ||
        !spares_put(spares, kind, block, size, &rt->allocator))
        uva__memory_free(&rt->allocator, block, size);
}
