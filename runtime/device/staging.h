/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory through which one copy to a device goes, in pieces: before a
 * copy from memory that is not pinned a driver may wait. Small buffers share a
 * block. The device thread's alone, unless stated otherwise. */
#ifndef UVA_DEVICE_STAGING_H
#define UVA_DEVICE_STAGING_H

#include "device/registry.h"

enum {
    UVA__STAGING_BLOCK = 1 << 20, /* bytes: the largest piece */
    UVA__STAGING_BLOCKS = 4       /* in flight at once, of one copy */
};

/* All zeroes is empty. It may be moved. */
struct uva__staging {
    struct uva__backend *backend; /* borrows; NULL: no staging */
    int64_t device_id;
    struct {
        char *memory; /* owns, through the pool */
        size_t size;
    } blocks[UVA__STAGING_BLOCKS];
    bool refused; /* there was no pinned memory since it was cleared */
    int count;    /* of blocks */
    size_t used;  /* of the last block */
    size_t left;  /* bytes that were announced and are not staged */
};

/* Begins, if the table has pinned memory. Thread: any. */
void uva__staging_begin(struct uva__staging *staging,
                        struct uva__backend *backend, int64_t device_id);

/* Announces a buffer, so that blocks are no larger than all buffers together.
 */
void uva__staging_announce(struct uva__staging *staging, size_t size_bytes);

/* Gives where to copy a piece of `source` from, and returns its size: at most
 * `size_bytes`; 0: all blocks are in flight. Without pinned memory that is
 * `source` itself. */
size_t uva__staging_put(struct uva__staging *staging, const void *source,
                        size_t size_bytes, const void **out);

/* Takes the blocks back: no work is in flight. */
void uva__staging_clear(struct uva__staging *staging);

#endif
