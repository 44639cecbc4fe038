/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of fixed size under one lock: a stream enters and leaves it once
 * in its life. */
#include "sink/driven_handlers.h"

#include <errno.h>

#include "base/memory.h"

enum { BUCKETS = 128 };

struct driven_handlers {
    struct uva__annex annex; /* first: how the hub frees it */

    struct uva__lock lock;
    struct {
        struct uva__driven *buckets[BUCKETS]; /* borrows */
    } locked;
};

static struct driven_handlers *driven_handlers_of(const struct uva__hub *hub)
{
    return uva__container_of(uva__shared_load(&hub->annex[UVA__ANNEX_DRIVEN]),
                             struct driven_handlers, annex);
}

static struct uva__driven **bucket_of(struct driven_handlers *table,
                                      const void *handler)
{
    return &table->locked.buckets[((uintptr_t)handler >> 4) % BUCKETS];
}

bool uva__driven_handlers_add(struct uva__hub *hub, struct uva__driven *driven)
{
    struct driven_handlers *table = driven_handlers_of(hub);
    struct uva__driven **bucket = bucket_of(table, driven->handler), *other;

    uva__lock_take(&table->lock);
    for (other = *bucket; other != NULL; other = other->next)
        if (other->handler == driven->handler)
            break;
    if (other == NULL) {
        driven->next = *bucket;
        *bucket = driven;
    }
    uva__lock_drop(&table->lock);
    return other == NULL;
}

void uva__driven_handlers_remove(struct uva__hub *hub,
                                 struct uva__driven *driven)
{
    struct driven_handlers *table = driven_handlers_of(hub);
    struct uva__driven **at = bucket_of(table, driven->handler);

    uva__lock_take(&table->lock);
    while (*at != driven)
        at = &(*at)->next;
    *at = driven->next;
    uva__lock_drop(&table->lock);
}

/* ---- life --------------------------------------------------------------- */

static void driven_handlers_free(struct uva__hub *hub, struct uva__annex *annex)
{
    struct driven_handlers *table =
        uva__container_of(annex, struct driven_handlers, annex);

    uva__memory_free(&hub->allocator, table, sizeof(*table));
}

static struct uva__annex *driven_handlers_new(struct uva__hub *hub)
{
    struct driven_handlers *table =
        uva__memory_new(&hub->allocator, sizeof(*table));

    if (table == NULL)
        return NULL;
    table->annex.free = driven_handlers_free;
    return &table->annex;
}

int uva__driven_handlers_ensure(struct uva__hub *hub)
{
    return uva__hub_annex(hub, UVA__ANNEX_DRIVEN, driven_handlers_new) != NULL
               ? 0
               : ENOMEM;
}
