/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that were read, in one block, which the arrays made of them share. */
#ifndef UVA_IO_SHARED_BYTES_H
#define UVA_IO_SHARED_BYTES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* A block; freed with its last reference. */
struct uva__shared_bytes {
    atomic_int users; /* references */
    size_t size;      /* number of bytes */
    uint8_t *bytes;   /* where 64 divides */
};

/* Makes a block of `size` bytes, which are not cleared, with one reference.
 * NULL without memory. Thread: any. */
struct uva__shared_bytes *uva__shared_bytes_new(size_t size);

/* Adds a reference. Returns the block. Thread: any that has a reference. */
struct uva__shared_bytes *
uva__shared_bytes_acquire(struct uva__shared_bytes *shared);

/* Drops a reference. NULL is allowed. Thread: any. */
void uva__shared_bytes_release(struct uva__shared_bytes *shared);

#endif
