/* SPDX-License-Identifier: Apache-2.0 */
/* The part that all feeds share. */
#include "stream/source.h"

#include "base/memory.h"
#include "uvarrow/arrow.h"

void uva__feed_init(struct uva__feed *feed, const struct uva__feed_ops *ops,
                    struct uva__hub *hub)
{
    *feed = (struct uva__feed){
        .ops = ops,
        .hub = uva__hub_acquire(hub),
        .device_type = ARROW_DEVICE_CPU,
    };
}

void uva__feed_fini(struct uva__feed *feed)
{
    const struct uva_allocator *allocator = &feed->hub->allocator;

    uva_schema_release(&feed->schema);
    uva__memory_free(allocator, feed->metadata, feed->metadata_size);
    uva__failure_fini(&feed->failure, allocator);
    feed->metadata = NULL;
    uva__hub_release(feed->hub);
}
