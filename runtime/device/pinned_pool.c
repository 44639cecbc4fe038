/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kept blocks runs through the blocks themselves. Sizes are rounded
 * to classes, eight for each power of two, so that a batch can reuse the memory
 * of one of about its size. */
#include "device/pinned_pool.h"

#include <stddef.h>

#include "arrow/device_traits.h"

enum { PAGE = 4096 };
static const size_t POOL_MAX_BYTES = (size_t)256 << 20; /* of one device type */

/* The header at the start of a block that is kept. */
struct uva__pinned_pool_block {
    struct uva__pinned_pool_block *next;
    size_t size_bytes;
    int64_t device_id;
};

ArrowDeviceType uva__pinned_pool_type(const struct uva__backend *backend)
{
    const ArrowDeviceType type =
        uva__device_traits(backend->device_type)->pinned_type;

    if (backend->ops->alloc == NULL || backend->ops->dealloc == NULL)
        return ARROW_DEVICE_CPU;
    return type != 0 ? type : ARROW_DEVICE_CPU;
}

/* Returns the size of the class; at least one page. */
static size_t class_of(size_t size_bytes)
{
    size_t step = PAGE;

    while (step < size_bytes / 16)
        step *= 2;
    return (size_bytes + step - 1) / step * step;
}

void *uva__pinned_pool_take(struct uva__backend *backend, int64_t device_id,
                            size_t size_bytes)
{
    const size_t whole = class_of(size_bytes);
    struct uva__pinned_pool_block **link = &backend->pinned.first;
    struct uva__pinned_pool_block *block;

    while (*link != NULL &&
           ((*link)->size_bytes != whole || (*link)->device_id != device_id))
        link = &(*link)->next;
    block = *link;
    if (block == NULL)
        return backend->ops->alloc(
            backend->state, uva__pinned_pool_type(backend), device_id, whole);
    *link = block->next;
    backend->pinned.size_bytes -= whole;
    return block;
}

void uva__pinned_pool_give(struct uva__backend *backend, int64_t device_id,
                           void *memory, size_t size_bytes)
{
    const size_t whole = class_of(size_bytes);
    struct uva__pinned_pool_block *block = memory;

    if (whole > POOL_MAX_BYTES - backend->pinned.size_bytes) {
        backend->ops->dealloc(backend->state, uva__pinned_pool_type(backend),
                              device_id, memory);
        return;
    }
    block->size_bytes = whole;
    block->device_id = device_id;
    block->next = backend->pinned.first;
    backend->pinned.first = block;
    backend->pinned.size_bytes += whole;
}

void uva__pinned_pool_clear(struct uva__backend *backend)
{
    struct uva__pinned_pool_block *block = backend->pinned.first, *next;

    for (; block != NULL; block = next) {
        next = block->next;
        backend->ops->dealloc(backend->state, uva__pinned_pool_type(backend),
                              block->device_id, block);
    }
    backend->pinned.first = NULL;
    backend->pinned.size_bytes = 0;
}
