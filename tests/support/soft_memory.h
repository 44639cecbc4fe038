/* SPDX-License-Identifier: Apache-2.0 */
/* Memory as a device has it: a program that reads or writes it by its pointer
 * dies; whoever knows how reaches it elsewhere. Thread: any. */
#ifndef UVA_SUPPORT_SOFT_MEMORY_H
#define UVA_SUPPORT_SOFT_MEMORY_H

#include <stddef.h>

/* Gives `size` bytes behind a pointer that nobody may follow; NULL without
 * memory. */
void *soft_memory_new(size_t size);

/* Takes them back. */
void soft_memory_free(void *memory);

/* Where the bytes behind `memory` really are, of which there must be `size`;
 * a pointer of the host is given back as it is. */
void *soft_memory_at(const void *memory, size_t size);

/* Blocks that have not come back. */
int soft_memory_live(void);

#endif
