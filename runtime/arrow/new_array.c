/* SPDX-License-Identifier: Apache-2.0 */
/* The block of a new array: bookkeeping, the structs of its children, the
 * vectors, the buffers. Clauses: LC-10. */
#include "arrow/new_array.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"

enum { BUFFER_ALIGN = 64 };

struct new_block {
    struct uva_allocator allocator; /* gave this block */
    size_t size;                    /* of the block */
    struct ArrowArray kept;         /* owns; or released */
};

static size_t padded(int64_t size)
{
    const size_t bytes = size > 0 ? (size_t)size : 0;

    return (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

static void block_release(struct ArrowArray *array)
{
    struct new_block *const block = array->private_data;
    const struct uva_allocator allocator = block->allocator;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    if (array->dictionary != NULL && array->dictionary->release != NULL)
        array->dictionary->release(array->dictionary);
    if (block->kept.release != NULL)
        block->kept.release(&block->kept);
    array->release = NULL;
    uva__memory_free(&allocator, block, block->size);
}

/* Points into the block. The last bytes of each buffer are cleared, which
 * include the bits after the last one. */
static void block_lay_out(struct new_block *block, size_t head,
                          const struct uva__new_array *shape,
                          struct ArrowArray *out)
{
    struct ArrowArray *nodes = (struct ArrowArray *)(void *)(block + 1);
    const int64_t n_nodes = shape->n_children + shape->dictionary;
    char *at = (char *)block + head;

    memset(nodes, 0, (size_t)n_nodes * sizeof(*nodes));
    out->buffers = (const void **)(void *)(nodes + n_nodes);
    if (shape->n_children > 0)
        out->children =
            (struct ArrowArray **)(void *)(out->buffers + shape->n_buffers);
    for (int64_t i = 0; i < shape->n_children; i++)
        out->children[i] = nodes++;
    if (shape->dictionary)
        out->dictionary = nodes;
    for (int64_t i = 0; i < shape->n_buffers; i++) {
        const size_t room = padded(shape->sizes[i]);

        out->buffers[i] = shape->sizes[i] < 0 ? NULL : at;
        at += room;
        if (room > 0)
            memset(at - BUFFER_ALIGN, 0, BUFFER_ALIGN);
    }
}

int uva__new_array(const struct uva_allocator *allocator,
                   const struct uva__new_array *shape, struct ArrowArray *out)
{
    const size_t nodes = (size_t)(shape->n_children + shape->dictionary);
    const size_t pointers = (size_t)(shape->n_buffers + shape->n_children);
    const size_t head = padded((int64_t)(sizeof(struct new_block) +
                                         nodes * sizeof(struct ArrowArray) +
                                         pointers * sizeof(void *)));
    size_t size = head;
    struct new_block *block;

    for (int64_t i = 0; i < shape->n_buffers; i++) {
        if (shape->sizes[i] > PTRDIFF_MAX / 8)
            return ENOMEM;
        size += padded(shape->sizes[i]);
    }
    block = allocator->alloc(allocator->ctx, size, BUFFER_ALIGN);
    if (block == NULL)
        return ENOMEM;
    *block = (struct new_block){.allocator = *allocator, .size = size};
    *out = (struct ArrowArray){.length = shape->length,
                               .n_buffers = shape->n_buffers,
                               .n_children = shape->n_children,
                               .release = block_release,
                               .private_data = block};
    block_lay_out(block, head, shape, out);
    return 0;
}

void uva__new_array_keep(struct ArrowArray *array, struct ArrowArray *kept)
{
    struct new_block *const block = array->private_data;

    assert(array->release == block_release && block->kept.release == NULL);
    block->kept = *kept;
    kept->release = NULL;
}

/* ---- a part of an array ------------------------------------------------- */

struct part_block {
    struct uva_allocator allocator; /* gave this block */
    struct ArrowArray whole;        /* owns */
};

static void part_release(struct ArrowArray *array)
{
    struct part_block *const block = array->private_data;
    const struct uva_allocator allocator = block->allocator;

    block->whole.release(&block->whole);
    array->release = NULL;
    uva__memory_free(&allocator, block, sizeof(*block));
}

static int64_t part_null_count(const struct ArrowArray *array, int64_t count)
{
    if (array->null_count == 0 || count == 0)
        return 0;
    return array->null_count == array->length ? count : -1;
}

/* Children that are moved out of the part are those of the whole. An empty part
 * begins at 0: Arrow C++ refuses empty views at a later place. */
int uva__new_array_part(const struct uva_allocator *allocator,
                        struct ArrowArray *array, int64_t from, int64_t count,
                        struct ArrowArray *out)
{
    struct part_block *block;

    if (from == 0 && count == array->length &&
        (count > 0 || array->offset == 0)) {
        *out = *array;
        array->release = NULL;
        return 0;
    }
    block = uva__memory_new(allocator, sizeof(*block));
    if (block == NULL)
        return ENOMEM;
    block->allocator = *allocator;
    block->whole = *array;
    *out = *array;
    out->null_count = part_null_count(array, count);
    out->offset = count == 0 ? 0 : array->offset + from;
    out->length = count;
    out->release = part_release;
    out->private_data = block;
    array->release = NULL;
    return 0;
}
