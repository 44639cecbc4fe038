/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a counted source. */
#include "stream/source_kind.h"

#include "base/memory.h"
#include "stream/producer.h"

static struct uva__source *source_at(struct uva__wakeup *wakeup)
{
    return uva__container_of(wakeup, struct uva__source, wakeup);
}

static bool source_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva__source *source = source_at(wakeup);

    if (source->ops->posted != NULL)
        source->ops->posted(source);
    if (source->started && !source->stopped)
        uva__producer_run(source->producer);
    return false;
}

static void source_free(struct uva__wakeup *wakeup)
{
    struct uva__source *source = source_at(wakeup);
    const size_t size = source->size;
    struct uva__rt *rt = uva__rt_acquire(source->rt);

    if (source->ops->free != NULL)
        source->ops->free(source, &rt->allocator);
    if (size != 0) {
        uva__source_fini(source);
        uva__memory_free(&rt->allocator, source, size);
    }
    uva__rt_release(rt);
}

void uva__source_init_counted(struct uva__source *source,
                              const struct uva__source_ops *ops,
                              struct uva__rt *rt, size_t size)
{
    static const struct uva__wakeup_ops wakeup_ops = {source_on_wakeup,
                                                      source_free};

    uva__source_init(source, ops, rt);
    source->size = size;
    uva__wakeup_init(&source->wakeup, &wakeup_ops, 1);
}

struct uva__source *uva__source_new(const struct uva__source_ops *ops,
                                    struct uva__rt *rt, size_t size)
{
    struct uva__source *source = uva__memory_new(&rt->allocator, size);

    if (source != NULL)
        uva__source_init_counted(source, ops, rt, size);
    return source;
}
