/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all sources: initialising and freeing it, and the needs
 * and waits of a chain of them. */
#include "stream/source.h"

#include <errno.h>

#include "arrow/metadata.h"
#include "stream/producer.h"
#include "uvarrow/arrow.h"

void uva__source_init(struct uva__source *source,
                      const struct uva__source_ops *ops, struct uva__rt *rt)
{
    *source = (struct uva__source){
        .ops = ops,
        .name = ops->name,
        .sized = ops->sized,
        .rt = uva__rt_acquire(rt),
        .device_type = ARROW_DEVICE_CPU,
    };
}

int uva__source_take_schema(struct uva__source *source,
                            const struct ArrowAsyncProducer *from,
                            struct ArrowSchema *schema)
{
    if (uva__metadata_copy(&source->rt->allocator, from->additional_metadata,
                           &source->metadata) == ENOMEM)
        return ENOMEM;
    uva_schema_move(schema, &source->schema);
    source->device_type = from->device_type;
    source->schema_known = true;
    return 0;
}

int uva__source_outline(struct uva__source *source)
{
    return source->outline != NULL
               ? 0
               : uva__outline_acquire(source->rt, &source->schema,
                                      &source->outline);
}

void uva__source_fini(struct uva__source *source)
{
    const struct uva_allocator *allocator = &source->rt->allocator;

    uva_schema_release(&source->schema);
    uva__outline_release(source->outline);
    uva__metadata_fini(&source->metadata, allocator, NULL);
    uva__failure_fini(&source->failure, allocator);
    uva__label_release(source->label);
    uva__share_close(&source->share);
    uva__rt_release(source->rt);
}

bool uva__source_uses_stream(const struct uva__source *source)
{
    while (source != NULL && !source->uses_stream)
        source = source->ops->above != NULL ? source->ops->above(source) : NULL;
    return source != NULL;
}

enum uva_waiting uva__source_waiting(const struct uva__source *source,
                                     const char **name, const char **part)
{
    const struct uva__source *above = source;
    const char *inner;
    struct uva_stage_stats now;
    bool is_stage = false, works;

    while (above != NULL) {
        source = above;
        is_stage = source->ops->above != NULL;
        uva__meter_read(source->meter, &now);
        above = is_stage && (now.waiting == UVA_WAITING_SOURCE ||
                             now.waiting == UVA_WAITING_CONSUMER)
                    ? source->ops->above(source)
                    : NULL;
        inner = above != NULL && source->ops->part != NULL
                    ? source->ops->part(source)
                    : NULL;
        *part = inner != NULL ? inner : *part;
    }
    *name = source->name;
    works = now.waiting == UVA_WAITING_NONE || now.waiting == UVA_WAITING_OVER;
    if (works && is_stage)
        return UVA_WAITING_WORKER; /* which has not finished */
    return works || now.waiting == UVA_WAITING_CONSUMER ? UVA_WAITING_SOURCE
                                                        : now.waiting;
}

const char *uva__waiting_text(enum uva_waiting waiting)
{
    static const char *const texts[] = {
        [UVA_WAITING_SOURCE] = "its source",
        [UVA_WAITING_CONSUMER] = "its consumer",
        [UVA_WAITING_WORKER] = "a worker thread",
        [UVA_WAITING_DEVICE] = "a device",
        [UVA_WAITING_MEMORY] = "memory of the runtime's budget",
        [UVA_WAITING_PERMIT] = "a permit, as open sources are limited",
        [UVA_WAITING_TIME] = "time to pass",
    };

    return texts[waiting];
}
