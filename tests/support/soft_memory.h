/* SPDX-License-Identifier: Apache-2.0 */
/* Memory like a device's: access through its pointer crashes; the bytes are
 * accessible at another address. Thread: any. */
#ifndef UVA_SUPPORT_SOFT_MEMORY_H
#define UVA_SUPPORT_SOFT_MEMORY_H

#include <stddef.h>

/* Returns an inaccessible pointer to `size` bytes; NULL without memory. */
void *soft_memory_new(size_t size);

/* Frees them. */
void soft_memory_free(void *memory);

/* Returns the accessible address of `memory`, which must have `size` bytes; a
 * host pointer is returned unchanged. */
void *soft_memory_at(const void *memory, size_t size);

/* Returns the number of blocks not freed. */
int soft_memory_live(void);

#endif
