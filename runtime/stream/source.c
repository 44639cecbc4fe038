/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of all sources: initialising and freeing it. */
#include "stream/source.h"

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

void uva__source_fini(struct uva__source *source)
{
    const struct uva_allocator *allocator = &source->rt->allocator;

    uva_schema_release(&source->schema);
    uva__metadata_fini(&source->metadata, allocator, NULL);
    uva__failure_fini(&source->failure, allocator);
    uva__label_release(source->label);
    uva__share_close(&source->share);
    uva__rt_release(source->rt);
}
