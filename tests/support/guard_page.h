/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that ends at an inaccessible page: an access one byte past the memory
 * ends the process. */
#ifndef UVA_SUPPORT_GUARD_PAGE_H
#define UVA_SUPPORT_GUARD_PAGE_H

#include <stddef.h>

/* Gives a copy of `bytes` that ends right before a page without access. */
char *guard_page_copy(const void *bytes, size_t size);

/* Frees the copy; `size` is the original's. */
void guard_page_free(char *copy, size_t size);

#endif
