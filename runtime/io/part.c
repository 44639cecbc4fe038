/* SPDX-License-Identifier: Apache-2.0 */
/* A part is one block: the array, the list of blocks, the vector of buffers,
 * and the list of the parts that were joined in it. */
#include "io/part.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* The owner of a part. */
struct part {
    atomic_int users;              /* the last one frees it */
    struct ArrowDeviceArray array; /* owns; released: no array */
    struct uva__ipc_block *blocks; /* owns */
    void *memory;                  /* owns */
    struct part **inner;           /* counts: the joined parts, which have no
                                      others in them; after the buffers */
    size_t n_inner;                /* number of them */
    uv_buf_t buffers[];
};

/* Makes an owner of no memory, with room for `count` buffers and `most` joined
 * parts. */
static struct part *part_new(size_t count, size_t most)
{
    struct part *part = malloc(sizeof(*part) + count * sizeof(*part->buffers) +
                               most * sizeof(struct part *));

    if (part == NULL)
        return NULL;
    atomic_init(&part->users, 1);
    part->array.array.release = NULL;
    part->blocks = NULL;
    part->memory = NULL;
    part->inner = (struct part **)(void *)&part->buffers[count];
    part->n_inner = 0;
    return part;
}

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
    struct part *part = part_new(draft->n_buffers, 0);

    if (part == NULL)
        return ENOMEM;
    if (draft->n_buffers > 0)
        memcpy(part->buffers, draft->buffers,
               draft->n_buffers * sizeof(*draft->buffers));
    part->blocks = draft->blocks;
    part->memory = draft->memory;
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

int uva__part_join(struct uva_part *parts, size_t count, struct uva_part *out)
{
    struct part *part;
    size_t n_buffers = 0;

    for (size_t i = 0; i < count; i++)
        n_buffers += parts[i].count;
    part = part_new(n_buffers, count);
    if (part == NULL)
        return ENOMEM;
    *out = (struct uva_part){.buffers = part->buffers, .owner = part};
    for (size_t i = 0; i < count; i++) {
        if (parts[i].owner == NULL)
            continue;
        memcpy(&part->buffers[out->count], parts[i].buffers,
               parts[i].count * sizeof(*parts[i].buffers));
        out->count += parts[i].count;
        out->bytes += parts[i].bytes;
        out->rows += parts[i].rows;
        part->inner[part->n_inner++] = parts[i].owner;
        parts[i] = (struct uva_part){0};
    }
    return 0;
}

void uva__part_own(const struct uva_part *part, struct ArrowDeviceArray *array)
{
    struct part *owner = part->owner;

    uva_array_move(array, &owner->array);
}

void uva__part_share(const struct uva_part *part, struct uva_part *out)
{
    struct part *owner = part->owner;

    (void)atomic_fetch_add_explicit(&owner->users, 1, memory_order_relaxed);
    *out = *part;
}

static void part_drop(struct part *part)
{
    if (atomic_fetch_sub_explicit(&part->users, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < part->n_inner; i++)
        part_drop(part->inner[i]);
    uva_array_release(&part->array);
    uva__ipc_blocks_free(part->blocks);
    free(part->memory);
    free(part);
}

void uva_part_release(struct uva_part *out)
{
    if (out == NULL || out->owner == NULL)
        return;
    part_drop(out->owner);
    *out = (struct uva_part){0};
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
