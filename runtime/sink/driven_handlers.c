/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of fixed size under one lock: that is fast enough, as a stream
 * adds and removes its handler only once. */
#include "sink/driven_handlers.h"

#include <errno.h>

#include "base/memory.h"

enum { BUCKETS = 128 };

struct driven_handlers {
    struct uva__rt_data data; /* first: with the function that frees it */

    struct uva__lock lock;
    struct {
        struct uva__driven_handler *buckets[BUCKETS]; /* borrows */
    } locked;
};

static struct driven_handlers *driven_handlers_of(const struct uva__rt *rt)
{
    return uva__container_of(
        uva__atomic_ptr_load(&rt->data[UVA__RT_DATA_DRIVEN]),
        struct driven_handlers, data);
}

static struct uva__driven_handler **bucket_of(struct driven_handlers *table,
                                              const void *handler)
{
    return &table->locked.buckets[((uintptr_t)handler >> 4) % BUCKETS];
}

bool uva__driven_handlers_add(struct uva__rt *rt,
                              struct uva__driven_handler *driven)
{
    struct driven_handlers *table = driven_handlers_of(rt);
    struct uva__driven_handler **bucket = bucket_of(table, driven->handler),
                               *other;

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

void uva__driven_handlers_remove(struct uva__rt *rt,
                                 struct uva__driven_handler *driven)
{
    struct driven_handlers *table = driven_handlers_of(rt);
    struct uva__driven_handler **at = bucket_of(table, driven->handler);

    uva__lock_take(&table->lock);
    while (*at != NULL && *at != driven)
        at = &(*at)->next;
    if (*at != NULL)
        *at = driven->next;
    uva__lock_drop(&table->lock);
}

/* ---- life --------------------------------------------------------------- */

static void driven_handlers_free(struct uva__rt *rt, struct uva__rt_data *data)
{
    struct driven_handlers *table =
        uva__container_of(data, struct driven_handlers, data);

    uva__memory_free(&rt->allocator, table, sizeof(*table));
}

static struct uva__rt_data *driven_handlers_new(struct uva__rt *rt)
{
    struct driven_handlers *table =
        uva__memory_new(&rt->allocator, sizeof(*table));

    if (table == NULL)
        return NULL;
    table->data.free = driven_handlers_free;
    return &table->data;
}

int uva__driven_handlers_ensure(struct uva__rt *rt)
{
    return uva__rt_get_data(rt, UVA__RT_DATA_DRIVEN, driven_handlers_new) !=
                   NULL
               ? 0
               : ENOMEM;
}
