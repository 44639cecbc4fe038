/* SPDX-License-Identifier: Apache-2.0 */
/* The C library as an allocator, and clearing memory of any allocator. */
#include "base/memory.h"

#include <assert.h>
#include <string.h>

#include "base/platform.h"

static void *memory_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    return uva__platform_alloc(align, size);
}

static void memory_dealloc(void *ctx, void *block, size_t size)
{
    (void)ctx;
    (void)size;
    uva__platform_free(block);
}

int uva__memory_adopt(const struct uva_allocator *given,
                      struct uva_allocator *out)
{
    if ((given->alloc == NULL) != (given->dealloc == NULL))
        return EINVAL;
    *out = *given;
    if (given->alloc == NULL) {
        out->alloc = memory_alloc;
        out->dealloc = memory_dealloc;
    }
    return 0;
}

void *uva__memory_new(const struct uva_allocator *allocator, size_t size)
{
    return uva__memory_new_aligned(allocator, size, _Alignof(max_align_t));
}

void *uva__memory_new_partly(const struct uva_allocator *allocator, size_t size,
                             size_t cleared)
{
    void *block;

    assert(cleared > 0 && cleared <= size);
    block = allocator->alloc(allocator->ctx, size, _Alignof(max_align_t));
    if (block != NULL)
        memset(block, 0, cleared);
    return block;
}

void *uva__memory_new_aligned(const struct uva_allocator *allocator,
                              size_t size, size_t align)
{
    void *block;

    assert(size > 0);
    assert(align > 0 && align <= 4096 && (align & (align - 1)) == 0);
    block = allocator->alloc(allocator->ctx, size, align);
    if (block != NULL)
        memset(block, 0, size);
    return block;
}

void uva__memory_free(const struct uva_allocator *allocator, void *block,
                      size_t size)
{
    assert(block == NULL || size > 0);
    if (block != NULL)
        allocator->dealloc(allocator->ctx, block, size);
}

bool uva__memory_is_clear(void *const *reserved, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (reserved[i] != NULL)
            return false;
    return true;
}
