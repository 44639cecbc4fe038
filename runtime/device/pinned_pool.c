/* SPDX-License-Identifier: Apache-2.0 */
/* The list of kept blocks is in separate memory, as a driver may unmap its
 * blocks at any time once the process exits. Sizes are rounded to classes,
 * eight for each power of two, so that a batch can reuse the memory of another
 * of about its size.
 *
 * Failures: memory for the list; then the block is not kept. */
#include "device/pinned_pool.h"

#include <stdlib.h>

#include "arrow/device_traits.h"
#include "device/driver_gate.h"

enum { PAGE = 4096 };
static const size_t POOL_MAX_BYTES = (size_t)256 << 20; /* of one device type */

/* A block that is kept. From malloc(). */
struct uva__pinned_pool_block {
    struct uva__pinned_pool_block *next; /* owns */
    void *memory;                        /* owns, through ops->dealloc */
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

static void *block_new(struct uva__backend *backend, int64_t device_id,
                       size_t size_bytes)
{
    void *memory = backend->ops->alloc(
        backend->state, uva__pinned_pool_type(backend), device_id, size_bytes);

    if (memory != NULL)
        uva__driver_gate_watch(backend->device_type, UVA__DRIVER_GAVE_PINNED);
    return memory;
}

void *uva__pinned_pool_take(struct uva__backend *backend, int64_t device_id,
                            size_t size_bytes)
{
    const size_t whole = class_of(size_bytes);
    struct uva__pinned_pool_block **link = &backend->pinned.first;
    struct uva__pinned_pool_block *block;
    void *memory;

    while (*link != NULL &&
           ((*link)->size_bytes != whole || (*link)->device_id != device_id))
        link = &(*link)->next;
    block = *link;
    if (block == NULL)
        return block_new(backend, device_id, whole);
    *link = block->next;
    backend->pinned.size_bytes -= whole;
    memory = block->memory;
    free(block);
    return memory;
}

static void block_drop(struct uva__backend *backend, int64_t device_id,
                       void *memory)
{
    if (!uva__driver_gate_enter())
        return;
    backend->ops->dealloc(backend->state, uva__pinned_pool_type(backend),
                          device_id, memory);
    uva__driver_gate_leave();
}

void uva__pinned_pool_give(struct uva__backend *backend, int64_t device_id,
                           void *memory, size_t size_bytes)
{
    const size_t whole = class_of(size_bytes);
    struct uva__pinned_pool_block *block = NULL;

    if (whole <= POOL_MAX_BYTES - backend->pinned.size_bytes)
        block = malloc(sizeof(*block));
    if (block == NULL) {
        block_drop(backend, device_id, memory);
        return;
    }
    *block = (struct uva__pinned_pool_block){backend->pinned.first, memory,
                                             whole, device_id};
    backend->pinned.first = block;
    backend->pinned.size_bytes += whole;
}

void uva__pinned_pool_clear(struct uva__backend *backend)
{
    struct uva__pinned_pool_block *block = backend->pinned.first, *next;

    for (; block != NULL; block = next) {
        next = block->next;
        block_drop(backend, block->device_id, block->memory);
        free(block);
    }
    backend->pinned.first = NULL;
    backend->pinned.size_bytes = 0;
}
