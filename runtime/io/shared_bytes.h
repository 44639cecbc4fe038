/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that were read, in one block, which the arrays made of them share; and
 * blocks that are kept for the next bytes, since the pages of a block that was
 * just freed are in memory and in the cache. */
#ifndef UVA_IO_SHARED_BYTES_H
#define UVA_IO_SHARED_BYTES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct uva__kept_bytes;

/* A block, which ends with its last reference. */
struct uva__shared_bytes {
    atomic_int users; /* references */
    size_t size;      /* number of bytes */
    uint8_t *bytes;   /* where 64 divides, unless `end` was given */
    /* frees the block, or keeps it; NULL: free(). Never changed */
    void (*end)(struct uva__shared_bytes *shared);
};

/* Makes a block of `size` bytes, which are not cleared, with one reference.
 * NULL without memory. Thread: any. */
struct uva__shared_bytes *uva__shared_bytes_new(size_t size);

/* Adds a reference. Returns the block. Thread: any that has a reference. */
struct uva__shared_bytes *
uva__shared_bytes_acquire(struct uva__shared_bytes *shared);

/* Drops a reference. NULL is allowed. Thread: any. */
void uva__shared_bytes_release(struct uva__shared_bytes *shared);

/* ---- kept blocks --------------------------------------------------------- */

/* Makes an empty store, which keeps a few blocks. NULL without memory.
 * Thread: any. */
struct uva__kept_bytes *uva__kept_bytes_new(void);

/* As uva__shared_bytes_new(); the block comes from the store, if one there is
 * about as large, and goes back to it. Thread: any one at a time. */
struct uva__shared_bytes *uva__kept_bytes_take(struct uva__kept_bytes *kept,
                                               size_t size);

/* Frees the blocks in the store; blocks in use are freed with their last
 * reference. NULL is allowed. Thread: as above, for the last time. */
void uva__kept_bytes_close(struct uva__kept_bytes *kept);

#endif
