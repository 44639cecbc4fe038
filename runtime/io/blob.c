/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes lie behind the struct, in one allocation. */
#include "io/blob.h"

#include <stdlib.h>

enum { ALIGN = 64 };

struct uva__blob *uva__blob_new(size_t size)
{
    const size_t head = sizeof(struct uva__blob) + ALIGN;
    struct uva__blob *blob =
        size > SIZE_MAX - head ? NULL : malloc(head + size);

    if (blob == NULL)
        return NULL;
    atomic_init(&blob->users, 1);
    blob->size = size;
    blob->bytes = (uint8_t *)(blob + 1);
    blob->bytes += -(uintptr_t)blob->bytes % ALIGN;
    return blob;
}

struct uva__blob *uva__blob_acquire(struct uva__blob *blob)
{
    (void)atomic_fetch_add_explicit(&blob->users, 1, memory_order_relaxed);
    return blob;
}

void uva__blob_release(struct uva__blob *blob)
{
    if (blob != NULL &&
        atomic_fetch_sub_explicit(&blob->users, 1, memory_order_acq_rel) == 1)
        free(blob);
}
