/* SPDX-License-Identifier: Apache-2.0 */
/* A part is one block: the array, the list of blocks, and the vector of
 * buffers. */
#include "io/part.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* The owner of a part. */
struct part {
    struct ArrowDeviceArray array; /* owns; released: no array */
    struct uva__ipc_block *blocks; /* owns */
    void *memory;                  /* owns */
    uv_buf_t buffers[];
};

bool uva__part_borrow(struct uva__part_draft *draft, const void *data,
                      int64_t size)
{
    uv_buf_t *buffer;

    if (size == 0)
        return true;
    if (!uva__ipc_grow((void **)&draft->buffers, draft->n_buffers,
                       &draft->most_buffers, 1, sizeof(*draft->buffers)))
        return false;
    buffer = &draft->buffers[draft->n_buffers++];
    buffer->base = (char *)(uintptr_t)data; /* it is never written */
    buffer->len = (size_t)size;
    draft->bytes += size;
    return true;
}

bool uva__part_copy(struct uva__part_draft *draft, const void *data,
                    int64_t size)
{
    void *copy = uva__ipc_block_new(&draft->blocks, (size_t)size);

    if (copy == NULL)
        return false;
    memcpy(copy, data, (size_t)size);
    return uva__part_borrow(draft, copy, size);
}

bool uva__part_add(struct uva__part_draft *draft, void *memory, int64_t size)
{
    assert(draft->memory == NULL && size > 0);
    if (!uva__part_borrow(draft, memory, size))
        return false;
    draft->memory = memory;
    return true;
}

void uva__part_take_blocks(struct uva__part_draft *draft,
                           struct uva__ipc_block **list)
{
    struct uva__ipc_block **end = &draft->blocks;

    if (*list == NULL)
        return;
    while (*end != NULL)
        end = &(*end)->next;
    *end = *list;
    *list = NULL;
}

int uva__part_finish(struct uva__part_draft *draft,
                     struct ArrowDeviceArray *array, struct uva_part *out)
{
    const size_t size = draft->n_buffers * sizeof(*draft->buffers);
    struct part *part = malloc(sizeof(*part) + size);

    if (part == NULL)
        return ENOMEM;
    if (size > 0)
        memcpy(part->buffers, draft->buffers, size);
    part->blocks = draft->blocks;
    part->memory = draft->memory;
    part->array.array.release = NULL;
    if (array != NULL)
        uva_array_move(array, &part->array);
    *out = (struct uva_part){.buffers = part->buffers,
                             .count = draft->n_buffers,
                             .bytes = draft->bytes,
                             .owner = part};
    draft->blocks = NULL;
    draft->memory = NULL;
    uva__part_clear(draft);
    return 0;
}

void uva_part_release(struct uva_part *out)
{
    struct part *part;

    if (out == NULL || out->owner == NULL)
        return;
    part = out->owner;
    *out = (struct uva_part){0};
    uva_array_release(&part->array);
    uva__ipc_blocks_free(part->blocks);
    free(part->memory);
    free(part);
}

void uva__part_clear(struct uva__part_draft *draft)
{
    uva__ipc_blocks_free(draft->blocks);
    draft->blocks = NULL;
    free(draft->memory);
    draft->memory = NULL;
    draft->n_buffers = 0;
    draft->bytes = 0;
}

void uva__part_fini(struct uva__part_draft *draft)
{
    uva__part_clear(draft);
    free(draft->buffers);
    *draft = (struct uva__part_draft){0};
}
