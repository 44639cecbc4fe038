/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces are packed into blocks, one after the other. */
#include "device/staging.h"

#include <string.h>

#include "device/pinned_pool.h"

enum { ALIGNMENT = 64 };

static size_t aligned(size_t size_bytes)
{
    return (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

void uva__staging_begin(struct uva__staging *staging,
                        struct uva__backend *backend, int64_t device_id)
{
    if (uva__pinned_pool_type(backend) != ARROW_DEVICE_CPU)
        staging->backend = backend;
    staging->device_id = device_id;
}

void uva__staging_announce(struct uva__staging *staging, size_t size_bytes)
{
    staging->left += aligned(size_bytes);
}

/* Takes another block. False: there is no pinned memory any more, and no piece
 * is staged until the next clear. */
static bool staging_grow(struct uva__staging *staging)
{
    const size_t size = smaller_of(staging->left, UVA__STAGING_BLOCK);
    void *memory =
        uva__pinned_pool_take(staging->backend, staging->device_id, size);

    staging->refused = memory == NULL;
    if (staging->refused)
        return false;
    staging->blocks[staging->count].memory = memory;
    staging->blocks[staging->count].size = size;
    staging->count++;
    staging->used = 0;
    return true;
}

static bool staging_is_used_up(const struct uva__staging *staging)
{
    return staging->count == 0 ||
           staging->used == staging->blocks[staging->count - 1].size;
}

size_t uva__staging_put(struct uva__staging *staging, const void *source,
                        size_t size_bytes, const void **out)
{
    char *to;
    size_t size;

    *out = source;
    if (staging->backend == NULL || staging->refused)
        return size_bytes;
    if (staging_is_used_up(staging)) {
        if (staging->count == UVA__STAGING_BLOCKS)
            return 0;
        if (!staging_grow(staging))
            return size_bytes;
    }
    to = staging->blocks[staging->count - 1].memory + staging->used;
    size = smaller_of(size_bytes,
                      staging->blocks[staging->count - 1].size - staging->used);
    memcpy(to, source, size);
    staging->used += aligned(size);
    staging->left -= aligned(size);
    *out = to;
    return size;
}

void uva__staging_clear(struct uva__staging *staging)
{
    for (int i = 0; i < staging->count; i++)
        uva__pinned_pool_give(staging->backend, staging->device_id,
                              staging->blocks[i].memory,
                              staging->blocks[i].size);
    staging->count = 0;
    staging->refused = false;
}
