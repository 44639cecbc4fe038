/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes lie after the struct, in one allocation. */
#include "io/shared_bytes.h"

#include <stdlib.h>

enum { ALIGN = 64 };

struct uva__shared_bytes *uva__shared_bytes_new(size_t size)
{
    const size_t head = sizeof(struct uva__shared_bytes) + ALIGN;
    struct uva__shared_bytes *shared =
        size > SIZE_MAX - head ? NULL : malloc(head + size);

    if (shared == NULL)
        return NULL;
    atomic_init(&shared->users, 1);
    shared->size = size;
    shared->bytes = (uint8_t *)(shared + 1);
    shared->bytes += -(uintptr_t)shared->bytes % ALIGN;
    return shared;
}

struct uva__shared_bytes *
uva__shared_bytes_acquire(struct uva__shared_bytes *shared)
{
    (void)atomic_fetch_add_explicit(&shared->users, 1, memory_order_relaxed);
    return shared;
}

void uva__shared_bytes_release(struct uva__shared_bytes *shared)
{
    if (shared != NULL &&
        atomic_fetch_sub_explicit(&shared->users, 1, memory_order_acq_rel) == 1)
        free(shared);
}
